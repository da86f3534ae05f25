// SPDX-License-Identifier: Apache-2.0
// A plan in words, so that a row of a table says what it comes to.
#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "operator/plan/pod_plan.h"

namespace flamefleet::plan {

// "cpu ebpf app", "memory pull 6060/debug/pprof/heap https", "cpu InvalidAnnotation", "warning
// UnknownAnnotation".
inline std::vector<std::string> Describe(const PodPlan& plan) {
  std::vector<std::string> words;
  for (const Collection& collection : plan.collections) {
    std::string text(ProfileTypeName(collection.type));
    if (collection.pull) {
      text += " pull " + std::to_string(collection.pull->port) + collection.pull->path;
      if (collection.pull->tls) {
        text += collection.pull->tls->insecure_skip_verify ? " https unverified" : " https";
      }
      for (const auto& [name, value] : collection.pull->parameters)
        text += " " + name + "=" + value;
      if (collection.pull->interval_ns != 15 * kNanosPerSecond) {
        text += " every " + std::to_string(collection.pull->interval_ns / kNanosPerSecond) + "s";
      }
    } else {
      text += " ebpf " + collection.container;
    }
    words.push_back(text);
  }
  for (const Refusal& refusal : plan.refusals) {
    words.push_back(std::string(ProfileTypeName(refusal.type)) + " " +
                    std::string(refusal.problem.reason));
  }
  for (const Problem& warning : plan.warnings)
    words.push_back("warning " + std::string(warning.reason));
  if (plan.vetoed) words.emplace_back("vetoed");
  if (plan.not_enabled) words.emplace_back("not enabled");
  return words;
}

}  // namespace flamefleet::plan
