// SPDX-License-Identifier: Apache-2.0
// AgentStream: one stream of the control channel, as gRPC's callback API sees it. It only passes on
// what happens; what it means is decided by its owner.
//
// Thread: callbacks come from gRPC's threads; OnReadDone and OnWriteDone may run at the same time.
// The members that the owner shares between them are guarded by the owner's mutex.
#pragma once

#include <grpcpp/grpcpp.h>

#include <string>

#include "operator/control/outbox.h"
#include "operator/security/admission.h"
#include "proto/fleet/control.grpc.pb.h"

namespace flamefleet::control {

namespace pb = fleet::v1alpha1;

class AgentStream final : public grpc::ServerBidiReactor<pb::AgentMessage, pb::OperatorMessage> {
 public:
  class Owner {
   public:
    Owner() = default;
    Owner(const Owner&) = delete;
    Owner& operator=(const Owner&) = delete;
    virtual ~Owner() = default;
    virtual void OnMessage(AgentStream& stream, const pb::AgentMessage& message) = 0;
    virtual void OnReadEnd(AgentStream& stream) = 0;  // the agent closed its side, or is gone
    virtual void OnWritten(AgentStream& stream, bool ok) = 0;
    virtual void OnGone(
        AgentStream& stream) = 0;  // the last call; the stream may be destroyed in it
  };

  AgentStream(Owner& owner, std::string peer_address, int64_t opened_at_ns)
      : peer(std::move(peer_address)), opened_ns(opened_at_ns), owner_(owner) {}
  void Begin() { StartRead(&in_); }

  void OnReadDone(bool ok) override {
    if (!ok) {
      owner_.OnReadEnd(*this);
      return;
    }
    owner_.OnMessage(*this, in_);
    StartRead(&in_);  // fails at once when the owner has ended the stream
  }
  void OnCancel() override { owner_.OnReadEnd(*this); }  // also before the first read
  void OnWriteDone(bool ok) override { owner_.OnWritten(*this, ok); }
  void OnDone() override { owner_.OnGone(*this); }

  const std::string peer;
  const int64_t opened_ns;  // monotonic

  // Guarded by the owner's mutex.
  bool checking = true;              // a token of it is being checked
  security::AgentIdentity identity;  // of the token; node is empty before it was admitted
  std::string node;                  // empty before Hello
  std::string pool;
  Outbox outbox;
  pb::OperatorMessage out;  // being written while `writing`
  bool writing = false;
  bool beginning = false;  // Begin is being called
  bool ended = false;      // Finish was called, or will be once neither of the two is true
  grpc::Status end_status;

 private:
  Owner& owner_;
  pb::AgentMessage in_;
};

}  // namespace flamefleet::control
