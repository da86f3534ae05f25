// SPDX-License-Identifier: Apache-2.0
#include "operator/control/outbox.h"

#include "operator/control/convert.h"

namespace flamefleet::control {

AssignmentDelta Diff(const plan::NodeAssignment& from, const plan::NodeAssignment& to) {
  AssignmentDelta delta;
  for (const auto& [uid, pod] : to) {
    const auto before = from.find(uid);
    if (before == from.end() || before->second != pod) delta.upserted.push_back(&pod);
  }
  for (const auto& [uid, pod] : from) {
    if (!to.contains(uid)) delta.removed.push_back(uid);
  }
  return delta;
}

bool Outbox::Next(const ConfigPtr& config, const AssignmentPtr& assignment,
                  pb::OperatorMessage& message) {
  FF_CHECK(config != nullptr && assignment != nullptr);
  message.Clear();
  if (config_ == nullptr) {
    pb::Snapshot& snapshot = *message.mutable_snapshot();
    snapshot.set_version(++version_);
    ToProto(*config, *snapshot.mutable_config());
    for (const auto& [uid, pod] : *assignment)
      ToProto(pod, *snapshot.add_pods());
  } else {
    const bool same_config = config == config_ || *config == *config_;
    const AssignmentDelta changes =
        assignment == assignment_ ? AssignmentDelta{} : Diff(*assignment_, *assignment);
    if (same_config && changes.upserted.empty() && changes.removed.empty()) return false;
    pb::Delta& delta = *message.mutable_delta();
    delta.set_version(++version_);
    if (!same_config) ToProto(*config, *delta.mutable_config());
    for (const plan::PodAssignment* pod : changes.upserted)
      ToProto(*pod, *delta.add_upserted_pods());
    for (const std::string& uid : changes.removed)
      delta.add_removed_pod_uids(uid);
  }
  config_ = config;
  assignment_ = assignment;
  return true;
}

Status Outbox::Acknowledge(uint64_t version) {
  if (version > version_) {
    return InvalidArgumentError("acknowledgement of version " + std::to_string(version) +
                                ", the newest is " + std::to_string(version_));
  }
  acknowledged_ = version > acknowledged_ ? version : acknowledged_;
  return OkStatus();
}

}  // namespace flamefleet::control
