// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/exec_plugin.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <nlohmann/json.hpp>

#include "base/argv.h"
#include "base/fd.h"
#include "operator/api/json_reader.h"

extern char** environ;

namespace flamefleet {
namespace {

using Deadline = std::chrono::steady_clock::time_point;

// Until the descriptor can be read.
Status Await(int fd, Deadline deadline) {
  for (;;) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd waiting{fd, POLLIN, 0};
    const int ready = left.count() <= 0 ? 0 : poll(&waiting, 1, static_cast<int>(left.count()));
    if (ready > 0) return OkStatus();
    if (ready == 0) return UnavailableError("it does not end in time");
    if (errno != EINTR) return ErrnoError(errno, "poll");
  }
}

// A started program whose stdout we read; killed and reaped at the latest here.
class Child {
 public:
  static Result<Child> Start(const ExecPlugin& plugin);
  Child(Child&& other) noexcept
      : pid_(std::exchange(other.pid_, -1)), output_(std::move(other.output_)) {}
  Child& operator=(Child&&) = delete;
  ~Child() {
    if (pid_ < 0) return;
    kill(-pid_, SIGKILL);  // its group: what it started has our pipe too
    (void)Reap();
  }

  // All that it writes.
  Result<std::string> Read(Deadline deadline) const;
  // How it ended, as waitpid says it.
  Result<int> Wait(Deadline deadline);

 private:
  Child(pid_t pid, UniqueFd output) : pid_(pid), output_(std::move(output)) {}
  int Reap() {
    int status = 0;
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
    return status;
  }

  pid_t pid_;
  UniqueFd output_;
};

// Ours, with the plugin's instead of those of the same name.
std::vector<std::string> Environment(const ExecPlugin& plugin) {
  auto own = plugin.environment;
  own.emplace_back("KUBERNETES_EXEC_INFO", plugin.info);
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const bool replaced = std::any_of(own.begin(), own.end(), [&text](const auto& variable) {
      return text.starts_with(variable.first + "=");
    });
    if (!replaced) all.push_back(text);
  }
  for (const auto& [name, value] : own)
    all.push_back(name + "=" + value);
  return all;
}

Result<Child> Child::Start(const ExecPlugin& plugin) {
  std::array<int, 2> pipe_fds{};
  if (pipe2(pipe_fds.data(), O_CLOEXEC) != 0) return ErrnoError(errno, "pipe");
  UniqueFd output(pipe_fds[0]);
  const UniqueFd input(pipe_fds[1]);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, input.get(), STDOUT_FILENO);
  // A group of its own, and the signals that our threads have blocked.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);

  std::vector<std::string> arguments = plugin.arguments;
  arguments.insert(arguments.begin(), plugin.command);
  std::vector<std::string> environment = Environment(plugin);
  pid_t pid = -1;
  const int error = posix_spawnp(&pid, plugin.command.c_str(), &actions, &attributes,
                                 ArgvOf(arguments).data(), ArgvOf(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) {
    const std::string hint = plugin.install_hint.empty() ? "" : ": " + plugin.install_hint;
    return UnavailableError(ErrorMessage(ErrnoError(error, "start")) + hint);
  }
  return Child(pid, std::move(output));
}

Result<std::string> Child::Read(Deadline deadline) const {
  std::string text;
  std::array<char, 4096> buffer;
  for (;;) {
    FF_RETURN_IF_ERROR(Await(output_.get(), deadline));
    const ssize_t size = read(output_.get(), buffer.data(), buffer.size());
    if (size == 0) return text;
    if (size < 0) return ErrnoError(errno, "read its output");
    text.append(buffer.data(), static_cast<size_t>(size));
    if (text.size() > kMaxExecOutputBytes) {
      return UnavailableError("its output is larger than " + std::to_string(kMaxExecOutputBytes) +
                              " bytes");
    }
  }
}

Result<int> Child::Wait(Deadline deadline) {
  // By its number: the header of glibc 2.36 declares it for C alone.
  const UniqueFd process(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)));
  if (!process.ok()) return ErrnoError(errno, "pidfd_open");
  FF_RETURN_IF_ERROR(Await(process.get(), deadline));
  return Reap();
}

Result<ExecCredential> Parse(const std::string& output, const std::string& api_version) {
  const auto answer = nlohmann::json::parse(output, nullptr, /*allow_exceptions=*/false);
  if (answer.is_discarded()) return InvalidArgumentError("its output is not JSON");
  const api::ObjectReader reader(answer, "ExecCredential");
  std::string kind;
  std::string version;
  reader.String("kind", kind);
  reader.String("apiVersion", version);
  ExecCredential credential;
  reader.Object("status", [&](const api::ObjectReader& status) {
    status.String("token", credential.token);
    status.String("clientCertificateData", credential.client_cert_pem);
    status.String("clientKeyData", credential.client_key_pem);
    status.Time("expirationTimestamp", credential.expires_ns);
  });
  FF_RETURN_IF_ERROR(reader.status());
  if (kind != "ExecCredential" || version != api_version) {
    return InvalidArgumentError("want an ExecCredential of " + api_version + ", got \"" + kind +
                                "\" of \"" + version + "\"");
  }
  if (credential.client_cert_pem.empty() != credential.client_key_pem.empty()) {
    return InvalidArgumentError("only one of clientCertificateData and clientKeyData is there");
  }
  if (credential.token.empty() && credential.client_cert_pem.empty()) {
    return InvalidArgumentError("neither a token nor a client certificate is there");
  }
  return credential;
}

Result<ExecCredential> Run(const ExecPlugin& plugin, Deadline deadline) {
  FF_ASSIGN_OR_RETURN(Child child, Child::Start(plugin));
  FF_ASSIGN_OR_RETURN(const std::string output, child.Read(deadline));
  FF_ASSIGN_OR_RETURN(const int status, child.Wait(deadline));
  if (WIFSIGNALED(status)) {
    return UnavailableError("killed by signal " + std::to_string(WTERMSIG(status)));
  }
  if (WEXITSTATUS(status) != 0) {
    return UnavailableError("exit code " + std::to_string(WEXITSTATUS(status)));
  }
  return Parse(output, plugin.api_version);
}

}  // namespace

Result<ExecCredential> RunExecPlugin(const ExecPlugin& plugin, std::chrono::milliseconds timeout) {
  Result<ExecCredential> credential = Run(plugin, std::chrono::steady_clock::now() + timeout);
  if (credential.ok()) return credential;
  return Annotate(credential.status(), "run credential plugin " + plugin.command);
}

}  // namespace flamefleet
