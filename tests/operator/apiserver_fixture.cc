// SPDX-License-Identifier: Apache-2.0
#include "tests/operator/apiserver_fixture.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <thread>

namespace flamefleet {
namespace {

struct Child {
  pid_t pid = -1;
  UniqueFd input;
  UniqueFd output;
};

// Starts a program with pipes on its stdin and stdout (and stderr, when `merge`).
Child Spawn(std::vector<std::string> arguments, bool merge) {
  std::array<int, 2> in{};
  std::array<int, 2> out{};
  FF_CHECK(pipe2(in.data(), O_CLOEXEC) == 0 && pipe2(out.data(), O_CLOEXEC) == 0);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
  if (merge) posix_spawn_file_actions_adddup2(&actions, out[1], STDERR_FILENO);
  std::vector<char*> argv;
  for (std::string& argument : arguments)
    argv.push_back(argument.data());
  argv.push_back(nullptr);
  Child child;
  const int error = posix_spawnp(&child.pid, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(in[0]);
  close(out[1]);
  child.input.reset(in[1]);
  child.output.reset(out[0]);
  FF_CHECK(error == 0);
  return child;
}

std::string ReadLine(int fd) {
  std::string line;
  for (char c = 0; read(fd, &c, 1) == 1 && c != '\n';)
    line.push_back(c);
  return line;
}

}  // namespace

ApiServer::ApiServer(const std::vector<std::string>& flags) {
  std::string pattern = testing::TempDir() + "/ff-apiserver-XXXXXX";
  folder_ = mkdtemp(pattern.data());
  std::vector<std::string> command = {"e2e/cluster", "apiserver", "--dir", folder_ + "/state",
                                      "--stop-on-eof"};
  for (const std::string& flag : flags)
    command.push_back("--flag=" + flag);
  Child child = Spawn(command, /*merge=*/false);
  pid_ = child.pid;
  stdin_ = std::move(child.input);
  kubeconfig_ = ReadLine(child.output.get());
  FF_CHECK(!kubeconfig_.empty());
  Result<ClientConfig> config = LoadKubeconfig({kubeconfig_});
  FF_CHECK(config.ok());
  config_ = *std::move(config);
  MustKubectl({"apply", "--server-side", "-k", "crds"});
  MustKubectl({"wait", "--for=condition=Established", "--timeout=60s", "crd", "--all"});
}

ApiServer::~ApiServer() {
  stdin_.reset();
  waitpid(pid_, nullptr, 0);
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

std::unique_ptr<RestClient> ApiServer::NewClient(Metrics& metrics) const {
  Result<std::unique_ptr<RestClient>> client = RestClient::Create(config_, SystemClock(), metrics);
  FF_CHECK(client.ok());
  return *std::move(client);
}

ApiServer::Output ApiServer::Kubectl(const std::vector<std::string>& arguments,
                                     const std::string& input) const {
  std::vector<std::string> command = {kubectl(), "--kubeconfig", kubeconfig_};
  command.insert(command.end(), arguments.begin(), arguments.end());
  Child child = Spawn(command, /*merge=*/true);
  // The pipe holds 64 KiB: what tests write fits.
  FF_CHECK(write(child.input.get(), input.data(), input.size()) ==
           static_cast<ssize_t>(input.size()));
  child.input.reset();
  Output output;
  std::array<char, 4096> buffer;
  for (ssize_t size = 0; (size = read(child.output.get(), buffer.data(), buffer.size())) > 0;) {
    output.text.append(buffer.data(), static_cast<size_t>(size));
  }
  int status = 0;
  waitpid(child.pid, &status, 0);
  output.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return output;
}

std::string ApiServer::MustKubectl(const std::vector<std::string>& arguments,
                                   const std::string& input) const {
  const Output output = Kubectl(arguments, input);
  EXPECT_EQ(output.exit_code, 0) << output.text;
  return output.text;
}

bool Eventually(const std::function<bool()>& holds) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!holds()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return true;
}

}  // namespace flamefleet
