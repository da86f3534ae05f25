// SPDX-License-Identifier: Apache-2.0
#include "kubectl/store_proxy.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string_view>

#include "base/base64.h"
#include "base/http/url.h"
#include "kubectl/pod_status.h"
#include "kubectl/snapshot.h"
#include "operator/api/secret.h"
#include "operator/plan/names.h"

namespace flamefleet::kubectl {
namespace {

using nlohmann::json;

// How Kubernetes makes names of pods: "BASE-", cut here, then five of these characters.
constexpr size_t kMaxBase = 58;
constexpr const char* kRandom = "[bcdfghjklmnpqrstvwxz2456789]";
constexpr const char* kReaderRole = "flamefleet-profile-reader";

// Dots of a name mean themselves.
std::string Quoted(const std::string& name) {
  std::string text;
  for (const char c : name) {
    if (c == '.') text += '\\';
    text += c;
  }
  return text;
}

// A regular expression for the names of the workload's pods, those that are gone included.
std::string PodPattern(const WorkloadName& workload) {
  const std::string& name = workload.name;
  const std::string_view kind = workload.resource.kind;
  if (workload.IsPod()) return Quoted(name);
  if (kind == kStatefulSets.kind) return Quoted(name) + "-[0-9]+";
  constexpr size_t kHash = 11;  // "-" and at most ten characters, of a Deployment's ReplicaSet
  if (name.size() + kHash + 1 > kMaxBase) return Quoted((name + "-").substr(0, kMaxBase)) + ".*";
  std::string middle;
  if (kind == kDeployments.kind) middle = std::string("-") + kRandom + "{1,10}";
  if (kind == "Job") middle = "(-[0-9]+)?";
  return Quoted(name) + middle + "-" + kRandom + "{5}";
}

// What the store calls the five types of targets; others are as the store has them.
Result<std::string> StoreType(const std::string& type) {
  if (const auto known = ParseProfileType(type)) return std::string(MetricName(*known));
  const bool is_name = !type.empty() && std::ranges::all_of(type, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == ':';
  });
  if (is_name) return type;
  return InvalidArgumentError("--type '" + type +
                              "': want cpu, memory, goroutine, mutex, block, or a type of the "
                              "store such as memory:alloc_space");
}

// The backends that the plan sends this workload's profiles of the type to.
std::set<std::string> PlannedBackends(const Snapshot& snapshot, const std::string& type) {
  const auto known = ParseProfileType(type.substr(0, type.find(':')));
  std::vector<std::string> ignored;
  std::set<std::string> names;
  for (const PodStatus& pod : JudgePods(snapshot, ignored)) {
    for (const plan::Collection& collection : pod.plan.collections) {
      if (!known || collection.type == *known) names.insert(collection.backend);
    }
  }
  return names;
}

Status CheckIsManagedStore(const api::ProfilingBackend& backend) {
  const std::string who = "ProfilingBackend " + backend.meta.name;
  if (backend.spec.type != api::BackendType::kStore) {
    return FailedPreconditionError(who + " is not a Store: ask the server at " +
                                   backend.spec.endpoint);
  }
  if (backend.spec.managed_store) return OkStatus();
  return FailedPreconditionError(who + " is a Store that Flamefleet does not run: ask " +
                                 backend.spec.endpoint + " as docs/store.md says");
}

using Backends = std::vector<api::ProfilingBackend>;

Result<std::string> DefaultOf(const Backends& backends) {
  std::vector<const api::ProfilingBackend*> all;
  for (const api::ProfilingBackend& backend : backends)
    all.push_back(&backend);
  const std::string name = plan::BackendTable(all, /*ns=*/"").default_name();
  if (!name.empty()) return name;
  return FailedPreconditionError("there is no store: no ProfilingBackend says default: true");
}

// `name` when it is one with a managed store.
Result<std::string> CheckStore(const Backends& backends, const std::string& name) {
  const auto backend =
      std::ranges::find_if(backends, [&](const auto& object) { return object.meta.name == name; });
  FF_CHECK(backend != backends.end());  // chosen from these
  FF_RETURN_IF_ERROR(CheckIsManagedStore(*backend));
  return name;
}

Result<std::string> ChooseBackend(const Snapshot& snapshot, const ProfileQuery& query) {
  const std::set<std::string> planned = PlannedBackends(snapshot, query.type);
  if (planned.size() == 1) return *planned.begin();
  if (planned.empty()) return DefaultOf(*snapshot.backends);
  std::string names;
  for (const std::string& name : planned)
    names += (names.empty() ? "" : ", ") + name;
  return FailedPreconditionError(query.Text() + " goes to several backends: choose one of " +
                                 names + " with --backend");
}

Status ExplainNoBackends() {
  return PermissionDeniedError(
      "you may not list profilingbackends: say with --backend whose store has the profiles");
}

std::string TimeQuery(const ProfileQuery& query) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(query.since).count();
  return "&from=now-" + std::to_string(std::max<int64_t>(seconds, 1)) + "s&until=now";
}

Status ExplainNoRight(const Cluster& cluster, const std::string& cause) {
  return PermissionDeniedError("you may not ask the store: " + cause + "\nClusterRole " +
                               kReaderRole + ", bound in namespace " + cluster.system_ns() +
                               ", allows it (docs/kubectl.md)");
}

// The header with which people read from the store. The API server's proxy keeps Authorization to
// itself.
Result<std::map<std::string, std::string>> ReaderHeader(Cluster& cluster,
                                                        const std::string& backend) {
  const std::string name = plan::StoreReaderSecret(backend);
  const Result<std::string> text = cluster.client().Get(kSecrets, cluster.system_ns(), name);
  if (text.status().code() == StatusCode::kPermissionDenied)
    return ExplainNoRight(cluster, ErrorMessage(text.status()));
  if (text.status().code() == StatusCode::kNotFound)
    return FailedPreconditionError("there is no store: " + ErrorMessage(text.status()) +
                                   "\n--system-namespace says where Flamefleet runs");
  if (!text.ok()) return text.status();
  FF_ASSIGN_OR_RETURN(api::Secret secret,
                      api::DecodeSecret(json::parse(*text, nullptr, /*allow_exceptions=*/false)));
  const std::string credential = secret.data["username"] + ":" + secret.data["password"];
  return std::map<std::string, std::string>{
      {"X-Flamefleet-Authorization", "Basic " + EncodeBase64(credential)}};
}

Result<std::string> GetProxied(Cluster& cluster, const std::string& backend,
                               const std::string& path_and_query) {
  FF_ASSIGN_OR_RETURN(const auto headers, ReaderHeader(cluster, backend));
  const std::string service = plan::StoreName(backend);
  const Result<std::string> answer =
      cluster.client().GetPath(ObjectPath(kServices, cluster.system_ns(), "https:" + service) +
                                   ":https/proxy" + path_and_query,
                               headers);
  if (answer.ok()) return answer;
  const std::string where = "Service " + cluster.system_ns() + "/" + service;
  const std::string cause = ErrorMessage(answer.status());
  switch (answer.status().code()) {
    case StatusCode::kPermissionDenied:
      return ExplainNoRight(cluster, cause);
    case StatusCode::kUnavailable:
      return UnavailableError("the store behind " + where + " does not answer: " + cause);
    default:
      return Annotate(answer.status(), "ask " + where);
  }
}

// Names of the profile types that the store has of the workload; kNotFound: there is no store.
Result<std::set<std::string>> TypesOf(Cluster& cluster, const std::string& backend,
                                      const ProfileQuery& query) {
  ProfileQuery any = query;
  any.type = "cpu";
  FF_ASSIGN_OR_RETURN(std::string selector, SelectorOf(any));
  selector = "{__name__=~\".+\"," + selector.substr(selector.find('{') + 1);
  const Result<std::string> answer =
      GetProxied(cluster, backend, "/series?query=" + UrlEncode(selector) + TimeQuery(query));
  if (answer.status().code() == StatusCode::kNotFound) {
    return FailedPreconditionError("there is no store: " + ErrorMessage(answer.status()));
  }
  if (!answer.ok()) return answer.status();
  const json parsed = json::parse(*answer, nullptr, /*allow_exceptions=*/false);
  const json series = parsed.is_object() ? parsed.value("series", json()) : json();
  if (!series.is_array()) return DataLossError("ask the store for /series: the answer is not one");
  std::set<std::string> types;
  for (const json& labels : series) {
    if (labels.is_object() && labels.contains("__name__") && labels["__name__"].is_string())
      types.insert(labels["__name__"].get<std::string>());
  }
  return types;
}

}  // namespace

std::string ProfileQuery::Text() const {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(since).count();
  const std::string length =
      seconds % 60 == 0 ? std::to_string(seconds / 60) + "m" : std::to_string(seconds) + "s";
  return type + " of " + workload.Text(ns) + ", last " + length;
}

Result<std::string> SelectorOf(const ProfileQuery& query) {
  FF_ASSIGN_OR_RETURN(const std::string type, StoreType(query.type));
  return type + "{namespace=`" + query.ns + "`,pod=~`" + PodPattern(query.workload) + "`}";
}

Result<std::string> FindStore(Cluster& cluster, const ProfileQuery& query) {
  if (!query.backend.empty()) return query.backend;
  Result<Snapshot> snapshot = TakeSnapshot(cluster, {query.ns, query.workload});
  if (snapshot.status().code() == StatusCode::kNotFound) {
    // Its pods are gone; their profiles may be in the default store.
    snapshot = TakeSnapshot(cluster, {.ns = query.ns});
    if (snapshot.ok()) snapshot->pods.clear();
  }
  if (!snapshot.ok()) return snapshot.status();
  if (!snapshot->backends) return ExplainNoBackends();
  FF_ASSIGN_OR_RETURN(const std::string name, ChooseBackend(*snapshot, query));
  return CheckStore(*snapshot->backends, name);
}

Result<std::string> FindDefaultStore(Cluster& cluster) {
  Backends backends;
  const Status listed = cluster.List(kProfilingBackends, "", "", [&](const json& object) {
    Result<api::ProfilingBackend> backend = api::DecodeProfilingBackend(object);
    if (backend.ok()) backends.push_back(*std::move(backend));
  });
  if (listed.code() == StatusCode::kPermissionDenied) return ExplainNoBackends();
  if (!listed.ok()) return listed;
  FF_ASSIGN_OR_RETURN(const std::string name, DefaultOf(backends));
  return CheckStore(backends, name);
}

Result<std::string> AskStore(Cluster& cluster, const std::string& backend, const std::string& route,
                             const ProfileQuery& query, const std::string& parameters) {
  FF_ASSIGN_OR_RETURN(const std::string selector, SelectorOf(query));
  FF_ASSIGN_OR_RETURN(const std::set<std::string> types, TypesOf(cluster, backend, query));
  const std::string wanted = selector.substr(0, selector.find_first_of(":{"));
  if (!types.contains(wanted)) {
    std::string others;
    for (const std::string& type : types)
      others += (others.empty() ? "; there is: " : ", ") + (type == "process_cpu" ? "cpu" : type);
    return NotFoundError("no profiles in the store: " + query.Text() + others +
                         "\n'kubectl flamefleet status' says why a pod is not profiled");
  }
  return GetProxied(cluster, backend,
                    "/" + route + "?query=" + UrlEncode(selector) + TimeQuery(query) + parameters);
}

}  // namespace flamefleet::kubectl
