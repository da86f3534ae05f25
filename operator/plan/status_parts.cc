// SPDX-License-Identifier: Apache-2.0
#include "operator/plan/status_parts.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/clock.h"
#include "base/utf8.h"
#include "operator/plan/condition_reasons.h"
#include "operator/plan/status.h"

namespace flamefleet::plan {
namespace {

int64_t WholeSeconds(int64_t ns) {
  return ns - ns % kNanosPerSecond;
}

}  // namespace

api::Condition MakeCondition(std::string_view type, Verdict verdict, int64_t generation,
                             const std::vector<api::Condition>& before, int64_t now_ns) {
  api::Condition condition{.type = std::string(type),
                           .status = std::string(verdict.status),
                           .reason = std::string(verdict.reason),
                           .message = Bounded(std::move(verdict.message)),
                           .observed_generation = generation,
                           .last_transition_ns = WholeSeconds(now_ns)};
  const auto previous = std::ranges::find(before, condition.type, &api::Condition::type);
  if (previous != before.end() && previous->status == condition.status) {
    condition.last_transition_ns = previous->last_transition_ns;
  }
  return condition;
}

void PodTallier::Add(const api::Pod& pod, const PodHealth& health) {
  tally_.unknown = tally_.unknown || health.unknown;
  if (health.state == PodState::kStopped) {
    ++tally_.stopped;
    return;
  }
  ++tally_.counts.matched;
  tally_.delivering = tally_.delivering || health.delivering;
  tally_.last_delivered_ns = std::max(tally_.last_delivered_ns, health.last_delivered_ns);
  if (health.state == PodState::kProfiled) ++tally_.counts.profiled;
  if (health.state == PodState::kIdle) ++tally_.counts.idle;
  if (health.state == PodState::kWaiting) {
    ++tally_.counts.waiting;
    if (tally_.waiting_for.empty()) tally_.waiting_for = health.message;
  }
  if (health.state != PodState::kFailing) return;
  ++tally_.counts.failing;
  api::FailingPod failing{.ns = with_namespace_ ? pod.meta.ns : "",
                          .name = pod.meta.name,
                          .node = pod.node,
                          .profile = health.profile,
                          .reason = health.reason,
                          .message = Bounded(health.message)};
  failing.since_ns = health.failing_since_ns;
  AddFailing(std::move(failing));
}

void PodTallier::Add(const NodePods& pods) {
  tally_.unknown = tally_.unknown || pods.unknown;
  tally_.counts.matched += pods.counts.matched;
  tally_.counts.profiled += pods.counts.profiled;
  tally_.counts.failing += pods.counts.failing;
  tally_.counts.waiting += pods.counts.waiting;
  tally_.counts.idle += pods.counts.idle;
  for (const api::FailingPod& failing : pods.failing)
    AddFailing(failing);
}

void PodTallier::AddFailing(api::FailingPod failing) {
  if (failing.since_ns == 0) {
    const auto same = std::ranges::find_if(before_, [&](const api::FailingPod& before) {
      return std::tie(before.ns, before.name, before.reason) ==
             std::tie(failing.ns, failing.name, failing.reason);
    });
    failing.since_ns = same != before_.end() ? same->since_ns : now_ns_;
  }
  failing.since_ns = WholeSeconds(failing.since_ns);
  tally_.failing.push_back(std::move(failing));
}

PodTally PodTallier::Finish() {
  std::ranges::sort(tally_.failing, {}, [](const api::FailingPod& pod) {
    return std::tie(pod.since_ns, pod.ns, pod.name);
  });
  if (tally_.failing.size() > kMaxFailingPods) tally_.failing.resize(kMaxFailingPods);
  return std::move(tally_);
}

std::vector<api::PodWarning> CollectWarnings(const std::vector<PodView>& pods,
                                             bool with_namespace) {
  std::vector<api::PodWarning> warnings;
  for (const PodView& view : pods) {
    for (const Problem& problem : view.plan->warnings) {
      warnings.push_back({with_namespace ? view.pod->meta.ns : "", view.pod->meta.name,
                          std::string(problem.reason), Bounded(problem.message)});
    }
  }
  SortWarnings(warnings);
  return warnings;
}

void SortWarnings(std::vector<api::PodWarning>& warnings) {
  std::ranges::stable_sort(warnings, {}, [](const api::PodWarning& warning) {
    return std::tie(warning.ns, warning.name);
  });
  if (warnings.size() > kMaxWarnings) warnings.resize(kMaxWarnings);
}

std::string Bounded(std::string message) {
  if (message.size() <= kMaxMessage) return message;
  return CutUtf8(std::move(message), kMaxMessage - 3) + "...";
}

std::string Count(int64_t number, std::string_view noun) {
  return std::to_string(number) + " " + std::string(noun) + (number == 1 ? "" : "s");
}

Verdict FailingVerdict(const PodTally& tally) {
  const api::FailingPod& oldest = tally.failing.front();
  const bool one_reason = std::ranges::all_of(
      tally.failing, [&](const api::FailingPod& pod) { return pod.reason == oldest.reason; });
  std::string where = oldest.ns.empty() ? oldest.name : oldest.ns + "/" + oldest.name;
  if (!oldest.profile.empty()) where += " (" + oldest.profile + ")";
  return {kFalse, one_reason ? std::string_view(oldest.reason) : condition_reasons::kSeveralReasons,
          std::to_string(tally.counts.failing) + " of " + Count(tally.counts.matched, "pod") +
              " failing, the longest is " + where + ": " + oldest.reason + ": " + oldest.message};
}

}  // namespace flamefleet::plan
