// SPDX-License-Identifier: Apache-2.0
#include "tests/operator/operator_process.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <array>
#include <chrono>
#include <thread>
#include <utility>

#include "base/fd.h"
#include "base/status.h"

namespace flamefleet {
namespace {

constexpr std::chrono::seconds kEndTimeout{30};

}  // namespace

uint16_t FreePort() {
  const UniqueFd socket_fd(socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  FF_CHECK(bind(socket_fd.get(), reinterpret_cast<sockaddr*>(&address), size) == 0);
  FF_CHECK(getsockname(socket_fd.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0);
  return ntohs(address.sin_port);
}

OperatorProcess::OperatorProcess(std::string kubeconfig, std::vector<std::string> flags)
    : kubeconfig_(std::move(kubeconfig)), flags_(std::move(flags)) {
  Start();
}

OperatorProcess::~OperatorProcess() {
  if (!running()) return;
  Signal(SIGCONT);
  Signal(SIGTERM);
  const auto deadline = std::chrono::steady_clock::now() + kEndTimeout;
  while (waitpid(pid_, nullptr, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > deadline) {
      End(SIGKILL);
      return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

void OperatorProcess::Start() {
  std::vector<std::string> arguments = {
      FF_OPERATOR_BINARY,
      "run",
      "--kubeconfig=" + kubeconfig_,
      "--namespace=" + std::string(kOperatorNamespace),
      "--image=example.org/flamefleet:test",
      "--listen=127.0.0.1:" + std::to_string(http_port_),
      "--debug-listen=127.0.0.1:" + std::to_string(debug_port_),
      "--agents-listen=127.0.0.1:" + std::to_string(agents_port_)};
  arguments.insert(arguments.end(), flags_.begin(), flags_.end());
  std::vector<char*> argv;
  for (std::string& argument : arguments)
    argv.push_back(argument.data());
  argv.push_back(nullptr);
  pid_t pid = -1;
  FF_CHECK(posix_spawn(&pid, argv[0], nullptr, nullptr, argv.data(), environ) == 0);
  pid_ = pid;
}

int OperatorProcess::End(int signal) {
  Signal(signal);
  return Wait();
}

int OperatorProcess::Wait() {
  int status = 0;
  waitpid(pid_, &status, 0);  // it may be signalled until it has ended
  pid_ = -1;
  return status;
}

void OperatorProcess::Signal(int signal) const {
  // A process id below 1 means many processes to kill().
  if (const pid_t pid = pid_; pid > 0) kill(pid, signal);
}

HttpResponse OperatorProcess::Http(uint16_t port, const std::string& path) {
  auto client = HttpClient::Create({"http://127.0.0.1:" + std::to_string(port)});
  FF_CHECK(client.ok());
  HttpRequest request;
  request.target = path;
  const auto response = (*client)->Send(request);
  return response.ok() ? *response : HttpResponse();
}

double OperatorProcess::Metric(const std::string& series) const {
  const std::string text = Http("/metrics").body;
  const size_t at = text.find("\n" + series + " ");
  return at == std::string::npos ? -1 : std::stod(text.substr(at + series.size() + 2));
}

bool OperatorProcess::Settles(const ApiServer& server) const {
  constexpr std::array<std::pair<const char*, const char*>, 3> kKinds = {
      {{"pool", "ap"}, {"backend", "pb"}, {"target", "pt"}}};
  for (const auto& [controller, kind] : kKinds) {
    const auto reconciled = [&, name = std::string(controller)] {
      const std::string series =
          "controller_runtime_reconcile_total{controller=\"" + name + "\",result=\"";
      return Metric(series + "success\"}") + Metric(series + "requeue_after\"}");
    };
    const double before = reconciled();
    server.MustKubectl({"annotate", kind, "--all", "-A", "--overwrite",
                        "test=" + std::to_string(static_cast<int64_t>(before))});
    if (!Eventually([&] { return reconciled() > before; })) return false;
  }
  return true;
}

bool OperatorProcess::Leads() const {
  return Http("/readyz").body == "ok: leading\n";
}

}  // namespace flamefleet
