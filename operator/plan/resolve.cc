// SPDX-License-Identifier: Apache-2.0
#include "operator/plan/resolve.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/reasons.h"

namespace flamefleet::plan {
namespace {

using api::CollectMode;

// As the CRD says.
constexpr int64_t kDefaultIntervalNs = 15 * kNanosPerSecond;
constexpr int64_t kDefaultTimeoutNs = 10 * kNanosPerSecond;

class Resolver {
 public:
  Resolver(const Request& request, const PodInput& input, const StringMap& labels)
      : request_(request), input_(input), labels_(labels) {}

  std::variant<std::vector<Collection>, Problem> Run() {
    containers_ = ContainerNames();
    CheckContainers();
    const Said<api::PortRef> port = Port();
    const CollectMode mode = Mode(port);
    const Backend* backend = FindBackend();
    if (problem_) return *std::move(problem_);
    std::vector<Collection> collections = mode == CollectMode::kEbpf ? ByEbpf() : ByPull(port);
    if (problem_) return *std::move(problem_);
    for (Collection& collection : collections)
      Complete(collection, *backend);
    return collections;
  }

 private:
  // Empty: no restriction.
  std::vector<std::string> ContainerNames() {
    if (request_.target != nullptr && !request_.target->spec.containers.empty())
      return request_.target->spec.containers;
    const Said<std::string> said = FirstSaid(&AnnotatedProfile::container);
    if (said.problem) Fail(*said.problem);
    return said.value ? std::vector<std::string>{*said.value} : std::vector<std::string>{};
  }

  bool IsWanted(const api::Container& container) const {
    const bool named =
        containers_.empty() || std::ranges::find(containers_, container.name) != containers_.end();
    return named && container.kind != api::ContainerKind::kInit;
  }

  void CheckContainers() {
    if (std::ranges::any_of(input_.pod.containers,
                            [&](const api::Container& container) { return IsWanted(container); }))
      return;
    std::string names;
    for (const std::string& name : containers_)
      names += (names.empty() ? " \"" : ", \"") + name + "\"";
    Fail({reasons::kContainerNotFound,
          "the pod has no container" + names + " that is not an init container"});
  }

  // The target's; else the annotations', which must not disagree.
  Said<api::PortRef> Port() {
    if (request_.profile != nullptr && request_.profile->pull.port)
      return {request_.profile->pull.port, std::nullopt};
    Said<api::PortRef> first;
    std::optional<ResolvedPort> resolved;
    for (const AnnotatedProfile* annotations : request_.annotations) {
      if (!annotations->port) continue;
      if (!first) first = annotations->port;
      if (!annotations->port.value) continue;
      const auto port = ResolvePort(input_.pod, *annotations->port.value, containers_);
      if (const auto* found = std::get_if<ResolvedPort>(&port)) {
        if (resolved && resolved->number != found->number) {
          return {std::nullopt,
                  Problem{reasons::kConflictingPorts,
                          "the pod's annotations name port " + std::to_string(resolved->number) +
                              " and port " + std::to_string(found->number) + " for " + Type()}};
        }
        resolved = *found;
      }
    }
    return first;
  }

  CollectMode Mode(const Said<api::PortRef>& port) {
    if (request_.profile != nullptr && request_.profile->mode != CollectMode::kAuto) {
      if (request_.profile->mode == CollectMode::kEbpf && request_.type != ProfileType::kCpu) {
        Fail({reasons::kModeNotSupported, Type() + " cannot be collected by eBPF"});
      }
      return request_.profile->mode;
    }
    const Said<bool> ebpf = FirstSaid(&AnnotatedProfile::ebpf);
    if (ebpf.problem) Fail(*ebpf.problem);
    if (ebpf.value && request_.type == ProfileType::kCpu)
      return *ebpf.value ? CollectMode::kEbpf : CollectMode::kPull;
    return request_.type == ProfileType::kCpu && !port ? CollectMode::kEbpf : CollectMode::kPull;
  }

  const Backend* FindBackend() {
    const std::string name = request_.target == nullptr ? "" : request_.target->spec.backend;
    if (auto problem = input_.backends.WhyUnusable(name)) Fail(*std::move(problem));
    return input_.backends.Find(name);
  }

  std::vector<Collection> ByEbpf() const {
    const bool thread_labels = request_.profile != nullptr && request_.profile->thread_labels;
    std::vector<Collection> collections;
    for (const api::Container& container : input_.pod.containers) {
      if (IsWanted(container))
        collections.push_back({.container = container.name, .thread_labels = thread_labels});
    }
    return collections;
  }

  std::vector<Collection> ByPull(const Said<api::PortRef>& port) {
    if (port.problem) Fail(*port.problem);
    if (!port) {
      Fail({reasons::kPortRequired, Type() + " is pulled over HTTP: set pull.port of the target or "
                                             "a port annotation of the pod"});
    }
    const api::PullSpec spec =
        request_.profile == nullptr ? api::PullSpec() : request_.profile->pull;
    PullSettings pull;
    pull.tls = Tls(spec);
    pull.path = Path(spec);
    pull.parameters = spec.parameters;
    pull.interval_ns = kDefaultIntervalNs;
    for (const AnnotatedProfile* annotations : request_.annotations) {
      if (annotations->pull_problem) Fail(*annotations->pull_problem);
      if (pull.parameters.empty()) pull.parameters = annotations->parameters;
      if (annotations->interval_ns) pull.interval_ns = *annotations->interval_ns;
    }
    pull.interval_ns = spec.interval_ns.value_or(pull.interval_ns);
    pull.timeout_ns = spec.timeout_ns.value_or(std::min(kDefaultTimeoutNs, pull.interval_ns));
    if (problem_) return {};
    const auto resolved = ResolvePort(input_.pod, *port.value, containers_);
    if (const auto* problem = std::get_if<Problem>(&resolved)) {
      Fail(*problem);
      return {};
    }
    const auto& found = std::get<ResolvedPort>(resolved);
    pull.port = found.number;
    return {Collection{.container = found.container, .pull = std::move(pull)}};
  }

  std::optional<api::PullTls> Tls(const api::PullSpec& spec) {
    if (spec.scheme) {
      return *spec.scheme == api::PullScheme::kHttps ? std::optional(spec.tls) : std::nullopt;
    }
    const Said<bool> https = FirstSaid(&AnnotatedProfile::https);
    if (https.problem) Fail(*https.problem);
    if (!https.value.value_or(false)) return std::nullopt;
    // As the kubelet's probes: annotations cannot say whom to trust, and no credential is sent.
    return api::PullTls{.insecure_skip_verify = true};
  }

  std::string Path(const api::PullSpec& spec) {
    if (spec.path) return *spec.path;
    const Said<std::string> path = FirstSaid(&AnnotatedProfile::path);
    if (path.problem) Fail(*path.problem);
    return path.value.value_or(request_.default_path);
  }

  void Complete(Collection& collection, const Backend& backend) const {
    collection.type = request_.type;
    collection.backend = backend.name;
    collection.labels = labels_;
    if (!collection.container.empty()) collection.labels["container"] = collection.container;
    // The last resort of a service's name, and only here known per collection.
    auto& service = collection.labels["service_name"];
    if (service.empty())
      service = collection.container.empty() ? input_.pod.meta.name : collection.container;
  }

  template <typename T>
  Said<T> FirstSaid(Said<T> AnnotatedProfile::*field) const {
    for (const AnnotatedProfile* annotations : request_.annotations) {
      if (annotations->*field) return annotations->*field;
    }
    return {};
  }

  std::string Type() const { return std::string(ProfileTypeName(request_.type)); }

  // The first problem is the one that is told.
  void Fail(Problem problem) {
    if (!problem_) problem_ = std::move(problem);
  }

  const Request& request_;
  const PodInput& input_;
  const StringMap& labels_;
  std::vector<std::string> containers_;
  std::optional<Problem> problem_;
};

}  // namespace

std::variant<std::vector<Collection>, Problem> Resolve(const Request& request,
                                                       const PodInput& input,
                                                       const StringMap& labels) {
  return Resolver(request, input, labels).Run();
}

}  // namespace flamefleet::plan
