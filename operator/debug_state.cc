// SPDX-License-Identifier: Apache-2.0
#include "operator/debug_state.h"

#include <nlohmann/json.hpp>

#include "operator/control/control_server.h"

namespace flamefleet {
namespace {

using nlohmann::json;

// The first kMaxDebugItems of `from`, each as `show` says.
template <typename List, typename Show>
json Some(const List& from, Show show) {
  json items = json::array();
  for (const auto& item : from) {
    if (items.size() == kMaxDebugItems) break;
    items.push_back(show(item));
  }
  json list = {{"total", from.size()}, {"items", std::move(items)}};
  if (from.size() > kMaxDebugItems) list["left_out"] = from.size() - kMaxDebugItems;
  return list;
}

template <typename Object>
json ShowObject(const Object& object) {
  json conditions = json::object();
  for (const api::Condition& condition : object->status.conditions)
    conditions[condition.type] = condition.status + " " + condition.reason;
  json shown = {{"name", object->meta.name},
                {"generation", object->meta.generation},
                {"observed_generation", object->status.observed_generation},
                {"version", object->meta.resource_version},
                {"conditions", std::move(conditions)}};
  if (!object->meta.ns.empty()) shown["namespace"] = object->meta.ns;
  if (object->meta.deleting) shown["deleting"] = true;
  return shown;
}

json ShowQueue(const WorkQueue& queue) {
  // One more than is shown tells whether some were left out.
  const auto items = queue.Look(kMaxDebugItems + 1);
  json shown = Some(items, [](const WorkQueue::Item& item) {
    return json{
        {"key", item.key},
        {"processing", item.processing},
        {"due_in_seconds", std::chrono::duration<double>(item.due_in).count()},
        {"failures", item.failures},
    };
  });
  shown.erase("total");  // not known
  return shown;
}

json ShowStreams(const control::ControlServer& agents) {
  return Some(agents.Nodes(), [&](const std::string& node) {
    json shown = {{"node", node}};
    const auto report = agents.ReportOf(node);
    if (!report) return shown;
    shown["pool"] = report->pool;
    shown["connected"] = report->connected;
    shown["reported"] = report->received;
    shown["sampling"] = report->sampling;
    shown["collections"] = report->collections.size();
    json reasons = json::object();
    for (const auto& [id, health] : report->collections) {
      if (health.state != plan::CollectionState::kFailing) continue;
      json& count = reasons[health.reason];
      count = count.is_null() ? 1 : count.get<int>() + 1;
    }
    shown["failing"] = std::move(reasons);
    for (const plan::NodeProblem& problem : report->problems)
      shown["problems"].push_back(problem.reason);
    return shown;
  });
}

}  // namespace

std::string DebugState(const ClusterCache& cache, const WorkQueue& queue,
                       const LeaderElector& elector, const control::ControlServer* agents) {
  const auto object = [](const auto& shown) { return ShowObject(shown); };
  json state = {{"leading", elector.leading()},
                {"lease_holder", elector.holder()},
                {"synced", cache.synced()},
                {"pools", Some(cache.pools.List(), object)},
                {"backends", Some(cache.backends.List(), object)},
                {"targets", Some(cache.targets.List(), object)},
                {"queue", ShowQueue(queue)}};
  if (agents != nullptr) state["streams"] = ShowStreams(*agents);
  return state.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

Status CheckLoopback(const std::string& address) {
  const size_t colon = address.rfind(':');
  const std::string host = colon == std::string::npos ? address : address.substr(0, colon);
  const bool digits = host.find_first_not_of("0123456789.") == std::string::npos;
  if (host == "localhost" || host == "[::1]" || (host.starts_with("127.") && digits)) {
    return OkStatus();
  }
  return InvalidArgumentError("debug address " + address +
                              ": want one on loopback, such as 127.0.0.1:8082; it asks nobody who "
                              "they are");
}

}  // namespace flamefleet
