// SPDX-License-Identifier: Apache-2.0
#include "base/thread.h"

#include <pthread.h>
#include <csignal>

#include <cerrno>
#include <condition_variable>
#include <mutex>

#include "base/clock.h"
#include "base/status.h"

namespace flamefleet {

std::jthread StartThread(const std::string& name, std::function<void(std::stop_token)> body) {
  constexpr size_t kMaxThreadName = 15;  // TASK_COMM_LEN - 1
  FF_CHECK(name.size() <= kMaxThreadName);
  return std::jthread([name, body = std::move(body)](std::stop_token stop) {
    pthread_setname_np(pthread_self(), name.c_str());
    body(std::move(stop));
  });
}

bool WaitForStop(const std::stop_token& stop, std::chrono::nanoseconds timeout) {
  std::mutex mutex;
  std::condition_variable_any condition;
  std::unique_lock lock(mutex);
  condition.wait_for(lock, stop, timeout, [] { return false; });
  return stop.stop_requested();
}

namespace {
sigset_t TerminationSignals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  return set;
}
}  // namespace

void BlockTerminationSignals() {
  const sigset_t set = TerminationSignals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

int WaitForTerminationSignal(std::chrono::nanoseconds timeout) {
  const sigset_t set = TerminationSignals();
  const int64_t deadline = SystemClock().MonotonicNanos() + timeout.count();
  for (;;) {
    int signal = -1;
    if (timeout.count() == 0) {
      signal = sigwaitinfo(&set, nullptr);
    } else {
      const int64_t left = deadline - SystemClock().MonotonicNanos();
      if (left <= 0) return 0;
      const timespec wait = {left / kNanosPerSecond, left % kNanosPerSecond};
      signal = sigtimedwait(&set, nullptr, &wait);
    }
    if (signal > 0) return signal;
    if (errno == EAGAIN) return 0;
  }
}

}  // namespace flamefleet
