// SPDX-License-Identifier: Apache-2.0
// Parts that the status of several kinds is made of. Only for the .cc files of this folder.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "operator/api/kinds.h"
#include "operator/plan/pod_health.h"
#include "operator/plan/status.h"

namespace flamefleet::plan {

// What a check found: a condition without its book-keeping.
struct Verdict {
  std::string_view status;  // "True", "False" or "Unknown"
  std::string_view reason;  // of a list, or of what the verdict is about, which outlives it
  std::string message;
};
inline constexpr std::string_view kTrue = "True";
inline constexpr std::string_view kFalse = "False";
inline constexpr std::string_view kUnknown = "Unknown";

// The condition of this type; lastTransitionTime is that of `before` unless the status flips.
api::Condition MakeCondition(std::string_view type, Verdict verdict, int64_t generation,
                             const std::vector<api::Condition>& before, int64_t now_ns);

// Health of many pods, added up.
struct PodTally {
  api::PodCounts counts;
  int64_t stopped = 0;
  bool delivering = false;  // a wanted profile reached its backend lately
  int64_t last_delivered_ns = 0;
  bool unknown = false;                  // some pod's agent has not said anything yet
  std::vector<api::FailingPod> failing;  // the oldest first, at most kMaxFailingPods
  std::string waiting_for;               // the message of the first that waits
};

class PodTallier {
 public:
  // `before` keeps the times of failures that go on; `with_namespace` for cluster-scoped kinds.
  PodTallier(const std::vector<api::FailingPod>& before, bool with_namespace, int64_t now_ns)
      : before_(before), with_namespace_(with_namespace), now_ns_(now_ns) {}

  void Add(const api::Pod& pod, const PodHealth& health);
  void Add(const NodePods& pods);
  PodTally Finish();

 private:
  // `failing` with the time that the agent says, or that it had before, or that it is now.
  void AddFailing(api::FailingPod failing);

  const std::vector<api::FailingPod>& before_;
  const bool with_namespace_;
  const int64_t now_ns_;
  PodTally tally_;
};

// Warnings of all pods, by pod, at most kMaxWarnings.
std::vector<api::PodWarning> CollectWarnings(const std::vector<PodView>& pods, bool with_namespace);
// Orders them by pod and leaves at most kMaxWarnings.
void SortWarnings(std::vector<api::PodWarning>& warnings);

// At most kMaxMessage bytes, cut between characters.
std::string Bounded(std::string message);

// "1 pod", "2 pods"
std::string Count(int64_t number, std::string_view noun);

// The failing pods in one sentence and one reason: theirs when they share it.
Verdict FailingVerdict(const PodTally& tally);

}  // namespace flamefleet::plan
