// SPDX-License-Identifier: Apache-2.0
// NodeAgent: the agent of a node of a cluster: the one place that sees all parts and wires them.
//
//   operator --> control --> sample ... compress --+--> push --> backend
//                       \--> scrape ---------------+      \--> health --> control --> operator
//
// Thread: Create and the destructor from main; Apply and Report run on the control client's
// threads. Bounds: those of the parts. On destruction the last window is flushed and delivered, for
//         kDrainTimeout at most.
// Errors: Create: the HTTP address cannot be used. Sampling that cannot start is a problem that the
//         operator is told; what is pulled goes on.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/control/assignment.h"
#include "agent/control/assignment_file.h"
#include "agent/control/control_client.h"
#include "agent/debuginfo/debuginfod.h"
#include "agent/health/collection_health.h"
#include "agent/health/http_endpoints.h"
#include "agent/pipeline/cpu_pipeline.h"
#include "agent/push/pusher.h"
#include "agent/run/budget_keeper.h"
#include "agent/scrape/scraper.h"
#include "base/metrics.h"
#include "base/progress.h"

namespace flamefleet::agent {

struct NodeAgentOptions {
  ControlOptions control;
  std::string listen = ":9090";
  std::string proc_root = "/proc";
  std::string state_dir;  // where the assignment is kept; empty: nowhere
  std::string debug_dir;  // where fetched debug files are kept; empty: none is fetched
};

class NodeAgent {
 public:
  // `spool` null: profiles wait in memory.
  static Result<std::unique_ptr<NodeAgent>> Create(const NodeAgentOptions& options,
                                                   std::unique_ptr<Spool> spool = nullptr);
  ~NodeAgent();
  NodeAgent(const NodeAgent&) = delete;
  NodeAgent& operator=(const NodeAgent&) = delete;

  uint16_t http_port() const { return http_->port(); }

 private:
  explicit NodeAgent(std::unique_ptr<Spool> spool);

  void StartSampling(const NodeAgentOptions& options);
  void ResumeSavedAssignment();
  void SaveAssignment();
  Status Apply(const fleet::v1alpha1::OperatorMessage& message);
  fleet::v1alpha1::Report Report();
  Status Healthy() const;
  Status Sampled() const;
  Status Delivered() const;

  // In the order in which they depend on each other.
  Metrics metrics_;
  CollectionHealthBook health_;
  Pusher pusher_;
  std::unique_ptr<Scraper> scraper_;
  std::optional<Debuginfod> debuginfod_;   // none without a folder
  std::unique_ptr<CpuPipeline> pipeline_;  // null when sampling cannot start
  std::unique_ptr<BudgetKeeper> budget_;   // null as the pipeline
  std::vector<std::string> problems_;      // why; constant after StartSampling
  std::unique_ptr<HttpServer> http_;

  Progress control_progress_{"control"};
  std::optional<AssignmentFile> saved_;  // none: it is not kept; constant after Create
  Assignment assignment_;                // control thread only, once that runs
  std::atomic<bool> sampling_wanted_ = false;

  std::unique_ptr<ControlClient> control_;
};

}  // namespace flamefleet::agent
