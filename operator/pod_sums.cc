// SPDX-License-Identifier: Apache-2.0
#include "operator/pod_sums.h"

#include <utility>

#include "operator/triggers.h"

namespace flamefleet {

PodSums::Kept PodSums::Set(const std::string& node, const std::string& pool, plan::NodePods sum,
                           std::shared_ptr<const plan::NodeReport> report) {
  Entry& entry = nodes_[node];
  const bool changed = entry.pool != pool || entry.sum != sum;
  entry = {pool, std::move(sum), std::move(report)};
  return {entry.sum, changed};
}

const plan::NodePods* PodSums::Find(const std::string& node, const std::string& pool,
                                    const std::shared_ptr<const plan::NodeReport>& report) {
  const auto found = nodes_.find(node);
  if (found == nodes_.end() || found->second.pool != pool) return nullptr;
  Entry& entry = found->second;
  // While an agent is away, time alone changes what becomes of its pods.
  if (report != nullptr && !report->connected) return nullptr;
  if (entry.report != report) {
    if (report == nullptr) return nullptr;
    const auto changed = ChangedPods(entry.report.get(), *report);
    if (!changed || !changed->empty()) return nullptr;
    entry.report = report;
  }
  return &entry.sum;
}

}  // namespace flamefleet
