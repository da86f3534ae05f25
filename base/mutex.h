// SPDX-License-Identifier: Apache-2.0
// Mutex, MutexLock, CondVar and the annotations that clang's -Wthread-safety reads (it cannot check
// std::mutex).
#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/synchronization/mutex.h>
#include <absl/time/time.h>

#include <chrono>

namespace flamefleet {

using Mutex = absl::Mutex;
using MutexLock = absl::MutexLock;
using CondVar = absl::CondVar;

#define FF_GUARDED_BY(mutex) ABSL_GUARDED_BY(mutex)
#define FF_REQUIRES(mutex) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex)

// True when the time ran out before a signal.
inline bool WaitFor(CondVar& condition, Mutex& mutex, std::chrono::nanoseconds timeout) {
  return condition.WaitWithTimeout(&mutex, absl::FromChrono(timeout));
}

}  // namespace flamefleet
