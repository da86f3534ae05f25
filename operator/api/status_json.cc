// SPDX-License-Identifier: Apache-2.0
#include "operator/api/status_json.h"

#include "base/clock.h"

namespace flamefleet::api {

using nlohmann::json;

std::string FormatSeconds(int64_t wall_ns) {
  std::string text = FormatRfc3339(wall_ns);
  text.resize(text.find('.'));
  return text + "Z";
}

void ReadConditions(const ObjectReader& status, std::vector<Condition>& conditions) {
  status.Objects("conditions", [&](const ObjectReader& in) {
    Condition& condition = conditions.emplace_back();
    in.String("type", condition.type);
    in.String("status", condition.status);
    in.String("reason", condition.reason);
    in.String("message", condition.message);
    in.Integer("observedGeneration", condition.observed_generation);
    in.Time("lastTransitionTime", condition.last_transition_ns);
  });
}

void ReadPodCounts(const ObjectReader& status, const char* key, PodCounts& counts) {
  status.Object(key, [&](const ObjectReader& in) {
    in.Integer("matched", counts.matched);
    in.Integer("profiled", counts.profiled);
    in.Integer("failing", counts.failing);
    in.Integer("waiting", counts.waiting);
    in.Integer("idle", counts.idle);
  });
}

void ReadFailingPods(const ObjectReader& status, std::vector<FailingPod>& pods) {
  status.Objects("failingPods", [&](const ObjectReader& in) {
    FailingPod& pod = pods.emplace_back();
    in.String("namespace", pod.ns);
    in.String("name", pod.name);
    in.String("node", pod.node);
    in.String("profile", pod.profile);
    in.String("reason", pod.reason);
    in.String("message", pod.message);
    in.Time("since", pod.since_ns);
  });
}

void ReadWarnings(const ObjectReader& status, std::vector<PodWarning>& warnings) {
  status.Objects("warnings", [&](const ObjectReader& in) {
    PodWarning& warning = warnings.emplace_back();
    in.String("namespace", warning.ns);
    in.String("name", warning.name);
    in.String("reason", warning.reason);
    in.String("message", warning.message);
  });
}

json EncodeConditions(const std::vector<Condition>& conditions) {
  json list = json::array();
  for (const Condition& condition : conditions) {
    list.push_back({{"type", condition.type},
                    {"status", condition.status},
                    {"reason", condition.reason},
                    {"message", condition.message},
                    {"observedGeneration", condition.observed_generation},
                    {"lastTransitionTime", FormatSeconds(condition.last_transition_ns)}});
  }
  return list;
}

json EncodePodCounts(const PodCounts& counts) {
  return {{"matched", counts.matched},
          {"profiled", counts.profiled},
          {"failing", counts.failing},
          {"waiting", counts.waiting},
          {"idle", counts.idle}};
}

json EncodeFailingPods(const std::vector<FailingPod>& pods) {
  json list = json::array();
  for (const FailingPod& pod : pods) {
    json entry = {{"name", pod.name},
                  {"reason", pod.reason},
                  {"message", pod.message},
                  {"since", FormatSeconds(pod.since_ns)}};
    if (!pod.ns.empty()) entry["namespace"] = pod.ns;
    if (!pod.node.empty()) entry["node"] = pod.node;
    if (!pod.profile.empty()) entry["profile"] = pod.profile;
    list.push_back(std::move(entry));
  }
  return list;
}

json EncodeWarnings(const std::vector<PodWarning>& warnings) {
  json list = json::array();
  for (const PodWarning& warning : warnings) {
    json entry = {{"name", warning.name}, {"reason", warning.reason}, {"message", warning.message}};
    if (!warning.ns.empty()) entry["namespace"] = warning.ns;
    list.push_back(std::move(entry));
  }
  return list;
}

}  // namespace flamefleet::api
