// SPDX-License-Identifier: Apache-2.0
// The types of operator/plan to and from the messages of proto/fleet/control.proto. Only for the
// .cc files of this folder and its tests: it drags in protobuf.
//
// Thread: any; pure.
#pragma once

#include "operator/plan/fleet.h"
#include "proto/fleet/control.pb.h"

namespace flamefleet::control {

namespace pb = fleet::v1alpha1;

// Of a report; what is beyond them is dropped: it says nothing about an assignment of ours.
inline constexpr int kMaxCollections = 10'000;
inline constexpr int kMaxNodeProblems = 8;
inline constexpr int kMaxBacklogs = 1000;
inline constexpr int kMaxStackEnds = 16;                       // of a collection
inline constexpr uint64_t kMaxStackCount = uint64_t{1} << 40;  // years of a busy node
inline constexpr size_t kMaxReportText = 256;                  // bytes of a reason or a message

void ToProto(const plan::PodAssignment& from, pb::PodAssignment& to);
void ToProto(const plan::AgentConfig& from, pb::AgentConfig& to);

// Sets what a report says; the connection's fields (pool, connected, ...) are left alone.
void FromProto(const pb::Report& from, plan::NodeReport& to);

}  // namespace flamefleet::control
