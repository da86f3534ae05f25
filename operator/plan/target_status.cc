// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include "base/reasons.h"
#include "operator/plan/condition_reasons.h"
#include "operator/plan/status.h"
#include "operator/plan/status_parts.h"

namespace flamefleet::plan {
namespace {

Verdict Accepted(const api::ProfilingTarget& target, const BackendTable& backends) {
  if (backends.Find(target.spec.backend) != nullptr)
    return {kTrue, condition_reasons::kAccepted, "the spec can be served"};
  const std::string message =
      target.spec.backend.empty()
          ? "spec.backendRef: not set, and no ProfilingBackend says default: true"
          : "spec.backendRef.name: there is no ProfilingBackend \"" + target.spec.backend + "\"";
  return {kFalse, reasons::kNoBackend, message};
}

std::string StoppedNote(int64_t stopped) {
  return stopped == 0 ? "" : "; " + Count(stopped, "pod") + " opted out or paused";
}

// The first check that fails says why the target is not ready.
Verdict Ready(const api::ProfilingTarget& target, const Verdict& accepted, const PodTally& tally) {
  if (target.spec.paused) return {kFalse, reasons::kPaused, "spec.paused is true"};
  if (accepted.status != kTrue) return {kFalse, accepted.reason, accepted.message};
  const api::PodCounts& pods = tally.counts;
  if (pods.matched == 0) {
    return {kFalse, condition_reasons::kNoPods,
            "no running pod matches spec.selector" + StoppedNote(tally.stopped)};
  }
  if (pods.failing > 0) return FailingVerdict(tally);
  const std::string ratio = std::to_string(pods.profiled) + " of " + Count(pods.matched, "pod");
  if (pods.waiting > 0) {
    return {kFalse, reasons::kWaitingForSamples,
            ratio + " profiled, waiting for " + std::to_string(pods.waiting) + ": " +
                tally.waiting_for};
  }
  return {kTrue, condition_reasons::kAllPodsProfiled,
          "profiles of " + ratio + " reach the backend" + StoppedNote(tally.stopped)};
}

int64_t LastProfile(int64_t before_ns, int64_t newest_ns) {
  const bool moves = before_ns == 0 || newest_ns - before_ns >= kLastProfileStepNs;
  return newest_ns != 0 && moves ? newest_ns - newest_ns % 1'000'000'000 : before_ns;
}

}  // namespace

api::ProfilingTargetStatus TargetStatus(const api::ProfilingTarget& target,
                                        const std::vector<PodView>& pods,
                                        const BackendTable& backends, const StatusInput& input) {
  const api::ProfilingTargetStatus& before = target.status;
  const auto asked = [&](const Askers& askers) {
    return std::ranges::find(askers.targets, target.meta.name) != askers.targets.end();
  };
  PodTallier tallier(before.failing_pods, /*with_namespace=*/false, input.now_ns);
  std::set<std::string> nodes;
  std::set<std::string> profiling_nodes;
  for (const PodView& view : pods) {
    const PodHealth health = JudgePod(view, asked, input.now_ns);
    tallier.Add(*view.pod, health);
    if (!view.pod->node.empty() && health.state != PodState::kStopped) nodes.insert(view.pod->node);
    if (health.state == PodState::kProfiled) profiling_nodes.insert(view.pod->node);
  }
  PodTally tally = tallier.Finish();
  if (!input.settled && tally.unknown) return before;

  const int64_t generation = target.meta.generation;
  const Verdict accepted = Accepted(target, backends);
  api::ProfilingTargetStatus status;
  status.observed_generation = generation;
  status.conditions = {
      MakeCondition("Accepted", accepted, generation, before.conditions, input.now_ns),
      MakeCondition("Ready", Ready(target, accepted, tally), generation, before.conditions,
                    input.now_ns)};
  status.pods = tally.counts;
  status.nodes = {static_cast<int64_t>(nodes.size()), static_cast<int64_t>(profiling_nodes.size())};
  status.last_profile_ns = LastProfile(before.last_profile_ns, tally.last_delivered_ns);
  status.failing_pods = std::move(tally.failing);
  status.warnings = CollectWarnings(pods, /*with_namespace=*/false);
  return status;
}

}  // namespace flamefleet::plan
