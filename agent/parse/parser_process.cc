// SPDX-License-Identifier: Apache-2.0
#include "agent/parse/parser_process.h"

#include <spawn.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <filesystem>
#include <utility>

#include "agent/parse/socket.h"
#include "base/clock.h"
#include "base/log.h"

namespace flamefleet::agent {
namespace {

int64_t DeadlineNanos(std::chrono::nanoseconds timeout) {
  return SystemClock().MonotonicNanos() + timeout.count();
}

}  // namespace

std::shared_ptr<ParserProcess> ParserProcess::Installed() {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  return std::make_shared<ParserProcess>((self.parent_path() / "flamefleet-parse").string());
}

ParserProcess::~ParserProcess() {
  const MutexLock lock(&mutex_);
  Stop();
}

ParserCounts ParserProcess::counts() const {
  const MutexLock lock(&mutex_);
  return counts_;
}

int64_t ParserProcess::CpuNanos() const {
  // In this order: one that ends in between is missing now, and comes with the next call.
  rusage ended{};
  ::getrusage(RUSAGE_CHILDREN, &ended);
  clockid_t clock{};
  timespec running{};
  const pid_t pid = pid_;
  if (pid > 0 && ::clock_getcpuclockid(pid, &clock) == 0) ::clock_gettime(clock, &running);
  return (ended.ru_utime.tv_sec + ended.ru_stime.tv_sec + running.tv_sec) * kNanosPerSecond +
         (ended.ru_utime.tv_usec + ended.ru_stime.tv_usec) * 1000 + running.tv_nsec;
}

void ParserProcess::Rest() {
  const MutexLock lock(&mutex_);
  if (is_idle_) Stop();
  is_idle_ = true;
}

Result<std::string> ParserProcess::Run(ParseKind kind, std::span<const int> files,
                                       std::string_view arguments,
                                       std::chrono::nanoseconds timeout) {
  FF_CHECK(arguments.size() <= kMaxParseArgumentBytes);
  const MutexLock lock(&mutex_);
  FF_RETURN_IF_ERROR(Start());
  ++counts_.requests;
  is_idle_ = false;
  Result<std::string> answer = Exchange(kind, files, arguments, DeadlineNanos(timeout));
  if (answer.ok()) return answer;
  const StatusCode code = answer.status().code();
  if (code == StatusCode::kUnavailable || code == StatusCode::kDeadlineExceeded) {
    Stop();
    ++counts_.deaths;
    if (code == StatusCode::kUnavailable)
      return DataLossError("parse: the parser died of the file");
    return DeadlineExceededError("parse: no answer in time");
  }
  ++counts_.refused;
  return answer;
}

Result<std::string> ParserProcess::Exchange(ParseKind kind, std::span<const int> files,
                                            std::string_view arguments, int64_t deadline_ns) {
  const ParseRequestHeader request{.kind = static_cast<uint32_t>(kind),
                                   .size = static_cast<uint32_t>(arguments.size())};
  const int socket = socket_.get();
  FF_RETURN_IF_ERROR(SendAll(socket, std::as_bytes(std::span(&request, 1)), files, deadline_ns));
  FF_RETURN_IF_ERROR(SendAll(socket, std::as_bytes(std::span(arguments)), {}, deadline_ns));
  ParseAnswerHeader header;
  FF_RETURN_IF_ERROR(
      ReceiveAll(socket, std::as_writable_bytes(std::span(&header, 1)), nullptr, deadline_ns));
  // No child of ours says that; it is in the hands of its file.
  if (header.size > kMaxParseAnswerBytes) return UnavailableError("parse: answer of a wrong size");
  std::string content(header.size, '\0');
  FF_RETURN_IF_ERROR(
      ReceiveAll(socket, std::as_writable_bytes(std::span(content)), nullptr, deadline_ns));
  switch (static_cast<StatusCode>(header.code)) {
    case StatusCode::kOk:
      return content;
    case StatusCode::kNotFound:
      return NotFoundError(content);
    case StatusCode::kResourceExhausted:
      return ResourceExhaustedError(content);
    case StatusCode::kDataLoss:
      return DataLossError(content);
    default:
      return InvalidArgumentError(content);
  }
}

Status ParserProcess::Start() {
  // It may have ended since the last request, for want of memory or of CPU time.
  if (pid_ > 0 && ::waitpid(pid_, nullptr, WNOHANG) != 0) pid_ = -1;
  if (pid_ > 0) return OkStatus();
  if (SystemClock().MonotonicNanos() < retry_ns_) return start_failure_;
  start_failure_ = Spawn();
  if (start_failure_.ok()) return OkStatus();
  Stop();
  retry_ns_ = SystemClock().MonotonicNanos() + std::chrono::nanoseconds(kRestartPause).count();
  Log(LogLevel::kError, "programs have no names: their parser cannot start",
      {{"program", program_}, {"error", start_failure_}});
  return start_failure_;
}

Status ParserProcess::Spawn() {
  std::array<int, 2> pair{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()) != 0)
    return UnavailableError("start the parser: no socket pair");
  socket_.reset(pair[0]);
  UniqueFd childs(pair[1]);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, childs.get(), STDIN_FILENO);
  char name[] = "flamefleet-parse";
  char* const arguments[] = {name, nullptr};
  char* const environment[] = {nullptr};
  pid_t pid = -1;
  const int error =
      ::posix_spawn(&pid, program_.c_str(), &actions, nullptr, arguments, environment);
  posix_spawn_file_actions_destroy(&actions);
  childs.reset();  // now its end is the only one: when it dies we hear of it
  if (error != 0) return UnavailableError(ErrorMessage(ErrnoError(error, "start " + program_)));
  pid_ = pid;
  ++counts_.starts;
  std::byte ready{};
  if (!ReceiveAll(socket_.get(), std::span(&ready, 1), nullptr, DeadlineNanos(kParseTimeout)).ok())
    return UnavailableError("start " + program_ + ": it ended before it was ready");
  return OkStatus();
}

void ParserProcess::Stop() {
  socket_.reset();
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
}

}  // namespace flamefleet::agent
