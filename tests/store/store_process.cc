// SPDX-License-Identifier: Apache-2.0
#include "tests/store/store_process.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <utility>

#include "base/argv.h"
#include "base/fd.h"
#include "tests/store/store_client.h"
#include "tests/support/wait.h"

namespace flamefleet::store {
namespace {

// Free at the moment; the kernel does not give it to somebody else soon.
uint16_t FreePort() {
  const UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  FF_CHECK(::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), size) == 0);
  FF_CHECK(::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0);
  return ntohs(address.sin_port);
}

}  // namespace

StoreProcess::StoreProcess(std::string data, std::vector<std::string> flags)
    : data_(std::move(data)), flags_(std::move(flags)) {}

StoreProcess::~StoreProcess() {
  Kill();
}

bool StoreProcess::Start() {
  port_ = FreePort();
  std::vector<std::string> command = {FF_STORE_BINARY, "--listen",
                                      "127.0.0.1:" + std::to_string(port_), "--data", data_};
  command.insert(command.end(), flags_.begin(), flags_.end());
  const std::vector<char*> arguments = ArgvOf(command);
  pid_ = ::fork();
  FF_CHECK(pid_ >= 0);
  if (pid_ == 0) {
    ::execv(arguments[0], arguments.data());
    ::_exit(127);
  }
  return WaitUntil([this] { return Get(port_, "/readyz").status == 200; });
}

void StoreProcess::Kill() {
  if (pid_ == 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
  pid_ = 0;
}

int StoreProcess::Stop() {
  ::kill(pid_, SIGTERM);
  int status = 0;
  ::waitpid(pid_, &status, 0);
  pid_ = 0;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace flamefleet::store
