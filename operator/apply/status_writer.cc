// SPDX-License-Identifier: Apache-2.0
#include "operator/apply/status_writer.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "base/log.h"
#include "operator/kube/owned_fields.h"

namespace flamefleet {
namespace {

using nlohmann::json;

CounterMetric WriteCounter(Metrics& metrics, const char* result) {
  return metrics.Counter("flamefleet_operator_status_writes_total",
                         "What became of each status that the operator computed.",
                         {{"result", result}});
}

// type -> status and reason
std::map<std::string, std::pair<std::string, std::string>> Conditions(const json& status) {
  std::map<std::string, std::pair<std::string, std::string>> conditions;
  if (!status.is_object() || !status.contains("conditions")) return conditions;
  for (const json& condition : status["conditions"]) {
    conditions[condition.value("type", "")] = {condition.value("status", ""),
                                               condition.value("reason", "")};
  }
  return conditions;
}

void LogChanges(const Resource& resource, const api::ObjectMeta& meta, const json& live,
                const json& want) {
  const auto before = Conditions(live);
  for (const auto& [type, now] : Conditions(want)) {
    const auto was = before.find(type);
    if (was != before.end() && was->second == now) continue;
    Log(LogLevel::kInfo, "condition changed",
        {{"kind", resource.kind},
         {"namespace", meta.ns},
         {"name", meta.name},
         {"generation", meta.generation},
         {"condition", type},
         {"status", now.first},
         {"reason", now.second}});
  }
}

}  // namespace

bool ConditionFlips(const json& live, const json& want) {
  return Conditions(live) != Conditions(want);
}

StatusWriter::StatusWriter(RestClient& client, OwnWrites& own_writes, const Clock& clock,
                           Metrics& metrics)
    : client_(client),
      own_writes_(own_writes),
      clock_(clock),
      gauges_(metrics),
      applied_(WriteCounter(metrics, "applied")),
      unchanged_(WriteCounter(metrics, "unchanged")),
      postponed_(WriteCounter(metrics, "postponed")),
      failed_(WriteCounter(metrics, "failed")) {}

Result<std::chrono::nanoseconds> StatusWriter::Write(const Resource& resource,
                                                     const api::ObjectMeta& meta, const json& live,
                                                     const json& want,
                                                     const std::stop_token& stop) {
  constexpr std::chrono::nanoseconds kNow{0};
  const std::string path = ObjectPath(resource, meta.ns, meta.name);
  gauges_.Note(resource.kind, path, want);
  if (want == live) {
    unchanged_.Increment();
    return kNow;
  }
  const auto last = written_ns_.find(path);
  if (last != written_ns_.end() && !ConditionFlips(live, want)) {
    const std::chrono::nanoseconds since(clock_.MonotonicNanos() - last->second);
    if (since < kMinInterval) {
      postponed_.Increment();
      return kMinInterval - since;
    }
  }

  const json object = {{"apiVersion", resource.api_version},
                       {"kind", resource.kind},
                       {"metadata", {{"name", meta.name}}},
                       {"status", want}};
  ApplyRequest request{resource,
                       meta.ns,
                       meta.name,
                       kStatusFieldManager,
                       object.dump(-1, ' ', false, json::error_handler_t::replace),
                       true};
  const Result<std::string> answer = client_.Apply(request, stop);
  if (answer.status().code() == StatusCode::kNotFound) {
    written_ns_.erase(path);
    gauges_.Forget(path);
    return kNow;
  }
  if (!answer.ok()) {
    failed_.Increment();
    return answer.status();
  }
  applied_.Increment();
  LogChanges(resource, meta, live, want);
  written_ns_[path] = clock_.MonotonicNanos();
  own_writes_.Wrote(resource, ReadOwnedFields(json::parse(*answer, nullptr, false)).version);
  return kNow;
}

void StatusWriter::Forget(const Resource& resource, const std::string& ns,
                          const std::string& name) {
  const std::string path = ObjectPath(resource, ns, name);
  written_ns_.erase(path);
  gauges_.Forget(path);
}

}  // namespace flamefleet
