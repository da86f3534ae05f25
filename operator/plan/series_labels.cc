// SPDX-License-Identifier: Apache-2.0
#include "operator/plan/series_labels.h"

namespace flamefleet::plan {
namespace {

std::string ServiceName(const api::Pod& pod, const api::ProfilingTarget* target,
                        const FamilyAnnotations& pyroscope, const FamilyAnnotations& grafana) {
  if (target != nullptr && !target->spec.service_name.empty()) return target->spec.service_name;
  if (!pyroscope.service_name.empty()) return pyroscope.service_name;
  if (!grafana.service_name.empty()) return grafana.service_name;
  const auto label = pod.labels.find("app.kubernetes.io/name");
  if (label != pod.labels.end() && !label->second.empty()) return label->second;
  return pod.workload_name;
}

}  // namespace

std::string SanitizeLabelName(const std::string& name) {
  std::string clean;
  for (const char c : name) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    const bool digit = c >= '0' && c <= '9';
    if (clean.empty() && digit) clean += '_';
    clean += letter || digit ? c : '_';
  }
  return clean;
}

api::StringMap SeriesLabels(const api::Pod& pod, const api::ProfilingTarget* target,
                            const FamilyAnnotations& pyroscope, const FamilyAnnotations& grafana) {
  api::StringMap labels = grafana.labels;
  if (target != nullptr) {
    for (const auto& [name, value] : target->spec.labels)
      labels[name] = value;
    for (const std::string& name : target->spec.pod_labels) {
      const auto found = pod.labels.find(name);
      if (found != pod.labels.end() && !found->second.empty())
        labels[SanitizeLabelName(name)] = found->second;
    }
  }
  labels["service_name"] = ServiceName(pod, target, pyroscope, grafana);
  labels["namespace"] = pod.meta.ns;
  labels["pod"] = pod.meta.name;
  labels["node"] = pod.node;
  return labels;
}

}  // namespace flamefleet::plan
