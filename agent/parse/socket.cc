// SPDX-License-Identifier: Apache-2.0
#include "agent/parse/socket.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "agent/parse/request.h"
#include "base/clock.h"

namespace flamefleet::agent {
namespace {

using ControlBytes = std::array<char, CMSG_SPACE(kMaxParseFiles * sizeof(int))>;

// Without a deadline calls just block: the child may not poll.
Status WaitFor(int socket, short events, int64_t deadline_ns) {
  if (deadline_ns == kNoDeadline) return OkStatus();
  for (;;) {
    const int64_t left_ns = deadline_ns - SystemClock().MonotonicNanos();
    if (left_ns <= 0) return DeadlineExceededError("no answer in time");
    pollfd wanted{.fd = socket, .events = events, .revents = 0};
    constexpr int64_t kNanosPerMilli = 1'000'000;
    const int got = ::poll(&wanted, 1, static_cast<int>(left_ns / kNanosPerMilli + 1));
    if (got > 0) return OkStatus();
    if (got < 0 && errno != EINTR) return ErrnoError(errno, "poll");
  }
}

void TakeFiles(msghdr* message, std::vector<UniqueFd>* files) {
  for (cmsghdr* part = CMSG_FIRSTHDR(message); part != nullptr; part = CMSG_NXTHDR(message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof(int));
      UniqueFd file(fd);
      if (files != nullptr) files->push_back(std::move(file));
    }
  }
}

}  // namespace

Status SendAll(int socket, std::span<const std::byte> bytes, std::span<const int> files,
               int64_t deadline_ns) {
  FF_CHECK(files.size() <= kMaxParseFiles);
  const int flags = MSG_NOSIGNAL | (deadline_ns == kNoDeadline ? 0 : MSG_DONTWAIT);
  alignas(cmsghdr) ControlBytes control{};
  while (!bytes.empty()) {
    ssize_t sent = -1;
    if (files.empty()) {
      sent = ::send(socket, bytes.data(), bytes.size(), flags);
    } else {
      iovec content{.iov_base = const_cast<std::byte*>(bytes.data()), .iov_len = bytes.size()};
      msghdr message{.msg_iov = &content,
                     .msg_iovlen = 1,
                     .msg_control = control.data(),
                     .msg_controllen = CMSG_SPACE(files.size_bytes())};
      cmsghdr* const part = CMSG_FIRSTHDR(&message);
      part->cmsg_level = SOL_SOCKET;
      part->cmsg_type = SCM_RIGHTS;
      part->cmsg_len = CMSG_LEN(files.size_bytes());
      std::memcpy(CMSG_DATA(part), files.data(), files.size_bytes());
      sent = ::sendmsg(socket, &message, flags);
    }
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) {
      FF_RETURN_IF_ERROR(WaitFor(socket, POLLOUT, deadline_ns));
      continue;
    }
    if (sent < 0) return UnavailableError("send: the other side is gone");
    files = {};
    bytes = bytes.subspan(static_cast<size_t>(sent));
  }
  return OkStatus();
}

Status ReceiveAll(int socket, std::span<std::byte> bytes, std::vector<UniqueFd>* files,
                  int64_t deadline_ns) {
  alignas(cmsghdr) ControlBytes control{};
  while (!bytes.empty()) {
    FF_RETURN_IF_ERROR(WaitFor(socket, POLLIN, deadline_ns));
    iovec content{.iov_base = bytes.data(), .iov_len = bytes.size()};
    msghdr message{.msg_iov = &content,
                   .msg_iovlen = 1,
                   .msg_control = control.data(),
                   .msg_controllen = control.size()};
    const ssize_t got = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got <= 0) return UnavailableError("receive: the other side is gone");
    TakeFiles(&message, files);
    bytes = bytes.subspan(static_cast<size_t>(got));
  }
  return OkStatus();
}

}  // namespace flamefleet::agent
