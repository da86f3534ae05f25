// SPDX-License-Identifier: Apache-2.0
// Outbox: what one stream was sent, and so what it must be sent next: first a snapshot, then
// deltas. It keeps the last assignment it sent and no queue, so an agent that is slow costs one
// assignment and then gets one delta for all that happened meanwhile.
//
// Thread: one at a time. Errors: kInvalidArgument an acknowledgement of what was never sent.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "operator/plan/fleet.h"
#include "proto/fleet/control.pb.h"

namespace flamefleet::control {

using ConfigPtr = std::shared_ptr<const plan::AgentConfig>;
using AssignmentPtr = std::shared_ptr<const plan::NodeAssignment>;

struct AssignmentDelta {
  std::vector<const plan::PodAssignment*> upserted;  // of `to`
  std::vector<std::string> removed;                  // pod UIDs
};
AssignmentDelta Diff(const plan::NodeAssignment& from, const plan::NodeAssignment& to);

class Outbox {
 public:
  // Fills `message` with what brings the agent to this state; false when it was sent all of it.
  // Neither may be null.
  bool Next(const ConfigPtr& config, const AssignmentPtr& assignment,
            fleet::v1alpha1::OperatorMessage& message);

  Status Acknowledge(uint64_t version);
  bool all_acknowledged() const { return acknowledged_ == version_; }

 private:
  uint64_t version_ = 0;
  uint64_t acknowledged_ = 0;
  ConfigPtr config_;          // as sent; null before the snapshot
  AssignmentPtr assignment_;  // as sent
};

}  // namespace flamefleet::control
