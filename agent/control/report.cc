// SPDX-License-Identifier: Apache-2.0
#include "agent/control/report.h"

#include "base/clock.h"
#include "base/reasons.h"

namespace flamefleet::agent {
namespace {

namespace proto = fleet::v1alpha1;

constexpr int kMaxProblems = 8;  // of a report

proto::ProfileType TypeOf(ProfileType type) {
  switch (type) {
    case ProfileType::kCpu:
      return proto::PROFILE_TYPE_CPU;
    case ProfileType::kMemory:
      return proto::PROFILE_TYPE_MEMORY;
    case ProfileType::kGoroutine:
      return proto::PROFILE_TYPE_GOROUTINE;
    case ProfileType::kMutex:
      return proto::PROFILE_TYPE_MUTEX;
    case ProfileType::kBlock:
      return proto::PROFILE_TYPE_BLOCK;
  }
  return proto::PROFILE_TYPE_UNSPECIFIED;
}

proto::CollectionState StateOf(CollectionState state) {
  switch (state) {
    case CollectionState::kWaiting:
      return proto::COLLECTION_STATE_WAITING;
    case CollectionState::kDelivering:
      return proto::COLLECTION_STATE_DELIVERING;
    case CollectionState::kIdle:
      return proto::COLLECTION_STATE_IDLE;
    case CollectionState::kFailing:
      return proto::COLLECTION_STATE_FAILING;
  }
  return proto::COLLECTION_STATE_UNSPECIFIED;
}

}  // namespace

proto::Report BuildReport(const std::vector<CollectionStatus>& collections,
                          const NodeStatus& node) {
  proto::Report report;
  for (const CollectionStatus& status : collections) {
    proto::CollectionHealth* const health = report.add_collections();
    health->set_pod_uid(status.key.pod_uid);
    health->set_container(status.key.container);
    health->set_type(TypeOf(status.key.type));
    health->set_state(StateOf(status.state));
    health->set_reason(status.state == CollectionState::kWaiting
                           ? std::string(reasons::kWaitingForSamples)
                           : status.reason);
    health->set_message(status.message);
    health->set_last_delivered_unix_ms(status.last_delivered_ns / kNanosPerMilli);
    health->set_failing_since_unix_ms(status.failing_since_ns / kNanosPerMilli);
    health->set_profiles_delivered(status.profiles_delivered);
    for (size_t i = 0; i < kStackEnds.size(); ++i) {
      if (status.stack_ends[i] == 0) continue;
      proto::Stacks* const stacks = health->add_stacks();
      stacks->set_end(std::string(kStackEnds[i]));
      stacks->set_count(status.stack_ends[i]);
    }
  }
  for (const auto& [backend, backlog] : node.backlogs) {
    proto::BackendBacklog* const entry = report.add_backlogs();
    entry->set_backend(backend);
    entry->set_profiles(backlog.profiles);
    entry->set_bytes(backlog.bytes);
    entry->set_oldest_unix_ms(backlog.oldest_ns / kNanosPerMilli);
  }
  report.mutable_node()->set_sampling(node.sampling);
  const auto add = [&report](std::string_view reason, const std::string& message) {
    if (report.node().problems_size() == kMaxProblems) return;
    proto::Problem* const entry = report.mutable_node()->add_problems();
    entry->set_reason(std::string(reason));
    entry->set_message(message);
  };
  for (const std::string& problem : node.problems)
    add(reasons::kSamplingUnavailable, problem);
  for (const auto& [reason, message] : node.shortages)
    add(reason, message);
  return report;
}

}  // namespace flamefleet::agent
