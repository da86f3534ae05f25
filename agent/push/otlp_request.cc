// SPDX-License-Identifier: Apache-2.0
#include "agent/push/otlp_request.h"

#include <openssl/sha.h>

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "base/pprof/profile.h"
#include "proto/otlp/profiles.pb.h"
#include "proto/pyroscope/push.pb.h"

namespace flamefleet::agent {
namespace {

namespace pb = opentelemetry::proto::collector::profiles::v1development;

constexpr std::string_view kName = "__name__";
constexpr std::string_view kReserved = "__";
constexpr size_t kProfileIdBytes = 16;

// What OpenTelemetry calls our labels.
constexpr std::pair<std::string_view, const char*> kAttributeNames[] = {
    {"service_name", "service.name"}, {"namespace", "k8s.namespace.name"}, {"pod", "k8s.pod.name"},
    {"node", "k8s.node.name"},        {"container", "k8s.container.name"},
};

std::string AttributeName(const std::string& label) {
  const auto found =
      std::ranges::find(kAttributeNames, label, [](const auto& pair) { return pair.first; });
  return found == std::end(kAttributeNames) ? label : found->second;
}

// Fills the dictionary from a profile: element i of ours is i + 1 there.
class Tables {
 public:
  Tables(const pprof::Profile& from, pb::ProfilesDictionary* to) : from_(from), to_(*to) {
    for (uint32_t i = 0; i < from.strings.Size(); ++i)
      to_.add_string_table(std::string(from.strings.Get(i)));
    to_.add_link_table();
    to_.add_attribute_table();
    AddFunctions();
    AddMappings();
    AddLocations();
    to_.add_stack_table();
  }

  int Stack(const pprof::Sample& sample) {
    pb::Stack* const stack = to_.add_stack_table();
    for (uint32_t i = 0; i < sample.location_count; ++i) {
      stack->add_location_indices(
          static_cast<int>(from_.sample_locations[sample.first_location + i]) + 1);
    }
    return to_.stack_table_size() - 1;
  }

  int Attribute(const std::string& key, const std::string& text) {
    pb::KeyValueAndUnit* const attribute = to_.add_attribute_table();
    attribute->set_key_strindex(Text(key));
    attribute->mutable_value()->set_string_value(text);
    return to_.attribute_table_size() - 1;
  }

  // Equal labels are one attribute.
  int Attribute(const pprof::Label& label) {
    const auto [found, is_new] = labels_.try_emplace(
        std::array<int64_t, 4>{label.key, label.text, label.number, label.unit}, 0);
    if (!is_new) return found->second;
    pb::KeyValueAndUnit* const attribute = to_.add_attribute_table();
    attribute->set_key_strindex(static_cast<int>(label.key));
    if (label.text != 0) {
      attribute->mutable_value()->set_string_value(std::string(from_.strings.Get(label.text)));
    } else {
      attribute->mutable_value()->set_int_value(label.number);
      attribute->set_unit_strindex(static_cast<int>(label.unit));
    }
    return found->second = to_.attribute_table_size() - 1;
  }

 private:
  int Text(const std::string& text) {
    const auto [found, is_new] = texts_.try_emplace(text, to_.string_table_size());
    if (is_new) to_.add_string_table(text);
    return found->second;
  }

  void AddFunctions() {
    to_.add_function_table();
    for (const pprof::Function& function : from_.functions) {
      pb::Function* const out = to_.add_function_table();
      out->set_name_strindex(static_cast<int>(function.name));
      out->set_system_name_strindex(static_cast<int>(function.system_name));
      out->set_filename_strindex(static_cast<int>(function.file_name));
      out->set_start_line(function.start_line);
    }
  }

  void AddMappings() {
    to_.add_mapping_table();
    for (const pprof::Mapping& mapping : from_.mappings) {
      pb::Mapping* const out = to_.add_mapping_table();
      out->set_memory_start(mapping.memory_start);
      out->set_memory_limit(mapping.memory_limit);
      out->set_file_offset(mapping.file_offset);
      out->set_filename_strindex(static_cast<int>(mapping.file_name));
      if (mapping.build_id == 0) continue;
      out->add_attribute_indices(Attribute("process.executable.build_id.gnu",
                                           std::string(from_.strings.Get(mapping.build_id))));
    }
  }

  void AddLocations() {
    to_.add_location_table();
    for (const pprof::Location& location : from_.locations) {
      pb::Location* const out = to_.add_location_table();
      if (location.mapping != pprof::kNone)
        out->set_mapping_index(static_cast<int>(location.mapping) + 1);
      out->set_address(location.address);
      for (uint32_t i = 0; i < location.line_count; ++i) {
        const pprof::Line& line = from_.lines[location.first_line + i];
        pb::Line* const to = out->add_lines();
        to->set_function_index(static_cast<int>(line.function) + 1);
        to->set_line(line.line);
        to->set_column(line.column);
      }
    }
  }

  const pprof::Profile& from_;
  pb::ProfilesDictionary& to_;
  std::map<std::string, int> texts_;              // that are in no profile
  std::map<std::array<int64_t, 4>, int> labels_;  // attributes of samples
};

void SetType(const pprof::ValueType& from, pb::ValueType* to) {
  to->set_type_strindex(static_cast<int>(from.type));
  to->set_unit_strindex(static_cast<int>(from.unit));
}

std::vector<size_t> TypesToSend(const pprof::Profile& profile) {
  const auto name = [&](size_t i) { return profile.strings.Get(profile.sample_types[i].type); };
  std::vector<size_t> all;
  bool has_cpu = false;
  for (size_t i = 0; i < profile.sample_types.size(); ++i) {
    all.push_back(i);
    has_cpu = has_cpu || name(i) == "cpu";
  }
  if (has_cpu) std::erase_if(all, [&](size_t i) { return name(i) == "samples"; });
  return all;
}

// The same for a retry.
std::string ProfileId(const std::string& body, size_t type) {
  const std::string text = body + std::to_string(type);
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
  return {digest.begin(), digest.begin() + kProfileIdBytes};
}

void AddProfiles(const pprof::Profile& profile, const std::string& body,
                 pb::ProfilesDictionary* dictionary, pb::ScopeProfiles* scope) {
  Tables tables(profile, dictionary);
  std::vector<int> stacks;
  std::vector<std::vector<int>> attributes(profile.samples.size());
  for (size_t i = 0; i < profile.samples.size(); ++i) {
    const pprof::Sample& sample = profile.samples[i];
    stacks.push_back(tables.Stack(sample));
    for (uint32_t j = 0; j < sample.label_count; ++j)
      attributes[i].push_back(tables.Attribute(profile.sample_labels[sample.first_label + j]));
  }
  std::vector<int> of_profile;
  for (const auto& [key, text] : {std::pair("pprof.profile.drop_frames", profile.drop_frames),
                                  std::pair("pprof.profile.keep_frames", profile.keep_frames)}) {
    if (text != 0)
      of_profile.push_back(tables.Attribute(key, std::string(profile.strings.Get(text))));
  }
  for (const size_t type : TypesToSend(profile)) {
    pb::Profile* const out = scope->add_profiles();
    SetType(profile.sample_types[type], out->mutable_sample_type());
    SetType(profile.period_type, out->mutable_period_type());
    out->set_period(profile.period);
    out->set_time_unix_nano(static_cast<uint64_t>(profile.time_ns));
    out->set_duration_nano(static_cast<uint64_t>(profile.duration_ns));
    out->set_profile_id(ProfileId(body, type));
    out->mutable_attribute_indices()->Add(of_profile.begin(), of_profile.end());
    for (size_t i = 0; i < profile.samples.size(); ++i) {
      const int64_t value = profile.values[i * profile.sample_types.size() + type];
      if (value == 0) continue;
      pb::Sample* const sample = out->add_samples();
      sample->set_stack_index(stacks[i]);
      sample->add_values(value);
      sample->mutable_attribute_indices()->Add(attributes[i].begin(), attributes[i].end());
    }
  }
}

}  // namespace

std::optional<pb::ExportProfilesServiceRequest> ToOtlp(const std::string& body) {
  pyroscope::PushRequest push;
  if (!push.ParseFromString(body) || push.series_size() != 1 ||
      push.series(0).samples_size() != 1) {
    return std::nullopt;
  }
  pprof::Profile profile;
  if (!pprof::Decode(push.series(0).samples(0).raw_profile(), {}, &profile).ok())
    return std::nullopt;
  pb::ExportProfilesServiceRequest request;
  pb::ResourceProfiles* const resource = request.add_resource_profiles();
  pb::ScopeProfiles* const scope = resource->add_scope_profiles();
  for (const pyroscope::LabelPair& label : push.series(0).labels()) {
    if (label.name() == kName) scope->mutable_scope()->set_name(label.value());
    if (label.name().starts_with(kReserved)) continue;
    pb::KeyValue* const attribute = resource->mutable_resource()->add_attributes();
    attribute->set_key(AttributeName(label.name()));
    attribute->mutable_value()->set_string_value(label.value());
  }
  AddProfiles(profile, body, request.mutable_dictionary(), scope);
  return request;
}

}  // namespace flamefleet::agent
