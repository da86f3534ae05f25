// SPDX-License-Identifier: Apache-2.0
#include "tests/operator/fake_agent.h"

#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/thread.h"

namespace flamefleet {

using fleet::v1alpha1::AgentMessage;
using fleet::v1alpha1::CollectionHealth;
using fleet::v1alpha1::OperatorMessage;

namespace {

constexpr std::chrono::milliseconds kReconnectInterval{50};

std::shared_ptr<grpc::Channel> OpenChannel(const FakeAgent::Access& access) {
  grpc::SslCredentialsOptions tls;
  tls.pem_root_certs = access.trusted;
  grpc::ChannelArguments arguments;
  arguments.SetSslTargetNameOverride(access.name);
  return grpc::CreateCustomChannel(access.address, grpc::SslCredentials(tls), arguments);
}

}  // namespace

FakeAgent::FakeAgent(const Access& access, std::string node, std::string pool)
    : token_(access.token),
      node_(std::move(node)),
      pool_(std::move(pool)),
      stub_(fleet::v1alpha1::FleetControl::NewStub(OpenChannel(access))),
      thread_(StartThread("fake-agent", [this](const std::stop_token& stop) { Run(stop); })) {}

FakeAgent::~FakeAgent() {
  thread_.request_stop();
  {
    MutexLock lock(&mutex_);
    if (context_) context_->TryCancel();
  }
  thread_.join();
}

void FakeAgent::Run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    std::unique_ptr<Stream> stream;
    {
      MutexLock lock(&mutex_);
      context_ = std::make_unique<grpc::ClientContext>();
      context_->set_wait_for_ready(false);
      context_->AddMetadata("authorization", "Bearer " + token_);
      stream = stub_->Connect(context_.get());
    }
    ServeStream(*stream);
    {
      MutexLock lock(&mutex_);
      stream_ = nullptr;
    }
    (void)stream->Finish().ok();
    WaitForStop(stop, kReconnectInterval);
  }
}

void FakeAgent::ServeStream(Stream& stream) {
  AgentMessage hello;
  hello.mutable_hello()->set_node(node_);
  hello.mutable_hello()->set_pool(pool_);
  hello.mutable_hello()->set_pod_name("agent-" + node_);
  hello.mutable_hello()->set_agent_version("test");
  if (!stream.Write(hello)) return;
  {
    MutexLock lock(&mutex_);
    stream_ = &stream;
  }
  OperatorMessage message;
  while (stream.Read(&message)) {
    MutexLock lock(&mutex_);
    Handle(message);
    AgentMessage ack;
    ack.mutable_ack()->set_version(version_);
    if (!stream.Write(ack)) return;
    if (reporting_) {
      AgentMessage report;
      *report.mutable_report() = BuildReport();
      if (!stream.Write(report)) return;
    }
  }
}

void FakeAgent::Handle(const OperatorMessage& message) {
  if (message.has_snapshot()) {
    pods_.clear();
    version_ = message.snapshot().version();
    config_ = message.snapshot().config();
    for (const PodAssignment& pod : message.snapshot().pods())
      pods_[pod.uid()] = pod;
    ++snapshots_;
    return;
  }
  EXPECT_EQ(message.delta().version(), version_ + 1) << "a gap in the versions";
  version_ = message.delta().version();
  if (message.delta().has_config()) config_ = message.delta().config();
  for (const PodAssignment& pod : message.delta().upserted_pods())
    pods_[pod.uid()] = pod;
  for (const std::string& uid : message.delta().removed_pod_uids())
    pods_.erase(uid);
  ++deltas_;
}

FakeAgent::Report FakeAgent::BuildReport() const {
  Report report;
  report.mutable_node()->set_sampling(true);
  const int64_t now_ms = SystemClock().WallNanos() / kNanosPerMilli;
  const auto add = [&](const PodAssignment& pod, const std::string& container,
                       fleet::v1alpha1::ProfileType type) {
    CollectionHealth& health = *report.add_collections();
    health.set_pod_uid(pod.uid());
    health.set_container(container);
    health.set_type(type);
    if (!failing_pod_.empty() && pod.name() == failing_pod_) {
      health.set_state(fleet::v1alpha1::COLLECTION_STATE_FAILING);
      health.set_reason(failing_reason_);
      health.set_message("told by the test");
      health.set_failing_since_unix_ms(now_ms);
    } else {
      health.set_state(fleet::v1alpha1::COLLECTION_STATE_DELIVERING);
      health.set_last_delivered_unix_ms(now_ms);
      health.set_profiles_delivered(1);
    }
  };
  for (const auto& [uid, pod] : pods_) {
    for (const auto& container : pod.containers()) {
      add(pod, container.name(), fleet::v1alpha1::PROFILE_TYPE_CPU);
    }
    for (const auto& pull : pod.pulls())
      add(pod, pull.container(), pull.type());
  }
  return report;
}

void FakeAgent::ReportAllDelivering(const std::string& failing_pod, const std::string& reason) {
  MutexLock lock(&mutex_);
  reporting_ = true;
  failing_pod_ = failing_pod;
  failing_reason_ = reason;
  if (stream_ == nullptr) return;
  AgentMessage report;
  *report.mutable_report() = BuildReport();
  stream_->Write(report);
}

std::map<std::string, std::string> FakeAgent::Assigned() const {
  MutexLock lock(&mutex_);
  std::map<std::string, std::string> assigned;
  for (const auto& [uid, pod] : pods_)
    assigned[pod.name()] = pod.DebugString();
  return assigned;
}

bool FakeAgent::Has(const std::string& pod) const {
  return Assigned().contains(pod);
}

FakeAgent::PodAssignment FakeAgent::Pod(const std::string& pod) const {
  MutexLock lock(&mutex_);
  for (const auto& [uid, assignment] : pods_) {
    if (assignment.name() == pod) return assignment;
  }
  return {};
}

fleet::v1alpha1::AgentConfig FakeAgent::Config() const {
  MutexLock lock(&mutex_);
  return config_;
}

int FakeAgent::snapshots() const {
  MutexLock lock(&mutex_);
  return snapshots_;
}

int FakeAgent::deltas() const {
  MutexLock lock(&mutex_);
  return deltas_;
}

}  // namespace flamefleet
