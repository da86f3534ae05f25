// SPDX-License-Identifier: Apache-2.0
#include "agent/run/node_agent.h"

#include <sstream>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory_limit.h"
#include "base/reasons.h"

namespace flamefleet::agent {
namespace {

// How much of the pod's termination grace period (15 s) delivery of the last window may take.
constexpr std::chrono::seconds kDrainTimeout{8};
constexpr std::chrono::milliseconds kWindow{10'000};
// Taking an assignment into force ends pushes to backends that are gone and writes a file.
constexpr std::chrono::minutes kControlLimit{5};

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    if (!line.empty()) lines.push_back(line);
  }
  return lines;
}

}  // namespace

NodeAgent::NodeAgent(std::unique_ptr<Spool> spool)
    : health_(SystemClock()), pusher_(LaneOptions{}, std::move(spool), &metrics_, &health_) {}

Result<std::unique_ptr<NodeAgent>> NodeAgent::Create(const NodeAgentOptions& options,
                                                     std::unique_ptr<Spool> spool) {
  std::unique_ptr<NodeAgent> agent(new NodeAgent(std::move(spool)));
  NodeAgent* const self = agent.get();
  agent->scraper_ = std::make_unique<Scraper>(
      SystemClock(), &agent->metrics_, &agent->health_,
      [self](const FinishedProfile& profile) { self->pusher_.Push(profile); },
      ScrapeLimitsFor(OwnMemoryLimit()));
  agent->StartSampling(options);
  FF_ASSIGN_OR_RETURN(agent->http_,
                      ServeEndpoints(options.listen, &agent->metrics_,
                                     {.healthy = [self] { return self->Healthy(); },
                                      .sampled = [self] { return self->Sampled(); },
                                      .delivered = [self] { return self->Delivered(); }}));
  if (!options.state_dir.empty()) {
    agent->saved_.emplace(options.state_dir, options.control.node);
    agent->ResumeSavedAssignment();
  }
  agent->control_ = std::make_unique<ControlClient>(
      options.control, &agent->health_, &agent->metrics_,
      [self](const fleet::v1alpha1::OperatorMessage& message) {
        const Progress::Work work(self->control_progress_, kControlLimit);
        FF_RETURN_IF_ERROR(self->Apply(message));
        self->SaveAssignment();
        return OkStatus();
      },
      [self] {
        const Progress::Work work(self->control_progress_, kControlLimit);
        return self->Report();
      });
  return agent;
}

NodeAgent::~NodeAgent() {
  control_.reset();
  http_.reset();
  scraper_.reset();
  budget_.reset();
  pipeline_.reset();  // hands over the last window
  if (!pusher_.Drain(kDrainTimeout)) {
    Log(LogLevel::kWarn, "stopping with profiles that no backend took yet", {});
  }
}

void NodeAgent::StartSampling(const NodeAgentOptions& options) {
  DebugFileFinder find_debug_file;
  if (!options.debug_dir.empty()) {
    debuginfod_.emplace(options.debug_dir, &metrics_);
    find_debug_file = [this](const std::string& build_id) { return debuginfod_->Find(build_id); };
  }
  auto pipeline = CpuPipeline::Create({.scope = CpuPipelineOptions::Scope::kContainers,
                                       .window = kWindow,
                                       .proc_root = options.proc_root,
                                       .find_debug_file = std::move(find_debug_file)},
                                      &metrics_, [this](const FinishedProfile& profile) {
                                        health_.CountStacks(profile);
                                        pusher_.Push(profile);
                                      });
  if (pipeline.ok()) {
    pipeline_ = *std::move(pipeline);
    budget_ = std::make_unique<BudgetKeeper>(pipeline_.get(), &metrics_);
    return;
  }
  problems_ = Lines(ErrorMessage(pipeline.status()));
  for (const std::string& problem : problems_) {
    Log(LogLevel::kError, "eBPF sampling cannot start, pulled profiles go on",
        {{"error", problem}});
  }
  health_.SetSamplingUnavailable(problems_.empty() ? "unknown cause" : problems_.front());
}

void NodeAgent::ResumeSavedAssignment() {
  Result<fleet::v1alpha1::Snapshot> saved = saved_->Load();
  if (saved.ok()) {
    fleet::v1alpha1::OperatorMessage message;
    *message.mutable_snapshot() = *std::move(saved);
    const Status applied = Apply(message);
    if (!applied.ok()) {
      Log(LogLevel::kWarn, "saved assignment not in force", {{"error", applied}});
      return;
    }
    Log(LogLevel::kInfo, "saved assignment in force until the operator answers", {});
  } else if (saved.status().code() != StatusCode::kNotFound) {
    Log(LogLevel::kWarn, "saved assignment not used", {{"error", saved.status()}});
  }
}

void NodeAgent::SaveAssignment() {
  if (!saved_) return;
  const Status kept = saved_->Save(assignment_.ToSnapshot());
  if (!kept.ok()) {
    Log(LogLevel::kWarn, "assignment not saved, a restart without the operator would lose it",
        {{"error", kept}});
  }
}

Status NodeAgent::Apply(const fleet::v1alpha1::OperatorMessage& message) {
  FF_RETURN_IF_ERROR(assignment_.Apply(message));
  Work work = assignment_.BuildWork(kWindow);
  // Backends first: profiles of new jobs need them.
  const Status backends = pusher_.SetBackends(work.backends);
  if (!backends.ok()) {
    Log(LogLevel::kError, "backend cannot be used, its profiles wait", {{"error", backends}});
  }
  health_.SetCollections(work.collections);
  sampling_wanted_ = !work.cpu_targets.empty() || work.host;
  if (pipeline_ != nullptr) {
    budget_->SetLimits(work.cpu);
    pipeline_->SetLines(work.inlines);
    if (debuginfod_) debuginfod_->SetServers(std::move(work.debuginfod_urls));
    const Status depth = pipeline_->SetStackDepth(work.stack_depth);
    if (!depth.ok()) Log(LogLevel::kError, "stack depth not changed", {{"error", depth}});
    pipeline_->SetTargets(std::move(work.cpu_targets), std::move(work.host));
  }
  scraper_->SetJobs(work.scrape_jobs);
  Log(LogLevel::kInfo, "assignment in force",
      {{"version", assignment_.version()}, {"collections", work.collections.size()}});
  return OkStatus();
}

fleet::v1alpha1::Report NodeAgent::Report() {
  NodeStatus node = {
      .sampling = pipeline_ != nullptr, .problems = problems_, .backlogs = pusher_.Backlogs()};
  if (pipeline_ != nullptr) {
    const std::string silence = pipeline_->Silence();
    health_.SetSamplingUnavailable(silence);
    node.sampling = silence.empty();
    if (!node.sampling) node.problems.push_back(silence);
    node.shortages = budget_->Shortages();
    for (std::string& shortage : pipeline_->Shortages())
      node.shortages.push_back({reasons::kProfilesIncomplete, std::move(shortage)});
  }
  return BuildReport(health_.Snapshot(), node);
}

Status NodeAgent::Healthy() const {
  if (pipeline_ != nullptr) FF_RETURN_IF_ERROR(pipeline_->CheckProgress());
  FF_RETURN_IF_ERROR(scraper_->CheckProgress());
  FF_RETURN_IF_ERROR(pusher_.CheckProgress());
  return control_progress_.Check();
}

Status NodeAgent::Sampled() const {
  SamplingState state = {.wanted = sampling_wanted_, .running = pipeline_ != nullptr};
  if (state.running) {
    state.nanos_since_drain = SystemClock().MonotonicNanos() - pipeline_->LastDrainMonotonicNanos();
  }
  return JudgeReadiness(state);
}

Status NodeAgent::Delivered() const {
  return JudgeDelivery(health_.Snapshot());
}

}  // namespace flamefleet::agent
