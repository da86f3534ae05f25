// SPDX-License-Identifier: Apache-2.0
// RingWaiter: waits for the next drain of the sampler's ring: for a time, or until the kernel
// program wakes the agent, since it has met a process or cgroup that may be gone at that time.
//
// Thread: one owner; it may wait while another uses the sampler, which it must not outlive.
#pragma once

#include <chrono>
#include <stop_token>

#include "base/fd.h"
#include "base/status.h"

namespace flamefleet::agent {

class RingWaiter {
 public:
  // `ring_fd`: Sampler::ring_fd().
  static Result<RingWaiter> Create(int ring_fd);

  // Returns when it was woken, `timeout` is over or stop is requested. A wake-up between two calls
  // ends the second, unless the ring is empty by then.
  void Wait(const std::stop_token& stop, std::chrono::nanoseconds timeout);

 private:
  RingWaiter(UniqueFd epoll, UniqueFd stopped)
      : epoll_(std::move(epoll)), stopped_(std::move(stopped)) {}

  UniqueFd epoll_;
  UniqueFd stopped_;  // an eventfd
};

}  // namespace flamefleet::agent
