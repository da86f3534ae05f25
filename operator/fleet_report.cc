// SPDX-License-Identifier: Apache-2.0
#include "operator/fleet_report.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace flamefleet {
namespace {

using nlohmann::json;

bool IsReady(const std::vector<api::Condition>& conditions) {
  return std::ranges::any_of(conditions, [](const api::Condition& condition) {
    return condition.type == "Ready" && condition.status == "True";
  });
}

// `objects` are by name.
template <typename Object>
json ListOf(std::vector<std::shared_ptr<const Object>> objects, size_t* room) {
  std::ranges::stable_partition(
      objects, [](const auto& object) { return !IsReady(object->status.conditions); });
  json items = json::array();
  for (const auto& object : objects) {
    json item = {{"name", object->meta.name}, {"status", api::EncodeStatus(object->status)}};
    if (!object->meta.ns.empty()) item["namespace"] = object->meta.ns;
    const size_t bytes = item.dump(-1, ' ', false, json::error_handler_t::replace).size();
    if (items.size() == kMaxReportItems || bytes > *room) break;
    *room -= bytes;
    items.push_back(std::move(item));
  }
  return {{"total", objects.size()}, {"items", std::move(items)}};
}

}  // namespace

std::string FleetReport(const ClusterCache& cache) {
  constexpr size_t kAround = 1024;  // names of the lists, commas
  size_t room = kMaxReportBytes - kAround;
  json report;
  report["pools"] = ListOf(cache.pools.List(), &room);
  report["backends"] = ListOf(cache.backends.List(), &room);
  report["targets"] = ListOf(cache.targets.List(), &room);
  return report.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace flamefleet
