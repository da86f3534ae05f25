// SPDX-License-Identifier: Apache-2.0
// The family profiles.grafana.com/<type>.<key>. Every type has a switch, a port and a path of its
// own.
#include <utility>

#include "base/reasons.h"
#include "operator/plan/annotation_values.h"
#include "operator/plan/annotations.h"

namespace flamefleet::plan {
namespace {

// Copied to series labels of the same name.
constexpr std::string_view kLabelKeys[] = {"service_repository", "service_git_ref",
                                           "service_root_path"};

class Reader {
 public:
  FamilyAnnotations Read(const api::StringMap& annotations) {
    for (const auto& [key, value] : annotations) {
      if (key == api::kOtelServiceName) {
        ReadName(key, value, otel_name_);
      } else if (key.starts_with(api::kGrafanaPrefix) && !ReadPodKey(key, value) &&
                 !ReadTypeKey(key, value)) {
        out_.warnings.push_back({reasons::kUnknownAnnotation, key + ": nobody reads this key"});
      }
    }
    if (out_.service_name.empty()) out_.service_name = otel_name_;
    ResolveCpu();
    return std::move(out_);
  }

 private:
  bool ReadPodKey(const std::string& key, const std::string& value) {
    const std::string_view name = std::string_view(key).substr(api::kGrafanaPrefix.size());
    if (name == "service_name") {
      ReadName(key, value, out_.service_name);
      return true;
    }
    for (const std::string_view label : kLabelKeys) {
      if (name != label) continue;
      std::optional<Problem> problem;
      if (auto text = AnnotationValue(key, value, problem).Parameter())
        out_.labels.emplace(label, *std::move(text));
      if (problem) out_.warnings.push_back(*std::move(problem));
      return true;
    }
    return false;
  }

  bool ReadTypeKey(const std::string& key, const std::string& value) {
    const std::string_view name = std::string_view(key).substr(api::kGrafanaPrefix.size());
    const size_t dot = name.find('.');
    if (dot == std::string_view::npos) return false;
    const std::optional<ProfileType> type = ParseProfileType(name.substr(0, dot));
    if (!type) return false;
    const std::string_view field = name.substr(dot + 1);
    AnnotatedProfile& profile = out_.For(*type);
    if (field == "scrape") {
      profile.wanted.value = AnnotationValue(key, value, profile.wanted.problem).Bool();
    } else if (field == "port") {
      const auto number = AnnotationValue(key, value, profile.port.problem).PortNumber();
      if (number) Port(profile).number = *number;
    } else if (field == "port_name") {
      auto port_name = AnnotationValue(key, value, profile.port.problem).PortName();
      if (port_name) Port(profile).name = *std::move(port_name);
    } else if (field == "path") {
      profile.path.value = AnnotationValue(key, value, profile.path.problem).Path();
    } else if (field == "container") {
      profile.container.value =
          AnnotationValue(key, value, profile.container.problem).ContainerName();
    } else if (field == "scheme") {
      profile.https.value = AnnotationValue(key, value, profile.https.problem).Https();
    } else if (field == "ebpf.enabled" && *type == ProfileType::kCpu) {
      profile.ebpf.value = AnnotationValue(key, value, profile.ebpf.problem).Bool();
    } else {
      return false;
    }
    return true;
  }

  static api::PortRef& Port(AnnotatedProfile& profile) {
    return profile.port.value ? *profile.port.value : profile.port.value.emplace();
  }

  // cpu.ebpf.enabled asks for cpu on its own, and chooses how when cpu.scrape asks as well.
  void ResolveCpu() {
    AnnotatedProfile& cpu = out_.For(ProfileType::kCpu);
    if (cpu.ebpf.value == true && cpu.wanted.value == true && cpu.port) {
      out_.warnings.push_back({reasons::kConflictingAnnotations,
                               "profiles.grafana.com/cpu.ebpf.enabled and cpu.port ask for cpu in "
                               "two ways: eBPF is used"});
    }
    if (cpu.ebpf.value != false && !cpu.wanted.problem && cpu.ebpf) cpu.wanted = cpu.ebpf;
  }

  void ReadName(const std::string& key, const std::string& value, std::string& out) {
    std::optional<Problem> problem;
    if (auto name = AnnotationValue(key, value, problem).Name()) out = *std::move(name);
    if (problem) out_.warnings.push_back(*std::move(problem));  // the next source of a name is used
  }

  FamilyAnnotations out_;
  std::string otel_name_;
};

}  // namespace

FamilyAnnotations ReadGrafanaAnnotations(const api::StringMap& annotations) {
  return Reader().Read(annotations);
}

}  // namespace flamefleet::plan
