// SPDX-License-Identifier: Apache-2.0
#include "kubectl/cluster.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "base/http/url.h"
#include "kubectl/workload_name.h"
#include "operator/api/kinds.h"

namespace flamefleet::kubectl {
namespace {

using nlohmann::json;

Result<json> Parse(const std::string& text, const std::string& what) {
  json object = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) return DataLossError(what + ": the answer is not an object in JSON");
  return object;
}

// A list that is not there is a kind that is not there.
Status Explain(const Status& status, const Resource& resource) {
  if (status.code() != StatusCode::kNotFound || !resource.api_version.starts_with(api::kGroup))
    return status;
  return UnimplementedError("the cluster has no " + std::string(resource.plural) + "." +
                            std::string(api::kGroup) + ": Flamefleet is not installed");
}

}  // namespace

void ClusterFlags::AddTo(Flags& flags) {
  flags.Text("kubeconfig", "FILE", "how to reach the API server; default: as kubectl", &kubeconfig);
  flags.Text("context", "NAME", "the context of the kubeconfig; default: its current one",
             &context);
  flags.Text("namespace", "NAME", "the namespace of the pods; default: that of the context", &ns);
  flags.Short('n', "namespace");
  flags.Text("system-namespace", "NAME", "where Flamefleet runs", &system_ns);
  flags.Duration("request-timeout", "how long one request to the API server may take", &timeout);
}

Result<std::unique_ptr<Cluster>> Cluster::Connect(const ClusterFlags& flags) {
  FF_ASSIGN_OR_RETURN(const ClientConfig config,
                      FindClientConfig({.kubeconfig_flag = flags.kubeconfig,
                                        .context = flags.context,
                                        .environment = ProcessEnvironment}));
  std::unique_ptr<Cluster> cluster(new Cluster());
  cluster->ns_ = !flags.ns.empty() ? flags.ns : config.ns.empty() ? "default" : config.ns;
  cluster->system_ns_ = flags.system_ns;
  for (const std::string* name : {&cluster->ns_, &cluster->system_ns_}) {
    if (!IsObjectName(*name)) return InvalidArgumentError("namespace '" + *name + "': not a name");
  }
  RestClientOptions options;
  options.timeout = std::chrono::duration_cast<std::chrono::milliseconds>(flags.timeout);
  options.user_agent = "kubectl-flamefleet/" FF_VERSION;
  FF_ASSIGN_OR_RETURN(cluster->client_, RestClient::Create(config, SystemClock(), cluster->metrics_,
                                                           std::move(options)));
  return cluster;
}

Result<json> Cluster::Get(const Resource& resource, const std::string& ns,
                          const std::string& name) {
  FF_ASSIGN_OR_RETURN(const std::string text, client_->Get(resource, ns, name));
  return Parse(text, "get " + std::string(resource.kind) + " " + name);
}

Status Cluster::List(const Resource& resource, const std::string& ns, const std::string& query,
                     const std::function<void(const json& object)>& take) {
  const std::string path = CollectionPath(resource, ns);
  std::string next;
  do {
    std::string target = path + "?limit=" + std::to_string(kPageSize);
    if (!query.empty()) target += "&" + query;
    if (!next.empty()) target += "&continue=" + UrlEncode(next);
    const Result<std::string> text = client_->GetPath(target);
    if (!text.ok()) return Explain(text.status(), resource);
    FF_ASSIGN_OR_RETURN(const json page, Parse(*text, "list " + path));
    const auto items = page.find("items");
    if (items == page.end() || !items->is_array())
      return DataLossError("list " + path + ": the answer is not a list");
    for (const json& item : *items)
      take(item);
    const json metadata = page.value("metadata", json::object());
    next = metadata.is_object() ? metadata.value("continue", "") : "";
  } while (!next.empty());
  return OkStatus();
}

}  // namespace flamefleet::kubectl
