// SPDX-License-Identifier: Apache-2.0
#include "kubectl/snapshot.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/clock.h"
#include "base/http/url.h"
#include "operator/api/namespace.h"
#include "operator/api/well_known.h"

namespace flamefleet::kubectl {
namespace {

using nlohmann::json;

// Under the same name in both groups; this is the one that "view" may read.
constexpr Resource kCoreEvents{"Event", "v1", "events"};

std::string TextAt(const json& object, const json::json_pointer& path) {
  const json value = object.contains(path) ? object.at(path) : json();
  return value.is_string() ? value.get<std::string>() : "";
}

class Taker {
 public:
  Taker(Cluster& cluster, const SnapshotScope& scope) : cluster_(cluster), scope_(scope) {}

  Result<Snapshot> Run() {
    out_.now_ns = SystemClock().WallNanos();
    out_.system_ns = cluster_.system_ns();
    FF_RETURN_IF_ERROR(TakePods());
    FF_RETURN_IF_ERROR(
        TakeAll(kProfilingTargets, scope_.ns, api::DecodeProfilingTarget, out_.targets));
    FF_RETURN_IF_ERROR(TakeIfAllowed(kAgentPools, api::DecodeAgentPool, out_.pools,
                                     "pods are taken to be on nodes of a pool with defaults"));
    FF_RETURN_IF_ERROR(TakeIfAllowed(kProfilingBackends, api::DecodeProfilingBackend, out_.backends,
                                     "the backends that are named are taken to exist"));
    FF_RETURN_IF_ERROR(TakeAgents());
    TakeNamespaces();
    return std::move(out_);
  }

 private:
  Status TakePods() {
    if (scope_.workload && scope_.workload->IsPod()) {
      FF_ASSIGN_OR_RETURN(const json object, cluster_.Get(kPods, scope_.ns, scope_.workload->name));
      FF_ASSIGN_OR_RETURN(api::Pod pod, api::DecodePod(object));
      out_.pods.push_back(std::move(pod));
      return OkStatus();
    }
    std::vector<api::Pod> all;
    FF_RETURN_IF_ERROR(TakeAll(kPods, scope_.ns, api::DecodePod, all));
    for (api::Pod& pod : all) {
      if (!scope_.workload || scope_.workload->Has(pod)) out_.pods.push_back(std::move(pod));
    }
    if (!scope_.workload || !out_.pods.empty()) return OkStatus();
    const WorkloadName& wanted = *scope_.workload;
    const Status there = cluster_.Get(wanted.resource, scope_.ns, wanted.name).status();
    if (there.code() == StatusCode::kNotFound) return there;
    return NotFoundError(wanted.Text(scope_.ns) + " has no pods");
  }

  template <typename T>
  Status TakeAll(const Resource& resource, const std::string& ns,
                 Result<T> (*decode)(const json& object), std::vector<T>& into) {
    return cluster_.List(resource, ns, "", [&](const json& object) {
      Result<T> decoded = decode(object);
      if (decoded.ok()) {
        into.push_back(*std::move(decoded));
        return;
      }
      out_.notes.push_back(std::string(resource.kind) + " " +
                           TextAt(object, "/metadata/name"_json_pointer) +
                           " is left out: " + ErrorMessage(decoded.status()));
    });
  }

  // Of the whole cluster; `otherwise` is what is assumed without.
  template <typename T>
  Status TakeIfAllowed(const Resource& resource, Result<T> (*decode)(const json& object),
                       std::optional<std::vector<T>>& into, const std::string& otherwise) {
    std::vector<T> all;
    const Status status = TakeAll(resource, "", decode, all);
    if (status.ok()) into = std::move(all);
    return Forgive(status, "you may not list " + std::string(resource.plural) + ": " + otherwise);
  }

  // A lack of rights becomes a note.
  Status Forgive(const Status& status, const std::string& note) {
    if (status.code() != StatusCode::kPermissionDenied) return status;
    out_.notes.push_back(note);
    return OkStatus();
  }

  Status TakeAgents() {
    std::map<std::string, std::vector<std::string>> agents;
    const std::string label(api::kPoolLabel);
    const Status status = cluster_.List(
        kPods, out_.system_ns, "labelSelector=" + UrlEncode(label), [&](const json& object) {
          const Result<api::Pod> pod = api::DecodePod(object);
          if (!pod.ok() || pod->workload_kind != "DaemonSet" || pod->node.empty()) return;
          if (pod->phase == api::PodPhase::kSucceeded || pod->phase == api::PodPhase::kFailed)
            return;
          agents[pod->node].push_back(pod->labels.at(label));
        });
    if (status.ok()) out_.agents = std::move(agents);
    return Forgive(status, "you may not list pods of namespace " + out_.system_ns +
                               ": every node is taken to have an agent");
  }

  // Only where their labels decide.
  void TakeNamespaces() {
    if (!out_.pools || std::ranges::all_of(*out_.pools, [](const api::AgentPool& pool) {
          return pool.spec.opt_in.namespaces.empty();
        }))
      return;
    std::vector<api::Namespace> found;
    Status status = OkStatus();
    if (scope_.ns.empty()) {
      status = TakeAll(kNamespaces, "", api::DecodeNamespace, found);
    } else if (const Result<json> object = cluster_.Get(kNamespaces, "", scope_.ns); !object.ok()) {
      status = object.status();
    } else if (Result<api::Namespace> one = api::DecodeNamespace(*object); one.ok()) {
      found.push_back(*std::move(one));
    }
    for (api::Namespace& one : found)
      out_.namespaces[one.meta.name] = std::move(one.labels);
    if (!status.ok()) {
      out_.notes.push_back("namespaces are taken to have no labels but their names: " +
                           ErrorMessage(status));
    }
  }

  Cluster& cluster_;
  const SnapshotScope& scope_;
  Snapshot out_;
};

}  // namespace

Result<Snapshot> TakeSnapshot(Cluster& cluster, const SnapshotScope& scope) {
  return Taker(cluster, scope).Run();
}

std::vector<std::string> EventsOf(Cluster& cluster, const api::Pod& pod,
                                  std::vector<std::string>& notes) {
  std::vector<std::string> events;
  const std::string selector = "involvedObject.kind=Pod,involvedObject.name=" + pod.meta.name;
  const Status status = cluster.List(
      kCoreEvents, pod.meta.ns, "fieldSelector=" + UrlEncode(selector), [&](const json& event) {
        if (TextAt(event, "/reportingComponent"_json_pointer) != api::kReportingController) return;
        if (TextAt(event, "/involvedObject/uid"_json_pointer) != pod.meta.uid) return;
        std::string time = TextAt(event, "/series/lastObservedTime"_json_pointer);
        if (time.empty()) time = TextAt(event, "/eventTime"_json_pointer);
        events.push_back(time.substr(0, 19) + "Z " + TextAt(event, "/reason"_json_pointer) + ": " +
                         TextAt(event, "/message"_json_pointer));
      });
  if (!status.ok()) notes.push_back("events are not known: " + ErrorMessage(status));
  std::ranges::sort(events);
  return events;
}

}  // namespace flamefleet::kubectl
