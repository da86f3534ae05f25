// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/reasons.h"
#include "base/stack_ends.h"
#include "operator/plan/condition_reasons.h"
#include "operator/plan/status.h"
#include "operator/plan/status_parts.h"

namespace flamefleet::plan {
namespace {

Verdict Accepted(const api::ProfilingTarget& target, const BackendTable& backends,
                 const std::string& not_watched) {
  if (!not_watched.empty()) return {kFalse, condition_reasons::kNamespaceNotWatched, not_watched};
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

// Why nothing can be delivered at all, if so.
std::optional<Verdict> Blocked(const api::ProfilingTarget& target, const Verdict& accepted,
                               const PodTally& tally) {
  if (target.spec.paused) return Verdict{kFalse, reasons::kPaused, "spec.paused is true"};
  if (accepted.status != kTrue) return Verdict{kFalse, accepted.reason, accepted.message};
  if (tally.counts.matched > 0) return std::nullopt;
  return Verdict{kFalse, condition_reasons::kNoPods,
                 "no running pod matches spec.selector" + StoppedNote(tally.stopped)};
}

std::string Ratio(const api::PodCounts& pods) {
  return std::to_string(pods.profiled) + " of " + Count(pods.matched, "pod");
}

Verdict Waiting(const PodTally& tally) {
  return {kFalse, reasons::kWaitingForSamples,
          Ratio(tally.counts) + " profiled, waiting for " + std::to_string(tally.counts.waiting) +
              ": " + tally.waiting_for};
}

// The first check that fails says why the target is not ready. Idle pods do not hold it back:
// there is nothing that anybody could do about them.
Verdict Ready(const PodTally& tally) {
  const api::PodCounts& pods = tally.counts;
  if (pods.failing > 0) return FailingVerdict(tally);
  if (pods.waiting > 0) return Waiting(tally);
  const std::string idle =
      pods.idle == 0 ? "" : "; " + std::to_string(pods.idle) + " had nothing to deliver yet";
  return {kTrue,
          pods.profiled > 0 ? condition_reasons::kAllPodsProfiled
                            : condition_reasons::kNothingToDeliver,
          "profiles of " + Ratio(pods) + " reach the backend" + idle + StoppedNote(tally.stopped)};
}

// Whether anything arrives, however much is wrong beside it.
Verdict Delivering(const PodTally& tally) {
  if (tally.delivering)
    return {kTrue, condition_reasons::kDelivering, "profiles of matched pods reach the backend"};
  if (tally.counts.failing > 0) return FailingVerdict(tally);
  if (tally.counts.waiting > 0) return Waiting(tally);
  return {
      kFalse, condition_reasons::kNothingToDeliver,
      "the matched pods have nothing to deliver: they use no CPU, or their endpoints are empty"};
}

// The two that kstatus reads, each only there while it is true: work goes on, or nothing will get
// better unless somebody changes something. What is not accepted may be waiting for an object that
// comes with the same apply, so it is stalled only after a while.
std::optional<std::pair<std::string_view, Verdict>> Progress(const api::Condition& accepted,
                                                             const PodTally& tally,
                                                             int64_t now_ns) {
  if (accepted.status != kTrue) {
    const bool stalled = now_ns - accepted.last_transition_ns >= kStalledAfterNs;
    return std::pair{stalled ? kStalled : kReconciling,
                     Verdict{kTrue, accepted.reason, accepted.message}};
  }
  if (tally.counts.waiting == 0) return std::nullopt;
  return std::pair{kReconciling,
                   Verdict{kTrue, condition_reasons::kStarting, Waiting(tally).message}};
}

// Adds what the agent says of the target's stacks in one pod.
void AddStacks(const PodView& view, const std::function<bool(const Askers&)>& asked,
               std::map<std::string, int64_t>* sums) {
  if (view.node.report == nullptr) return;
  for (const Collection& collection : view.plan->collections) {
    if (!asked(collection.askers)) continue;
    const auto health = view.node.report->collections.find(
        {view.pod->meta.uid, collection.container, collection.type});
    if (health == view.node.report->collections.end()) continue;
    for (const auto& [end, count] : health->second.stacks)
      (*sums)[end] += count;
  }
}

std::optional<api::ProfilingTargetStatus::Stacks> JudgeStacks(
    const std::map<std::string, int64_t>& sums) {
  int64_t total = 0;
  int64_t whole = 0;
  const std::pair<const std::string, int64_t>* worst = nullptr;
  for (const auto& sum : sums) {
    if (sum.first == kNoUserStack) continue;
    total += sum.second;
    if (sum.first == kWholeStack)
      whole = sum.second;
    else if (worst == nullptr || sum.second > worst->second)
      worst = &sum;
  }
  if (total < kLeastStacks) return std::nullopt;
  return api::ProfilingTargetStatus::Stacks{.whole_percent = whole * 100 / total,
                                            .cut_by = worst == nullptr ? "" : worst->first};
}

int64_t LastProfile(int64_t before_ns, int64_t newest_ns) {
  const bool moves = before_ns == 0 || newest_ns - before_ns >= kLastProfileStepNs;
  return newest_ns != 0 && moves ? newest_ns - newest_ns % 1'000'000'000 : before_ns;
}

}  // namespace

api::ProfilingTargetStatus TargetStatus(const api::ProfilingTarget& target,
                                        const std::vector<PodView>& pods,
                                        const BackendTable& backends, const StatusInput& input,
                                        const std::string& not_watched) {
  const api::ProfilingTargetStatus& before = target.status;
  const auto asked = [&](const Askers& askers) {
    return std::ranges::find(askers.targets, target.meta.name) != askers.targets.end();
  };
  PodTallier tallier(before.failing_pods, /*with_namespace=*/false, input.now_ns);
  std::set<std::string> nodes;
  std::set<std::string> profiling_nodes;
  std::map<std::string, int64_t> stacks;
  for (const PodView& view : pods) {
    const PodHealth health = JudgePod(view, asked, input.now_ns);
    tallier.Add(*view.pod, health);
    if (!view.pod->node.empty() && health.state != PodState::kStopped) nodes.insert(view.pod->node);
    AddStacks(view, asked, &stacks);
    if (health.state == PodState::kProfiled) profiling_nodes.insert(view.pod->node);
  }
  PodTally tally = tallier.Finish();
  if (!input.settled && tally.unknown) return before;

  const int64_t generation = target.meta.generation;
  const Verdict accepted = Accepted(target, backends, not_watched);
  api::ProfilingTargetStatus status;
  status.observed_generation = generation;
  const std::optional<Verdict> blocked = Blocked(target, accepted, tally);
  const auto add = [&](std::string_view type, const Verdict& verdict) -> const api::Condition& {
    return status.conditions.emplace_back(
        MakeCondition(type, verdict, generation, before.conditions, input.now_ns));
  };
  const api::Condition accepted_condition = add("Accepted", accepted);
  add("Ready", blocked ? *blocked : Ready(tally));
  add("Delivering", blocked ? *blocked : Delivering(tally));
  if (!target.spec.paused) {
    const auto progress = Progress(accepted_condition, tally, input.now_ns);
    if (progress) add(progress->first, progress->second);
  }
  status.pods = tally.counts;
  status.nodes = {static_cast<int64_t>(nodes.size()), static_cast<int64_t>(profiling_nodes.size())};
  status.stacks = JudgeStacks(stacks);
  status.last_profile_ns = LastProfile(before.last_profile_ns, tally.last_delivered_ns);
  status.failing_pods = std::move(tally.failing);
  status.warnings = CollectWarnings(pods, /*with_namespace=*/false);
  return status;
}

}  // namespace flamefleet::plan
