// SPDX-License-Identifier: Apache-2.0
#include "agent/control/assignment.h"

#include <algorithm>
#include <optional>

namespace flamefleet::agent {
namespace {

namespace proto = fleet::v1alpha1;
using std::chrono::milliseconds;

constexpr milliseconds kMinInterval{1'000};
constexpr milliseconds kMinTimeout{100};

std::optional<ProfileType> TypeOf(proto::ProfileType type) {
  switch (type) {
    case proto::PROFILE_TYPE_CPU:
      return ProfileType::kCpu;
    case proto::PROFILE_TYPE_MEMORY:
      return ProfileType::kMemory;
    case proto::PROFILE_TYPE_GOROUTINE:
      return ProfileType::kGoroutine;
    case proto::PROFILE_TYPE_MUTEX:
      return ProfileType::kMutex;
    case proto::PROFILE_TYPE_BLOCK:
      return ProfileType::kBlock;
    default:
      return std::nullopt;  // of a newer operator
  }
}

BackendProtocol ProtocolOf(const proto::Backend& backend) {
  switch (backend.protocol()) {
    case proto::BACKEND_PROTOCOL_PARCA:
      return BackendProtocol::kParca;
    case proto::BACKEND_PROTOCOL_OTLP:
      return BackendProtocol::kOtlp;
    default:
      return BackendProtocol::kPyroscope;
  }
}

Labels LabelsOf(const google::protobuf::Map<std::string, std::string>& labels) {
  return {labels.begin(), labels.end()};
}

void AddContainer(const std::string& pod_uid, const proto::ContainerAssignment& container,
                  milliseconds window, Work* work) {
  const CollectionKey key = {pod_uid, container.name(), ProfileType::kCpu};
  if (pod_uid.empty()) {
    work->collections.push_back({.key = key, .ebpf = true, .window = window});
    work->host = {
        .collection = key, .backend = container.backend(), .labels = LabelsOf(container.labels())};
    return;
  }
  const bool has_started = !container.id().empty();
  work->collections.push_back({.key = key, .ebpf = true, .can_run = has_started, .window = window});
  work->cpu_targets.push_back({.container_id = container.id(),
                               .collection = key,
                               .backend = container.backend(),
                               .labels = LabelsOf(container.labels()),
                               .thread_labels = container.thread_labels()});
}

void AddPull(const proto::PodAssignment& pod, const proto::PullJob& pull, Work* work) {
  const std::optional<ProfileType> type = TypeOf(pull.type());
  if (!type) return;
  const CollectionKey key = {pod.uid(), pull.container(), *type};
  const milliseconds interval = std::max(milliseconds(pull.interval_ms()), kMinInterval);
  const bool has_address = !pod.ip().empty();
  work->collections.push_back(
      {.key = key, .ebpf = false, .can_run = has_address, .window = interval});
  if (!has_address) return;
  std::optional<FetchTls> tls;
  if (pull.has_tls()) {
    tls = {.insecure_skip_verify = pull.tls().insecure_skip_verify(),
           .ca_pem = pull.tls().ca_pem(),
           .server_name = pull.tls().server_name()};
  }
  work->scrape_jobs.push_back({.key = key,
                               .address = pod.ip(),
                               .port = static_cast<uint16_t>(pull.port()),
                               .path = pull.path(),
                               .tls = std::move(tls),
                               .parameters = LabelsOf(pull.parameters()),
                               .interval = interval,
                               .timeout = std::max(milliseconds(pull.timeout_ms()), kMinTimeout),
                               .backend = pull.backend(),
                               .labels = LabelsOf(pull.labels())});
}

}  // namespace

Status Assignment::Apply(const proto::OperatorMessage& message) {
  if (message.has_snapshot()) {
    const proto::Snapshot& snapshot = message.snapshot();
    pods_.clear();
    for (const proto::PodAssignment& pod : snapshot.pods())
      pods_[pod.uid()] = pod;
    config_ = snapshot.config();
    version_ = snapshot.version();
    has_snapshot_ = true;
    return OkStatus();
  }
  if (!message.has_delta()) return InvalidArgumentError("operator sent an empty message");
  const proto::Delta& delta = message.delta();
  if (!has_snapshot_ || delta.version() != version_ + 1) {
    return DataLossError("operator sent delta " + std::to_string(delta.version()) +
                         ", version in force is " + std::to_string(version_));
  }
  for (const std::string& uid : delta.removed_pod_uids())
    pods_.erase(uid);
  for (const proto::PodAssignment& pod : delta.upserted_pods())
    pods_[pod.uid()] = pod;
  if (delta.has_config()) config_ = delta.config();
  version_ = delta.version();
  return OkStatus();
}

proto::Snapshot Assignment::ToSnapshot() const {
  proto::Snapshot snapshot;
  snapshot.set_version(version_);
  *snapshot.mutable_config() = config_;
  for (const auto& [uid, pod] : pods_)
    *snapshot.add_pods() = pod;
  return snapshot;
}

Work Assignment::BuildWork(milliseconds window) const {
  Work work = {
      .cpu = {.frequency_hz = config_.sampling_frequency_hz(),
              .millicores = config_.cpu_budget_millicores()},
      .stack_depth = config_.stack_depth(),
      .inlines = !config_.without_inlines(),
      .debuginfod_urls = {config_.debuginfod_urls().begin(), config_.debuginfod_urls().end()}};
  for (const proto::Backend& backend : config_.backends()) {
    work.backends.push_back({.name = backend.name(),
                             .endpoint = backend.endpoint(),
                             .tenant_id = backend.tenant_id(),
                             .ca_pem = backend.ca_pem(),
                             .server_name = backend.server_name(),
                             .insecure_skip_verify = backend.insecure_skip_verify(),
                             .authorization = backend.authorization(),
                             .hold = backend.hold(),
                             .ingestion_window_ns = backend.ingestion_window_ms() * kNanosPerMilli,
                             .bytes_per_second = backend.bytes_per_second(),
                             .max_profile_bytes = backend.max_profile_bytes(),
                             .protocol = ProtocolOf(backend)});
  }
  for (const auto& [uid, pod] : pods_) {
    for (const auto& container : pod.containers())
      AddContainer(uid, container, window, &work);
    for (const auto& pull : pod.pulls())
      AddPull(pod, pull, &work);
  }
  return work;
}

}  // namespace flamefleet::agent
