// SPDX-License-Identifier: Apache-2.0
// ParserProcess: has files of containers parsed by a child that holds no privilege (sandbox.h).
//
// The agent opens files and passes descriptors; what comes back is bytes, which the caller checks
// as it would check the file itself. The child is a program of its own (flamefleet-parse, beside
// the agent's), so nothing of the agent's memory is in it. It starts with the first request, is
// replaced when it dies or is late, and ends when it was idle (Rest).
//
// Thread: any; requests wait for each other. Units: see request.h.
// Bounds: one child, one request at a time, kParseTimeout of wall time each, or what
// the caller gives.
// Errors: Run: the parser's own error for a file that it does not like; kDataLoss when it died of
// the file; kDeadlineExceeded; kUnavailable when no child can be started (tried again after
// kRestartPause), which says nothing about the file.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "agent/parse/request.h"
#include "base/fd.h"
#include "base/mutex.h"
#include "base/status.h"

namespace flamefleet::agent {

// Generous: on a busy node the child waits for CPU time, of which it may use kMaxParseCpuSeconds.
constexpr std::chrono::seconds kParseTimeout{30};
constexpr std::chrono::seconds kRestartPause{10};

struct ParserCounts {
  uint64_t requests = 0;
  uint64_t refused = 0;  // the parser said what is wrong with the file
  uint64_t deaths = 0;   // of a child during a request, late ones included
  uint64_t starts = 0;
};

// Whether what Run says may be no fault of the file: the parser died or was late, perhaps since the
// machine had no memory or no time just then.
inline bool MayPass(const Status& failure) {
  return failure.code() == StatusCode::kDataLoss || failure.code() == StatusCode::kDeadlineExceeded;
}

class ParserProcess {
 public:
  // The program that is installed beside the running one.
  static std::shared_ptr<ParserProcess> Installed();
  explicit ParserProcess(std::string program) : program_(std::move(program)) {}
  ~ParserProcess();
  ParserProcess(const ParserProcess&) = delete;
  ParserProcess& operator=(const ParserProcess&) = delete;

  Result<std::string> Run(ParseKind kind, std::span<const int> files, std::string_view arguments,
                          std::chrono::nanoseconds timeout = kParseTimeout);

  // Ends the child when there was no request since the last call: call once per window.
  void Rest();

  ParserCounts counts() const;
  pid_t pid() const { return pid_; }  // of the child; -1: there is none

  // CPU time of this process's children, which are all parsers, the one that runs included. Does
  // not wait for a request.
  int64_t CpuNanos() const;

 private:
  Status Start() FF_REQUIRES(mutex_);
  Status Spawn() FF_REQUIRES(mutex_);
  void Stop() FF_REQUIRES(mutex_);
  Result<std::string> Exchange(ParseKind kind, std::span<const int> files,
                               std::string_view arguments, int64_t deadline_ns) FF_REQUIRES(mutex_);

  const std::string program_;
  mutable Mutex mutex_;
  UniqueFd socket_ FF_GUARDED_BY(mutex_);
  std::atomic<pid_t> pid_ = -1;  // changes under mutex_
  bool is_idle_ FF_GUARDED_BY(mutex_) = true;
  Status start_failure_ FF_GUARDED_BY(mutex_);
  int64_t retry_ns_ FF_GUARDED_BY(mutex_) = 0;
  ParserCounts counts_ FF_GUARDED_BY(mutex_);
};

}  // namespace flamefleet::agent
