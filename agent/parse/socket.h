// SPDX-License-Identifier: Apache-2.0
// Whole messages over the socket between the agent and its parsing child.
//
// Thread: any. Errors: kUnavailable when the other side is gone, kDeadlineExceeded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/fd.h"
#include "base/status.h"

namespace flamefleet::agent {

constexpr int64_t kNoDeadline = INT64_MAX;  // monotonic nanoseconds

// Sends all bytes; the descriptors go with the first of them.
Status SendAll(int socket, std::span<const std::byte> bytes, std::span<const int> files,
               int64_t deadline_ns);
// Receives exactly as many bytes; descriptors that come with them are appended to `files`, or
// closed when it is null.
Status ReceiveAll(int socket, std::span<std::byte> bytes, std::vector<UniqueFd>* files,
                  int64_t deadline_ns);

}  // namespace flamefleet::agent
