// SPDX-License-Identifier: Apache-2.0
#include "agent/sample/ring_waiter.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>

namespace flamefleet::agent {
namespace {

Status Watch(int epoll, int fd, uint32_t events) {
  epoll_event event{};
  event.events = events;
  if (::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0) return OkStatus();
  return ErrnoError(errno, "watch the BPF ring");
}

}  // namespace

Result<RingWaiter> RingWaiter::Create(int ring_fd) {
  UniqueFd epoll(::epoll_create1(EPOLL_CLOEXEC));
  UniqueFd stopped(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!epoll.ok() || !stopped.ok()) return ErrnoError(errno, "watch the BPF ring");
  // By edge: the ring is readable as long as anything is in it, and most of that wakes nobody.
  FF_RETURN_IF_ERROR(Watch(epoll.get(), ring_fd, EPOLLIN | EPOLLET));
  FF_RETURN_IF_ERROR(Watch(epoll.get(), stopped.get(), EPOLLIN));
  return RingWaiter(std::move(epoll), std::move(stopped));
}

void RingWaiter::Wait(const std::stop_token& stop, std::chrono::nanoseconds timeout) {
  const std::stop_callback on_stop(stop, [this] { ::eventfd_write(stopped_.get(), 1); });
  const auto milliseconds = std::chrono::ceil<std::chrono::milliseconds>(timeout).count();
  epoll_event event{};
  ::epoll_wait(epoll_.get(), &event, 1, static_cast<int>(std::max<int64_t>(0, milliseconds)));
}

}  // namespace flamefleet::agent
