// SPDX-License-Identifier: Apache-2.0
// AgentHub: the streams of all agents: what each may do and is sent. What is known of their nodes,
// and which stream speaks for one, is NodeTable's; connections, threads and the checking of tokens
// are ControlServer's.
//
// Thread:  any; internally locked. Handlers are called without the lock and must not block.
// Bounds:  kMaxStreams; per stream the assignment that was sent last and one message being written.
//          A stream that is not admitted is not read; one without Hello for kHelloDeadlineNs ends.
// Only for the .cc files of this folder: it drags in gRPC.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/metrics.h"
#include "base/mutex.h"
#include "operator/control/agent_stream.h"
#include "operator/control/node_configs.h"
#include "operator/control/node_table.h"
#include "operator/control/refusals.h"
#include "operator/plan/fleet.h"

namespace flamefleet::control {

class AgentHub final : public AgentStream::Owner {
 public:
  static constexpr size_t kMaxStreams = 20'000;
  static constexpr int64_t kHelloDeadlineNs = 30 * kNanosPerSecond;

  using StreamPtr = std::shared_ptr<AgentStream>;
  using ChangeHandler = std::function<void(const std::string& node)>;
  // The agent sent a newer token, to be checked and answered by Settle.
  using RenewalHandler = std::function<void(const StreamPtr& stream, const std::string& token)>;

  AgentHub(const Clock& clock, Metrics& metrics, ChangeHandler on_change,
           RenewalHandler on_renewal);

  // A new stream, which waits for Settle.
  StreamPtr Open(const std::string& peer);
  // Its token was checked.
  void Settle(AgentStream& stream, const security::Admission& admission);
  // Ends streams whose time is over. Call it about once a second.
  void Sweep();
  size_t streams() const;

  void SetConfig(const std::string& pool, plan::AgentConfig config);
  AssignmentPtr SetAssignment(const std::string& node, plan::NodeAssignment assignment,
                              const std::string& pool);
  std::shared_ptr<const plan::NodeReport> ReportOf(const std::string& node) const;
  std::vector<std::string> Nodes() const;

 private:
  void OnMessage(AgentStream& stream, const pb::AgentMessage& message) override;
  void OnReadEnd(AgentStream& stream) override { End(stream, grpc::Status::OK); }
  void OnWritten(AgentStream& stream, bool ok) override;
  void OnGone(AgentStream& stream) override;

  grpc::Status OnHello(AgentStream& stream, const pb::Hello& hello);
  grpc::Status OnAck(AgentStream& stream, const pb::Ack& ack);
  grpc::Status OnReport(AgentStream& stream, const pb::Report& report);
  grpc::Status OnRenewal(AgentStream& stream, const pb::Renewal& renewal);
  void Pump(AgentStream& stream);
  void End(AgentStream& stream, const grpc::Status& status);
  // Ends a stream whose agent may not, or may no longer, be served.
  void Refuse(AgentStream& stream, std::string_view refusal, const grpc::Status& status);

  const AssignmentPtr& AssignmentOf(const std::string& node) const FF_REQUIRES(mutex_);
  // All of a node, the idle ones too.
  std::vector<StreamPtr> StreamsOf(const std::string& node) const FF_REQUIRES(mutex_);
  void ShowConnected() FF_REQUIRES(mutex_);

  const Clock& clock_;
  const ChangeHandler on_change_;
  const RenewalHandler on_renewal_;
  GaugeMetric connected_;
  CounterMetric snapshots_;
  CounterMetric deltas_;
  CounterMetric protocol_errors_;
  CounterMetric renewals_;
  Refusals refusals_;
  const AssignmentPtr nothing_ = std::make_shared<const plan::NodeAssignment>();

  mutable Mutex mutex_;
  std::map<AgentStream*, StreamPtr> streams_ FF_GUARDED_BY(mutex_);  // until gRPC is done with each
  NodeTable nodes_ FF_GUARDED_BY(mutex_);
  std::map<std::string, ConfigPtr> configs_ FF_GUARDED_BY(mutex_);  // by pool
  NodeConfigs node_configs_ FF_GUARDED_BY(mutex_);
  std::map<std::string, AssignmentPtr> assignments_
      FF_GUARDED_BY(mutex_);  // by node; none is empty
};

}  // namespace flamefleet::control
