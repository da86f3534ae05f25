// SPDX-License-Identifier: Apache-2.0
// The family pyroscope.io/*. One switch (scrape) and one port for the whole pod; per type enabled,
// path and parameters.
#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/reasons.h"
#include "operator/plan/annotation_values.h"
#include "operator/plan/annotations.h"

namespace flamefleet::plan {
namespace {

struct TypeName {
  std::string_view name;
  ProfileType type;
};
constexpr TypeName kTypeNames[] = {{"cpu", ProfileType::kCpu},
                                   {"mem", ProfileType::kMemory},
                                   {"goroutines", ProfileType::kGoroutine},
                                   {"mutex", ProfileType::kMutex},
                                   {"block", ProfileType::kBlock}};

constexpr int64_t kMinIntervalNs = 5 * kNanosPerSecond;

class Reader {
 public:
  FamilyAnnotations Read(const api::StringMap& annotations) {
    for (const auto& [key, value] : annotations) {
      if (!key.starts_with(api::kPyroscopePrefix)) continue;
      if (!ReadPodKey(key, value) && !ReadTypeKey(key, value)) {
        out_.warnings.push_back({reasons::kUnknownAnnotation, key + ": nobody reads this key"});
      }
    }
    ApplyDefaults();
    return std::move(out_);
  }

 private:
  // Keys that concern the whole pod.
  bool ReadPodKey(const std::string& key, const std::string& value) {
    const std::string_view name = std::string_view(key).substr(api::kPyroscopePrefix.size());
    if (name == "scrape") {
      scrape_.value = AnnotationValue(key, value, scrape_.problem).Bool();
    } else if (name == "port") {
      if (const auto number = AnnotationValue(key, value, port_.problem).PortNumber())
        port_.value = {*number, ""};
    } else if (name == "scheme") {
      https_.value = AnnotationValue(key, value, https_.problem).Https();
    } else if (name == "service_name") {
      ReadName(key, value, service_name_);
    } else if (name == "application-name") {
      ReadName(key, value, application_name_);
    } else {
      return name == "spy-name";  // told the old server which language it is; pprof says so itself
    }
    return true;
  }

  // profile-<type>-enabled, -path and -param-<name>.
  bool ReadTypeKey(const std::string& key, const std::string& value) {
    std::string_view name = std::string_view(key).substr(api::kPyroscopePrefix.size());
    constexpr std::string_view kProfile = "profile-";
    if (!name.starts_with(kProfile)) return false;
    name.remove_prefix(kProfile.size());
    const auto* found = std::ranges::find_if(kTypeNames, [&](const TypeName& entry) {
      return name.starts_with(std::string(entry.name) + "-");
    });
    if (found == std::end(kTypeNames)) return false;
    name.remove_prefix(found->name.size() + 1);
    AnnotatedProfile& profile = out_.For(found->type);
    if (name == "enabled") {
      profile.wanted.value = AnnotationValue(key, value, profile.wanted.problem).Bool();
    } else if (name == "path") {
      profile.path.value = AnnotationValue(key, value, profile.path.problem).Path();
    } else if (name.starts_with("param-") && name.size() > 6) {
      ReadParameter(key, value, std::string(name.substr(6)), found->type);
    } else {
      return false;
    }
    return true;
  }

  void ReadParameter(const std::string& key, const std::string& value, const std::string& name,
                     ProfileType type) {
    AnnotatedProfile& profile = out_.For(type);
    const AnnotationValue reader(key, value, profile.pull_problem);
    if (type == ProfileType::kCpu && name == "seconds") {
      // The agent asks for as many seconds as fit into the interval, so the interval is what is
      // meant.
      if (const auto seconds = reader.WholeSeconds()) {
        profile.interval_ns = std::max(*seconds * kNanosPerSecond, kMinIntervalNs);
      }
    } else if (auto parameter = reader.Parameter()) {
      profile.parameters.emplace(name, *std::move(parameter));
    }
  }

  void ReadName(const std::string& key, const std::string& value, std::string& out) {
    std::optional<Problem> problem;
    if (auto name = AnnotationValue(key, value, problem).Name()) out = *std::move(name);
    if (problem) out_.warnings.push_back(*std::move(problem));  // the next source of a name is used
  }

  // What scrape and the absence of keys mean.
  void ApplyDefaults() {
    out_.veto = scrape_.value == false;
    out_.service_name = service_name_.empty() ? application_name_ : service_name_;
    for (const TypeName& entry : kTypeNames) {
      AnnotatedProfile& profile = out_.For(entry.type);
      if (scrape_.value != true) profile.wanted = {};
      if (!profile.wanted && IsOnByDefault(entry.type)) profile.wanted = scrape_;
      profile.port = port_;
      profile.https = https_;
    }
  }

  // Absent means on for cpu and mem. But nobody asked for mem where nothing says how to pull it.
  bool IsOnByDefault(ProfileType type) const {
    return type == ProfileType::kCpu || (type == ProfileType::kMemory && port_);
  }

  FamilyAnnotations out_;
  Said<bool> scrape_;
  Said<api::PortRef> port_;
  std::string service_name_;
  std::string application_name_;
  Said<bool> https_;
};

}  // namespace

FamilyAnnotations ReadPyroscopeAnnotations(const api::StringMap& annotations) {
  return Reader().Read(annotations);
}

}  // namespace flamefleet::plan
