// SPDX-License-Identifier: Apache-2.0
// NodeTable: the nodes that agents have spoken for, and which stream of a node speaks for it now. A
// stream is no more than an address here: who sends over it, and when, is AgentHub's.
//
// Thread: one at a time. Pure: times are inputs.
// Bounds: kMaxIdleStreams per node; a node is forgotten kForgetAfterNs after its last stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "operator/control/node_configs.h"
#include "operator/plan/fleet.h"

namespace flamefleet::control {

class AgentStream;

class NodeTable {
 public:
  // Agents of other pools on one node. They should be none.
  static constexpr size_t kMaxIdleStreams = 8;
  static constexpr int64_t kForgetAfterNs = 600 * kNanosPerSecond;

  // Whether one more stream may join.
  bool HasRoom(const std::string& node) const;
  // Gives a stream its place at its node; an older one of the same agent (node and pool) loses its
  // own and is given back, nullptr: there is none.
  AgentStream* Join(const std::string& node, const std::string& pool, AgentStream* stream);
  struct Left {
    bool spoke = false;           // for the node
    AgentStream* next = nullptr;  // that does now
  };
  Left Leave(const std::string& node, AgentStream* stream, int64_t wall_ns);
  // The pool whose agent shall speak for the node; empty: no pool. True when another stream than
  // before speaks now.
  bool SetOwner(const std::string& node, const std::string& pool);

  bool Speaks(const std::string& node, const AgentStream* stream) const;
  // All of a node, the one that speaks first.
  std::vector<AgentStream*> StreamsOf(const std::string& node) const;
  std::vector<std::string> Names() const;
  // That have a stream.
  size_t connected() const { return connected_; }

  // What the node said last; nullptr: it is not known. One that was given out never changes.
  std::shared_ptr<const plan::NodeReport> ReportOf(const std::string& node) const;
  void ChangeReport(const std::string& node, const std::function<void(plan::NodeReport&)>& change);

  // The backends whose credentials the node is told, with this assignment and its report;
  // `now_ns` is monotonic.
  std::set<std::string> BackendsOf(const std::string& node, const plan::NodeAssignment& assignment,
                                   int64_t now_ns);
  // Those for which that may be fewer now.
  std::vector<std::string> NodesWithFewerBackends(int64_t now_ns) const;

  void ForgetOld(int64_t wall_ns);

 private:
  struct Seat {
    AgentStream* stream = nullptr;  // nullptr: empty
    std::string pool;
  };
  struct Node {
    std::shared_ptr<const plan::NodeReport> report = std::make_shared<plan::NodeReport>();
    Seat speaker;
    std::vector<Seat> idle;  // of other pools
    BackendUse backends;     // of its work and its report
  };

  // Lets the stream of the pool that owns the node speak for it; without that the one that does, or
  // the newest. True when that is another one than before.
  bool Elect(const std::string& name, Node& node);

  std::map<std::string, Node> nodes_;
  std::map<std::string, std::string> owners_;  // node -> pool
  size_t connected_ = 0;
};

}  // namespace flamefleet::control
