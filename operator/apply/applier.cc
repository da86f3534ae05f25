// SPDX-License-Identifier: Apache-2.0
#include "operator/apply/applier.h"

#include <functional>
#include <nlohmann/json.hpp>

namespace flamefleet {
namespace {

using nlohmann::json;

CounterMetric WriteCounter(Metrics& metrics, const char* result) {
  return metrics.Counter("flamefleet_operator_object_writes_total",
                         "What became of each object that the operator owns, per reconcile.",
                         {{"result", result}});
}

}  // namespace

Applier::Applier(RestClient& client, OwnWrites& own_writes, Metrics& metrics)
    : client_(client),
      own_writes_(own_writes),
      applied_(WriteCounter(metrics, "applied")),
      unchanged_(WriteCounter(metrics, "unchanged")),
      deleted_(WriteCounter(metrics, "deleted")),
      failed_(WriteCounter(metrics, "failed")) {}

bool Applier::InForce(const Written& written, size_t intent, const OwnedFields* live) {
  return written.intent == intent && live != nullptr && live->spec == written.owned;
}

Status Applier::Apply(const Resource& resource, const json& object, const OwnedFields* live,
                      const std::stop_token& stop) {
  ApplyRequest request;
  request.resource = resource;
  request.ns = object["metadata"].value("namespace", "");
  request.name = object["metadata"].value("name", "");
  request.field_manager = kFieldManager;
  request.body = object.dump();

  const std::string path = ObjectPath(resource, request.ns, request.name);
  const size_t intent = std::hash<std::string>()(request.body);
  if (const auto last = written_.find(path);
      last != written_.end() && InForce(last->second, intent, live)) {
    unchanged_.Increment();
    return OkStatus();
  }
  written_.erase(path);
  const Result<std::string> answer = client_.Apply(request, stop);
  if (!answer.ok()) {
    failed_.Increment();
    return answer.status();
  }
  applied_.Increment();
  const OwnedFields owned = ReadOwnedFields(json::parse(*answer, nullptr, false));
  written_[path] = {intent, owned.spec};
  own_writes_.Wrote(resource, owned.version);
  return OkStatus();
}

Status Applier::Delete(const Resource& resource, const std::string& ns, const std::string& name,
                       const std::stop_token& stop) {
  Forget(resource, ns, name);
  const Status deleted = client_.Delete(resource, ns, name, stop);
  (deleted.ok() ? deleted_ : failed_).Increment();
  return deleted;
}

void Applier::Forget(const Resource& resource, const std::string& ns, const std::string& name) {
  written_.erase(ObjectPath(resource, ns, name));
}

}  // namespace flamefleet
