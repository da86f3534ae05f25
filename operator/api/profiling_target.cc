// SPDX-License-Identifier: Apache-2.0
#include "operator/api/profiling_target.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "operator/api/json_reader.h"
#include "operator/api/status_json.h"

namespace flamefleet::api {
namespace {

using nlohmann::json;

void ReadPort(const ObjectReader& in, std::optional<PortRef>& out) {
  const json* value = in.Find("port");
  if (value == nullptr) return;
  PortRef port;
  if (value->is_string()) {
    in.String("port", port.name);
  } else {
    in.Integer("port", port.number);
  }
  out = std::move(port);
}

void ReadProfile(const ObjectReader& in, ProfileSpec& profile) {
  std::array<std::pair<std::string_view, ProfileType>, kProfileTypeNames.size()> types;
  std::ranges::transform(kProfileTypeNames, types.begin(), [](const ProfileTypeNames& names) {
    return std::pair(names.name, names.type);
  });
  in.Enumeration("type", std::span<const std::pair<std::string_view, ProfileType>>(types),
                 profile.type);
  in.Enumeration<CollectMode>(
      "mode",
      {{"Auto", CollectMode::kAuto}, {"EBPF", CollectMode::kEbpf}, {"Pull", CollectMode::kPull}},
      profile.mode);
  in.Bool("threadLabels", profile.thread_labels);
  in.Object("pull", [&](const ObjectReader& pull) {
    ReadPort(pull, profile.pull.port);
    std::optional<PullScheme>& scheme = profile.pull.scheme;
    if (pull.Find("scheme") != nullptr) {
      pull.Enumeration<PullScheme>(
          "scheme", {{"HTTP", PullScheme::kHttp}, {"HTTPS", PullScheme::kHttps}}, scheme.emplace());
    }
    pull.Object("tls", [&](const ObjectReader& tls) {
      tls.Bool("insecureSkipVerify", profile.pull.tls.insecure_skip_verify);
      tls.String("caBundle", profile.pull.tls.ca_pem);
      tls.String("serverName", profile.pull.tls.server_name);
    });
    pull.OptionalString("path", profile.pull.path);
    pull.Map("parameters", profile.pull.parameters);
    pull.Duration("interval", profile.pull.interval_ns);
    pull.Duration("timeout", profile.pull.timeout_ns);
  });
}

void ReadSpec(const ObjectReader& in, ProfilingTargetSpec& spec) {
  in.Object("selector",
            [&](const ObjectReader& selector) { ReadSelector(selector, spec.selector); });
  in.Strings("containers", spec.containers);
  in.String("serviceName", spec.service_name);
  in.Map("labels", spec.labels);
  in.Strings("podLabels", spec.pod_labels);
  in.Object("backendRef", [&](const ObjectReader& ref) { ref.String("name", spec.backend); });
  in.Bool("paused", spec.paused);
  in.Objects("profiles", [&](const ObjectReader& profile) {
    ReadProfile(profile, spec.profiles.emplace_back());
  });
}

void ReadStatus(const ObjectReader& in, ProfilingTargetStatus& status) {
  in.Integer("observedGeneration", status.observed_generation);
  ReadConditions(in, status.conditions);
  ReadPodCounts(in, "pods", status.pods);
  in.Object("nodes", [&](const ObjectReader& nodes) {
    nodes.Integer("matched", status.nodes.matched);
    nodes.Integer("profiling", status.nodes.profiling);
  });
  in.Object("stacks", [&](const ObjectReader& stacks) {
    status.stacks = ProfilingTargetStatus::Stacks{};  // clang 14 cannot emplace one
    stacks.Integer("wholePercent", status.stacks->whole_percent);
    stacks.String("cutBy", status.stacks->cut_by);
  });
  in.Time("lastProfileTime", status.last_profile_ns);
  ReadFailingPods(in, status.failing_pods);
  ReadWarnings(in, status.warnings);
}

}  // namespace

Result<ProfilingTarget> DecodeProfilingTarget(const json& object) {
  const ObjectReader root(object, kProfilingTargetKind.name);
  ProfilingTarget target;
  ReadMeta(root, target.meta);
  root.Object("spec", [&](const ObjectReader& in) { ReadSpec(in, target.spec); });
  root.Object("status", [&](const ObjectReader& in) { ReadStatus(in, target.status); });
  if (!root.status().ok()) return root.status();
  return target;
}

json EncodeStatus(const ProfilingTargetStatus& status) {
  json out = {
      {"observedGeneration", status.observed_generation},
      {"conditions", EncodeConditions(status.conditions)},
      {"pods", EncodePodCounts(status.pods)},
      {"nodes", {{"matched", status.nodes.matched}, {"profiling", status.nodes.profiling}}}};
  if (status.stacks) {
    out["stacks"]["wholePercent"] = status.stacks->whole_percent;
    if (!status.stacks->cut_by.empty()) out["stacks"]["cutBy"] = status.stacks->cut_by;
  }
  if (status.last_profile_ns != 0) out["lastProfileTime"] = FormatSeconds(status.last_profile_ns);
  if (!status.failing_pods.empty()) out["failingPods"] = EncodeFailingPods(status.failing_pods);
  if (!status.warnings.empty()) out["warnings"] = EncodeWarnings(status.warnings);
  return out;
}

}  // namespace flamefleet::api
