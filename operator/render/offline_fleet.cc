// SPDX-License-Identifier: Apache-2.0
#include "operator/render/offline_fleet.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

#include "operator/api/json_reader.h"
#include "operator/api/namespace.h"

namespace flamefleet::render {
namespace {

using nlohmann::json;

constexpr std::string_view kDefaultNamespace = "default";

// A kind whose objects are pods or make them.
struct PodKind {
  std::string_view name;
  std::string_view api_version;
  std::vector<const char*> path;  // to the template; empty: the object is the pod
};

const std::vector<PodKind>& PodKinds() {
  static const std::vector<PodKind> kinds = {
      {"Pod", "v1", {}},
      {"ReplicationController", "v1", {"spec", "template"}},
      {"Deployment", "apps/v1", {"spec", "template"}},
      {"StatefulSet", "apps/v1", {"spec", "template"}},
      {"DaemonSet", "apps/v1", {"spec", "template"}},
      {"ReplicaSet", "apps/v1", {"spec", "template"}},
      {"Job", "batch/v1", {"spec", "template"}},
      {"CronJob", "batch/v1", {"spec", "jobTemplate", "spec", "template"}}};
  return kinds;
}

// "decode ProfilingTarget.spec.paused: want boolean" in its parts; `prefix` goes before the field.
Finding FindingOf(const Source& source, const std::string& object, const Status& status,
                  const std::string& prefix = "") {
  std::string text = ErrorMessage(status);
  constexpr std::string_view kDecode = "decode ";
  const size_t dot = text.find('.');
  const size_t colon = text.find(": ");
  if (!text.starts_with(kDecode) || dot == std::string::npos || colon == std::string::npos ||
      dot > colon)
    return {source, object, prefix, text};
  const std::string field = text.substr(dot + 1, colon - dot - 1);
  return {source, object, prefix.empty() ? field : prefix + "." + field, text.substr(colon + 2)};
}

class Decoder {
 public:
  Decoder(const Schemas& schemas, std::vector<Finding>& findings)
      : schemas_(schemas), findings_(findings) {}

  void Take(const Manifest& manifest) {
    const std::string kind = TextOf(manifest.object, "kind");
    const std::string version = TextOf(manifest.object, "apiVersion");
    const std::string group = version.substr(0, version.find('/'));
    if (group == api::kGroup) return TakeOwn(manifest, kind, version);
    if (kind == "Namespace" && version == "v1") return TakeNamespace(manifest);
    const auto pod_kind = std::ranges::find(PodKinds(), kind, &PodKind::name);
    if (pod_kind == PodKinds().end()) return;
    // A kind of that name of somebody else's group is not ours to judge.
    const std::string_view want = pod_kind->api_version;
    if (group != want.substr(0, want.find('/'))) return;
    if (IsKnown(manifest)) return;
    if (version != want) return Fail(manifest, "apiVersion", "want " + std::string(want));
    TakePod(manifest, *pod_kind);
  }

  OfflineFleet Finish() { return std::move(fleet_); }

 private:
  void TakeOwn(const Manifest& manifest, const std::string& kind, const std::string& version) {
    if (version != api::kApiVersion)
      return Fail(manifest, "apiVersion", "want " + std::string(api::kApiVersion));
    if (!schemas_.Has(kind))
      return Fail(manifest, "kind", "there is no such kind in " + std::string(api::kApiVersion));
    if (IsKnown(manifest)) return;
    json object = manifest.object;
    const std::vector<SchemaError> errors = schemas_.Check(kind, object);
    for (const SchemaError& error : errors)
      Fail(manifest, error.field, error.cause);
    if (!errors.empty()) return;
    if (kind == api::kProfilingTargetKind.name) {
      if (TextOf(object["metadata"], "namespace").empty())
        object["metadata"]["namespace"] = kDefaultNamespace;
      Keep(manifest, api::DecodeProfilingTarget(object), fleet_.targets);
    } else if (kind == api::kProfilingBackendKind.name) {
      Keep(manifest, api::DecodeProfilingBackend(object), fleet_.backends);
    } else {
      Keep(manifest, api::DecodeAgentPool(object), fleet_.pools);
    }
  }

  template <typename T>
  void Keep(const Manifest& manifest, Result<T> decoded, std::vector<T>& into) {
    if (!decoded.ok()) {
      findings_.push_back(
          FindingOf(manifest.source, ObjectText(manifest.object), decoded.status()));
      return;
    }
    into.push_back(*std::move(decoded));
  }

  void TakeNamespace(const Manifest& manifest) {
    if (IsKnown(manifest)) return;
    const Result<api::Namespace> decoded = api::DecodeNamespace(manifest.object);
    if (!decoded.ok()) {
      findings_.push_back(
          FindingOf(manifest.source, ObjectText(manifest.object), decoded.status()));
      return;
    }
    fleet_.namespaces[decoded->meta.name] = decoded->labels;
  }

  void TakePod(const Manifest& manifest, const PodKind& kind) {
    const json* body = &manifest.object;
    std::string prefix;
    for (const char* step : kind.path) {
      const auto found = body->find(step);
      prefix += prefix.empty() ? step : std::string(".") + step;
      if (found == body->end() || !found->is_object()) return Fail(manifest, prefix, "want object");
      body = &*found;
    }
    const auto refuse = [&](const Status& status) {
      findings_.push_back(FindingOf(manifest.source, ObjectText(manifest.object), status, prefix));
    };
    Result<api::Pod> pod = api::DecodePod(*body);
    if (!pod.ok()) return refuse(pod.status());
    const std::string containers = prefix + (prefix.empty() ? "" : ".") + "spec.containers";
    if (pod->containers.empty()) return Fail(manifest, containers, "want at least one container");
    OfflinePod out{
        .source = manifest.source, .kind = std::string(kind.name), .pod = *std::move(pod)};
    const api::ObjectReader root(*body, kind.name);
    root.Object("spec",
                [&](const api::ObjectReader& in) { in.Map("nodeSelector", out.node_selector); });
    if (!root.status().ok()) return refuse(root.status());
    Name(manifest, kind, out);
    fleet_.pods.push_back(std::move(out));
  }

  static void Name(const Manifest& manifest, const PodKind& kind, OfflinePod& out) {
    const json& metadata = manifest.object["metadata"];
    api::ObjectMeta& meta = out.pod.meta;
    meta.ns = TextOf(metadata, "namespace");
    if (meta.ns.empty()) meta.ns = kDefaultNamespace;
    meta.name = TextOf(metadata, "name");
    if (meta.name.empty()) meta.name = TextOf(metadata, "generateName") + "*";
    out.from_template = !kind.path.empty();
    if (!out.from_template) return;
    out.pod.workload_kind = kind.name;
    out.pod.workload_name = meta.name;
  }

  // Whether the object was there before; a second one is a mistake, since one would replace the
  // other.
  bool IsKnown(const Manifest& manifest) {
    const json& metadata = manifest.object["metadata"];
    if (TextOf(metadata, "name").empty()) return false;
    const auto [found, added] =
        places_.emplace(std::tuple(TextOf(manifest.object, "kind"), TextOf(metadata, "namespace"),
                                   TextOf(metadata, "name")),
                        manifest.source);
    if (added) return false;
    Fail(manifest, "metadata.name", "the same object is in " + found->second.Text() + " already");
    return true;
  }

  void Fail(const Manifest& manifest, const std::string& field, const std::string& cause) {
    findings_.push_back({manifest.source, ObjectText(manifest.object), field, cause});
  }

  const Schemas& schemas_;
  std::vector<Finding>& findings_;
  OfflineFleet fleet_;
  std::map<std::tuple<std::string, std::string, std::string>, Source> places_;
};

}  // namespace

OfflineFleet DecodeManifests(const std::vector<Manifest>& manifests, const Schemas& schemas,
                             std::vector<Finding>& findings) {
  Decoder decoder(schemas, findings);
  for (const Manifest& manifest : manifests)
    decoder.Take(manifest);
  return decoder.Finish();
}

}  // namespace flamefleet::render
