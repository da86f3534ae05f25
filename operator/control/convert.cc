// SPDX-License-Identifier: Apache-2.0
#include "operator/control/convert.h"

#include <algorithm>
#include <optional>

#include "base/clock.h"
#include "base/utf8.h"

namespace flamefleet::control {
namespace {

using plan::CollectionState;

pb::ProfileType ToProto(ProfileType type) {
  switch (type) {
    case ProfileType::kCpu:
      return pb::PROFILE_TYPE_CPU;
    case ProfileType::kMemory:
      return pb::PROFILE_TYPE_MEMORY;
    case ProfileType::kGoroutine:
      return pb::PROFILE_TYPE_GOROUTINE;
    case ProfileType::kMutex:
      return pb::PROFILE_TYPE_MUTEX;
    case ProfileType::kBlock:
      return pb::PROFILE_TYPE_BLOCK;
  }
  return pb::PROFILE_TYPE_UNSPECIFIED;
}

pb::BackendProtocol ToProto(plan::BackendProtocol protocol) {
  switch (protocol) {
    case plan::BackendProtocol::kPyroscope:
      return pb::BACKEND_PROTOCOL_PYROSCOPE;
    case plan::BackendProtocol::kParca:
      return pb::BACKEND_PROTOCOL_PARCA;
    case plan::BackendProtocol::kOtlp:
      return pb::BACKEND_PROTOCOL_OTLP;
  }
  return pb::BACKEND_PROTOCOL_UNSPECIFIED;
}

std::optional<ProfileType> FromProto(pb::ProfileType type) {
  for (const ProfileType ours : kProfileTypes) {
    if (ToProto(ours) == type) return ours;
  }
  return std::nullopt;
}

std::optional<CollectionState> FromProto(pb::CollectionState state) {
  switch (state) {
    case pb::COLLECTION_STATE_WAITING:
      return CollectionState::kWaiting;
    case pb::COLLECTION_STATE_DELIVERING:
      return CollectionState::kDelivering;
    case pb::COLLECTION_STATE_IDLE:
      return CollectionState::kIdle;
    case pb::COLLECTION_STATE_FAILING:
      return CollectionState::kFailing;
    default:
      return std::nullopt;  // of a newer agent
  }
}

uint32_t Millis(int64_t ns) {
  return static_cast<uint32_t>(ns / kNanosPerMilli);
}

std::string Text(const std::string& text) {
  return CutUtf8(text, kMaxReportText);
}

}  // namespace

void ToProto(const plan::PodAssignment& from, pb::PodAssignment& to) {
  to.set_uid(from.uid);
  to.set_namespace_(from.ns);
  to.set_name(from.name);
  to.set_ip(from.ip);
  for (const plan::ContainerAssignment& container : from.containers) {
    pb::ContainerAssignment& out = *to.add_containers();
    out.set_name(container.name);
    out.set_id(container.id);
    out.set_backend(container.backend);
    out.mutable_labels()->insert(container.labels.begin(), container.labels.end());
    out.set_thread_labels(container.thread_labels);
  }
  for (const plan::PullJob& pull : from.pulls) {
    pb::PullJob& out = *to.add_pulls();
    out.set_type(ToProto(pull.type));
    out.set_port(static_cast<uint32_t>(pull.port));
    out.set_path(pull.path);
    out.mutable_parameters()->insert(pull.parameters.begin(), pull.parameters.end());
    out.set_interval_ms(Millis(pull.interval_ns));
    out.set_timeout_ms(Millis(pull.timeout_ns));
    out.set_container(pull.container);
    out.set_backend(pull.backend);
    out.mutable_labels()->insert(pull.labels.begin(), pull.labels.end());
    if (!pull.tls) continue;
    out.mutable_tls()->set_insecure_skip_verify(pull.tls->insecure_skip_verify);
    out.mutable_tls()->set_ca_pem(pull.tls->ca_pem);
    out.mutable_tls()->set_server_name(pull.tls->server_name);
  }
}

void ToProto(const plan::AgentConfig& from, pb::AgentConfig& to) {
  to.set_sampling_frequency_hz(static_cast<uint32_t>(from.sampling_frequency_hz));
  to.set_without_inlines(!from.inlines);
  to.set_stack_depth(static_cast<uint32_t>(from.stack_depth));
  to.mutable_debuginfod_urls()->Add(from.debuginfod_urls.begin(), from.debuginfod_urls.end());
  to.set_cpu_budget_millicores(from.cpu_budget_millicores);
  for (const plan::Backend& backend : from.backends) {
    pb::Backend& out = *to.add_backends();
    out.set_name(backend.name);
    out.set_endpoint(backend.endpoint);
    out.set_tenant_id(backend.tenant_id);
    out.set_ca_pem(backend.ca_pem);
    out.set_server_name(backend.server_name);
    out.set_insecure_skip_verify(backend.insecure_skip_verify);
    out.set_authorization(backend.authorization);
    out.set_hold(backend.hold);
    out.set_ingestion_window_ms(backend.ingestion_window_ns / kNanosPerMilli);
    out.set_bytes_per_second(backend.bytes_per_second);
    out.set_max_profile_bytes(backend.max_profile_bytes);
    out.set_protocol(ToProto(backend.protocol));
  }
}

void FromProto(const pb::Report& from, plan::NodeReport& to) {
  to.received = true;
  to.sampling = from.node().sampling();
  to.problems.clear();
  for (int i = 0; i < std::min(from.node().problems_size(), kMaxNodeProblems); ++i) {
    const pb::Problem& problem = from.node().problems(i);
    to.problems.push_back({Text(problem.reason()), Text(problem.message())});
  }
  to.backlogs.clear();
  for (int i = 0; i < std::min(from.backlogs_size(), kMaxBacklogs); ++i) {
    const pb::BackendBacklog& backlog = from.backlogs(i);
    to.backlogs[Text(backlog.backend())] = {.profiles = std::max<int64_t>(0, backlog.profiles()),
                                            .bytes = std::max<int64_t>(0, backlog.bytes()),
                                            .oldest_ns = backlog.oldest_unix_ms() * kNanosPerMilli};
  }
  to.collections.clear();
  for (int i = 0; i < std::min(from.collections_size(), kMaxCollections); ++i) {
    const pb::CollectionHealth& health = from.collections(i);
    const std::optional<ProfileType> type = FromProto(health.type());
    const std::optional<CollectionState> state = FromProto(health.state());
    if (!type || !state) continue;
    plan::CollectionHealth& collection =
        to.collections[{health.pod_uid(), health.container(), *type}];
    collection = {.state = *state,
                  .reason = Text(health.reason()),
                  .message = Text(health.message()),
                  .last_delivered_ns = health.last_delivered_unix_ms() * kNanosPerMilli,
                  .failing_since_ns = health.failing_since_unix_ms() * kNanosPerMilli};
    for (int k = 0; k < std::min(health.stacks_size(), kMaxStackEnds); ++k) {
      const pb::Stacks& stacks = health.stacks(k);
      collection.stacks[Text(stacks.end())] =
          static_cast<int64_t>(std::min(stacks.count(), kMaxStackCount));
    }
  }
}

}  // namespace flamefleet::control
