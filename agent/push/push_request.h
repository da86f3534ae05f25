// SPDX-License-Identifier: Apache-2.0
// The body of a push: one profile as the Pyroscope push API wants it.
//
// Thread: any; pure.
// Source: https://github.com/grafana/pyroscope/blob/main/api/push/v1/push.proto
#pragma once

#include <string>

#include "agent/types.h"

namespace flamefleet::agent {

constexpr std::string_view kPushPath = "/push.v1.PusherService/Push";
constexpr std::string_view kPushContentType = "application/proto";

// A serialized PushRequest with one series: its labels, __name__ and __delta__="false" (what we
// send are deltas already), sorted by name. It replaces what `out` has, and uses its memory.
void EncodePushRequest(const FinishedProfile& profile, std::string* out);

}  // namespace flamefleet::agent
