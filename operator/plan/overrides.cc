// SPDX-License-Identifier: Apache-2.0
#include "operator/plan/overrides.h"

#include <algorithm>
#include <string>

#include "base/clock.h"
#include "base/reasons.h"
#include "operator/plan/resolve.h"

namespace flamefleet::plan {
namespace {

std::string PortText(const api::PortRef& port) {
  return port.name.empty() ? std::to_string(port.number) : "\"" + port.name + "\"";
}

std::string SchemeText(bool https) {
  return https ? "https" : "http";
}

std::string SecondsText(int64_t ns) {
  return std::to_string(ns / kNanosPerSecond) + "s";
}

std::string ParametersText(const api::StringMap& parameters) {
  std::string text;
  for (const auto& [name, value] : parameters)
    text += (text.empty() ? "?" : "&") + name + "=" + value;
  return text;
}

// By name and by number the same port is no conflict.
bool SamePort(const api::Pod& pod, const api::PortRef& a, const api::PortRef& b) {
  const auto one = ResolvePort(pod, a, {});
  const auto other = ResolvePort(pod, b, {});
  const auto* found = std::get_if<ResolvedPort>(&one);
  const auto* found_other = std::get_if<ResolvedPort>(&other);
  return a == b ||
         (found != nullptr && found_other != nullptr && found->number == found_other->number);
}

// Collects what one loser says in vain.
class Vain {
 public:
  Vain(ProfileType type, std::string loser, std::string winner, std::vector<Problem>& out)
      : type_(ProfileTypeName(type)),
        loser_(std::move(loser)),
        winner_(std::move(winner)),
        out_(out) {}

  // `said` by the loser, where the winner says `used`.
  void Differ(const std::string& what, const std::string& said, const std::string& used) {
    if (said == used) return;
    out_.push_back({reasons::kConflictingAnnotations, type_ + ": " + loser_ + " annotations say " +
                                                          what + said + ", " + winner_ + " says " +
                                                          used + ", which is used"});
  }
  // A bad value that does no harm, because the winner has a good one.
  void Bad(const std::optional<Problem>& problem) {
    if (problem) out_.push_back(*problem);
  }

 private:
  const std::string type_;
  const std::string loser_;
  const std::string winner_;
  std::vector<Problem>& out_;
};

void CompareToTarget(const OverrideInput& input, const AnnotatedProfile& said,
                     const api::ProfilingTarget& target, const api::ProfileSpec& profile,
                     Vain vain) {
  vain.Bad(said.wanted.problem);
  if (said.wanted.value == false) vain.Differ("", "not collected", "collected");
  const api::PullSpec& pull = profile.pull;
  const bool asks = said.wanted.value == true;
  if (profile.mode == api::CollectMode::kEbpf && asks && said.port.value)
    vain.Differ("port ", PortText(*said.port.value), "mode EBPF");
  if (profile.mode == api::CollectMode::kPull && said.ebpf.value == true)
    vain.Differ("", "eBPF", "mode Pull");
  if (profile.mode != api::CollectMode::kAuto) vain.Bad(said.ebpf.problem);
  if (pull.port) {
    vain.Bad(said.port.problem);
    if (said.port.value && !SamePort(input.pod, *said.port.value, *pull.port))
      vain.Differ("port ", PortText(*said.port.value), PortText(*pull.port));
  }
  if (pull.path) {
    vain.Bad(said.path.problem);
    if (said.path.value) vain.Differ("path ", *said.path.value, *pull.path);
  }
  if (pull.scheme) {
    vain.Bad(said.https.problem);
    if (said.https.value)
      vain.Differ("scheme ", SchemeText(*said.https.value),
                  SchemeText(*pull.scheme == api::PullScheme::kHttps));
  }
  if (pull.interval_ns && said.interval_ns)
    vain.Differ("every ", SecondsText(*said.interval_ns), SecondsText(*pull.interval_ns));
  if (!pull.parameters.empty() && !said.parameters.empty())
    vain.Differ("parameters ", ParametersText(said.parameters), ParametersText(pull.parameters));
  const std::vector<std::string>& containers = target.spec.containers;
  if (containers.empty()) return;
  vain.Bad(said.container.problem);
  if (said.container.value &&
      std::ranges::find(containers, *said.container.value) == containers.end())
    vain.Differ("container ", *said.container.value, "spec.containers");
}

}  // namespace

std::vector<Problem> OverriddenByTarget(const OverrideInput& input,
                                        const api::ProfilingTarget& target,
                                        const api::ProfileSpec& profile) {
  std::vector<Problem> out;
  const std::string winner = "ProfilingTarget \"" + target.meta.name + "\"";
  CompareToTarget(input, input.pyroscope, target, profile,
                  Vain(input.type, "pyroscope.io", winner, out));
  CompareToTarget(input, input.grafana, target, profile,
                  Vain(input.type, "profiles.grafana.com", winner, out));
  return out;
}

std::vector<Problem> WithoutEffect(const api::Pod& pod, const api::ProfilingTarget& target,
                                   const api::ProfileSpec& profile,
                                   const std::vector<Collection>& collections) {
  std::vector<Problem> out;
  const bool by_ebpf = std::ranges::none_of(
      collections, [](const Collection& collection) { return collection.pull.has_value(); });
  if (by_ebpf && profile.pull != api::PullSpec()) {
    out.push_back(
        {reasons::kPortRequired, "cpu: pull of ProfilingTarget \"" + target.meta.name +
                                     "\" has no effect: no port is set, so it is sampled by eBPF"});
  }
  if (!by_ebpf && profile.thread_labels) {
    out.push_back({reasons::kModeNotSupported, "cpu: threadLabels of ProfilingTarget \"" +
                                                   target.meta.name +
                                                   "\" has no effect: the profile is pulled"});
  }
  for (const std::string& name : target.spec.containers) {
    const auto found = std::ranges::find(pod.containers, name, &api::Container::name);
    if (found != pod.containers.end() && found->kind != api::ContainerKind::kInit) continue;
    out.push_back({reasons::kContainerNotFound, std::string(ProfileTypeName(profile.type)) +
                                                    ": the pod has no container \"" + name +
                                                    "\" that is not an init container"});
  }
  return out;
}

std::vector<Problem> OverriddenByPyroscope(const OverrideInput& input) {
  std::vector<Problem> out;
  const AnnotatedProfile& used = input.pyroscope;
  const AnnotatedProfile& said = input.grafana;
  Vain vain(input.type, "profiles.grafana.com", "pyroscope.io", out);
  if (used.wanted.value == false && said.wanted.value == true)
    vain.Differ("", "collected", "not collected");
  if (used.wanted.value != true || said.wanted.value != true) return out;
  if (used.path.value && said.path.value) vain.Differ("path ", *said.path.value, *used.path.value);
  if (used.https.value && said.https.value)
    vain.Differ("scheme ", SchemeText(*said.https.value), SchemeText(*used.https.value));
  return out;
}

}  // namespace flamefleet::plan
