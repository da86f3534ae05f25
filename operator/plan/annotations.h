// SPDX-License-Identifier: Apache-2.0
// What the annotations of a pod say about profiling: both families read into one form.
// docs/annotations.md lists every key, its values and its default.
//
// Thread: any. Errors: none; a bad value becomes a problem of the profile types that it concerns, a
// key that nobody reads becomes a warning and changes nothing.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "operator/api/pod.h"
#include "operator/api/profiling_target.h"

namespace flamefleet::plan {

// Why something is not done, or looks wrong: a reason of base/reasons.h and a message.
struct Problem {
  std::string_view reason;
  std::string message;

  friend bool operator==(const Problem&, const Problem&) = default;
};

// What an annotation says: a value, or why its value is not allowed. Neither: there is no such
// annotation.
template <typename T>
struct Said {
  std::optional<T> value;
  std::optional<Problem> problem;

  explicit operator bool() const { return value.has_value() || problem.has_value(); }
};

// What one family says about one profile type.
struct AnnotatedProfile {
  Said<bool> wanted;        // asked for or refused
  Said<api::PortRef> port;  // with both number and name when the pod says both
  Said<bool> https;         // else plain HTTP
  Said<std::string> path;
  Said<std::string> container;  // collect only this one
  Said<bool> ebpf;              // cpu only: explicitly by eBPF, or explicitly not
  std::optional<int64_t> interval_ns;
  api::StringMap parameters;
  std::optional<Problem> pull_problem;  // a bad value of another key that says how to pull
};

struct FamilyAnnotations {
  bool veto = false;                                                // pyroscope.io/scrape: "false"
  std::array<AnnotatedProfile, std::size(kProfileTypes)> profiles;  // indexed by ProfileType
  std::string service_name;
  api::StringMap labels;
  std::vector<Problem> warnings;

  AnnotatedProfile& For(ProfileType type) { return profiles[static_cast<size_t>(type)]; }
  const AnnotatedProfile& For(ProfileType type) const {
    return profiles[static_cast<size_t>(type)];
  }
};

// pyroscope.io/*
FamilyAnnotations ReadPyroscopeAnnotations(const api::StringMap& annotations);
// profiles.grafana.com/*, and resource.opentelemetry.io/service.name
FamilyAnnotations ReadGrafanaAnnotations(const api::StringMap& annotations);

}  // namespace flamefleet::plan
