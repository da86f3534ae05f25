// SPDX-License-Identifier: Apache-2.0
#include "store/ingest/otlp_profile.h"

#include <cstring>
#include <utility>

#include "proto/otlp/profiles.pb.h"
#include "store/ingest/otlp_wire.h"

namespace flamefleet::store {
namespace {

namespace pb = opentelemetry::proto::collector::profiles::v1development;
using otlp::Bad;
using otlp::ForEachField;
using otlp::ForEachMessage;
using otlp::ForEachNumber;
using otlp::Index;
using otlp::Number;
using otlp::TooMany;

constexpr std::string_view kSamples = "samples";
constexpr std::string_view kCount = "count";
constexpr std::string_view kCpu = "cpu";
constexpr std::string_view kNanoseconds = "nanoseconds";

}  // namespace

OtlpProfileBuilder::OtlpProfileBuilder(const OtlpDictionary& dictionary,
                                       const pprof::DecodeLimits& limits)
    : dictionary_(dictionary),
      limits_(limits),
      strings_(dictionary.strings.size()),
      functions_(dictionary.functions.size()),
      mappings_(dictionary.mappings.size()),
      locations_(dictionary.locations.size()),
      label_of_(dictionary.attributes.size()) {}

Status OtlpProfileBuilder::Build(std::string_view message, Counts counts) {
  profile_.Clear();
  labels_.clear();
  attributes_.clear();
  for (IndexMap* map : {&strings_, &functions_, &mappings_, &locations_, &label_of_})
    map->Clear();
  profile_.sample_types.resize(1);
  FF_RETURN_IF_ERROR(ReadHead(message));
  int64_t factor = 1;
  pprof::ValueType* const type = &profile_.sample_types[0];
  if (counts == Counts::kBecomeTime && profile_.period > 0 && Is(*type, kSamples, kCount) &&
      Is(profile_.period_type, kCpu, kNanoseconds)) {
    factor = profile_.period;
    *type = profile_.period_type;
  }
  for (const uint32_t attribute : attributes_) {
    FF_RETURN_IF_ERROR(ReadPprofAttribute(attribute));
  }
  for (pprof::ValueType* const named : {type, &profile_.period_type})
    *named = {.type = String(named->type), .unit = String(named->unit)};
  return ForEachMessage(message, pb::Profile::kSamplesFieldNumber, "sample",
                        [&](std::string_view sample) { return ReadSample(sample, factor); });
}

Status OtlpProfileBuilder::ReadHead(std::string_view message) {
  return ForEachField(message, "profile", [&](const WireField& field) {
    switch (field.number) {
      case pb::Profile::kSampleTypeFieldNumber:
        return ReadValueType(field, &profile_.sample_types[0]);
      case pb::Profile::kTimeUnixNanoFieldNumber:
        if (field.type != WireType::kFixed64) return Bad("a time with another wire type");
        std::memcpy(&profile_.time_ns, field.bytes.data(), sizeof profile_.time_ns);
        return OkStatus();
      case pb::Profile::kDurationNanoFieldNumber:
        return Number(field, &profile_.duration_ns);
      case pb::Profile::kPeriodTypeFieldNumber:
        return ReadValueType(field, &profile_.period_type);
      case pb::Profile::kPeriodFieldNumber:
        return Number(field, &profile_.period);
      case pb::Profile::kAttributeIndicesFieldNumber:
        return ReadAttributes(field, &attributes_);
      default:
        return OkStatus();
    }
  });
}

Status OtlpProfileBuilder::ReadPprofAttribute(uint32_t attribute) {
  const std::string_view key = dictionary_.strings[dictionary_.attributes[attribute].key];
  for (const auto& [name, out] : {std::pair("pprof.profile.drop_frames", &profile_.drop_frames),
                                  std::pair("pprof.profile.keep_frames", &profile_.keep_frames),
                                  std::pair("pprof.profile.doc_url", &profile_.doc_url)}) {
    if (key != name) continue;
    OtlpValue value;
    FF_RETURN_IF_ERROR(ReadOtlpValue(dictionary_.attributes[attribute].value, dictionary_, &value));
    if (value.text) *out = profile_.strings.Intern(*value.text);
  }
  return OkStatus();
}

Status OtlpProfileBuilder::ReadAttributes(const WireField& field,
                                          std::vector<uint32_t>* out) const {
  return ForEachNumber(field, [&](uint64_t index) {
    uint32_t attribute = 0;
    FF_RETURN_IF_ERROR(Index(index, dictionary_.attributes.size(), "attributes", &attribute));
    if (out->size() >= limits_.max_depth) return TooMany("attributes", limits_.max_depth);
    out->push_back(attribute);
    return OkStatus();
  });
}

Status OtlpProfileBuilder::ReadValueType(const WireField& field, pprof::ValueType* out) const {
  if (field.type != WireType::kBytes) return Bad("a value type with another wire type");
  return ForEachField(field.bytes, "value type", [&](const WireField& part) {
    const bool is_type = part.number == pb::ValueType::kTypeStrindexFieldNumber;
    if (!is_type && part.number != pb::ValueType::kUnitStrindexFieldNumber) return OkStatus();
    return Index(part, dictionary_.strings.size(), "strings", is_type ? &out->type : &out->unit);
  });
}

// `type` has indexes of the dictionary.
bool OtlpProfileBuilder::Is(const pprof::ValueType& type, std::string_view name,
                            std::string_view unit) const {
  return dictionary_.strings[type.type] == name && dictionary_.strings[type.unit] == unit;
}

bool OtlpProfileBuilder::HoldsCpuTime(std::string_view message) const {
  pprof::ValueType type;
  const Status read = ForEachField(message, "profile", [&](const WireField& field) {
    return field.number == pb::Profile::kSampleTypeFieldNumber ? ReadValueType(field, &type)
                                                               : OkStatus();
  });
  return read.ok() && Is(type, kCpu, kNanoseconds);
}

Status OtlpProfileBuilder::ReadSampleFields(std::string_view message, uint32_t* stack,
                                            uint64_t* value) {
  bool has_values = false;
  uint64_t timestamps = 0;
  sample_attributes_.clear();
  FF_RETURN_IF_ERROR(ForEachField(message, "sample", [&](const WireField& field) {
    switch (field.number) {
      case pb::Sample::kStackIndexFieldNumber:
        return Index(field, dictionary_.stacks.size(), "stacks", stack);
      case pb::Sample::kAttributeIndicesFieldNumber:
        return ReadAttributes(field, &sample_attributes_);
      case pb::Sample::kValuesFieldNumber:
        return ForEachNumber(field, [&](uint64_t part) {
          has_values = true;
          *value += part;
          return OkStatus();
        });
      case pb::Sample::kTimestampsUnixNanoFieldNumber:
        if (field.type == WireType::kVarint) return Bad("times with another wire type");
        timestamps += field.bytes.size() / sizeof(uint64_t);  // one, or a packed list
        return OkStatus();
      default:
        return OkStatus();
    }
  }));
  if (!has_values) *value = timestamps;
  return OkStatus();
}

Status OtlpProfileBuilder::ReadSample(std::string_view message, int64_t factor) {
  if (profile_.samples.size() >= limits_.max_samples) {
    return TooMany("samples in a profile", limits_.max_samples);
  }
  uint32_t index = 0;
  uint64_t value = 0;
  FF_RETURN_IF_ERROR(ReadSampleFields(message, &index, &value));
  const OtlpDictionary::Stack& stack = dictionary_.stacks[index];
  if (profile_.sample_locations.size() + stack.count > limits_.max_elements) {
    return TooMany("locations in all samples", limits_.max_elements);
  }
  pprof::Sample out = {.first_location = static_cast<uint32_t>(profile_.sample_locations.size()),
                       .location_count = stack.count,
                       .first_label = static_cast<uint32_t>(profile_.sample_labels.size())};
  for (uint32_t i = 0; i < stack.count; ++i)
    profile_.sample_locations.push_back(Location(dictionary_.stack_locations[stack.first + i]));
  for (const uint32_t attribute : sample_attributes_) {
    FF_RETURN_IF_ERROR(AddLabel(attribute));
  }
  out.label_count = static_cast<uint32_t>(profile_.sample_labels.size()) - out.first_label;
  profile_.samples.push_back(out);
  profile_.values.push_back(static_cast<int64_t>(value * static_cast<uint64_t>(factor)));
  return OkStatus();
}

Status OtlpProfileBuilder::AddLabel(uint32_t attribute) {
  Status read;
  const uint32_t index = label_of_.Of(attribute, [&] {
    const OtlpDictionary::Attribute& from = dictionary_.attributes[attribute];
    OtlpValue value;
    if (from.key != 0) read = ReadOtlpValue(from.value, dictionary_, &value);
    pprof::Label label;
    if (value.text && !value.text->empty()) label.text = profile_.strings.Intern(*value.text);
    if (value.number) {
      label.number = *value.number;
      label.unit = String(from.unit);
    }
    if (label.text != 0 || value.number) label.key = String(from.key);
    labels_.push_back(label);
    return static_cast<uint32_t>(labels_.size() - 1);
  });
  FF_RETURN_IF_ERROR(read);
  if (labels_[index].key == 0) return OkStatus();
  if (profile_.sample_labels.size() >= limits_.max_elements) {
    return TooMany("labels", limits_.max_elements);
  }
  profile_.sample_labels.push_back(labels_[index]);
  return OkStatus();
}

uint32_t OtlpProfileBuilder::String(uint32_t index) {
  return strings_.Of(index, [&] { return profile_.strings.Intern(dictionary_.strings[index]); });
}

uint32_t OtlpProfileBuilder::Function(uint32_t index) {
  return functions_.Of(index, [&] {
    const pprof::Function& from = dictionary_.functions[index];
    profile_.functions.push_back({.name = String(from.name),
                                  .system_name = String(from.system_name),
                                  .file_name = String(from.file_name),
                                  .start_line = from.start_line});
    return static_cast<uint32_t>(profile_.functions.size() - 1);
  });
}

uint32_t OtlpProfileBuilder::Mapping(uint32_t index) {
  if (index == 0) return pprof::kNone;
  return mappings_.Of(index, [&] {
    pprof::Mapping mapping = dictionary_.mappings[index];
    mapping.file_name = String(mapping.file_name);
    mapping.build_id = String(mapping.build_id);
    profile_.mappings.push_back(mapping);
    return static_cast<uint32_t>(profile_.mappings.size() - 1);
  });
}

uint32_t OtlpProfileBuilder::Location(uint32_t index) {
  return locations_.Of(index, [&] {
    pprof::Location location = dictionary_.locations[index];
    location.mapping = Mapping(location.mapping);
    const uint32_t first =
        std::exchange(location.first_line, static_cast<uint32_t>(profile_.lines.size()));
    for (uint32_t i = first; i < first + location.line_count; ++i) {
      pprof::Line line = dictionary_.lines[i];
      line.function = Function(line.function);
      profile_.lines.push_back(line);
    }
    profile_.locations.push_back(location);
    return static_cast<uint32_t>(profile_.locations.size() - 1);
  });
}

}  // namespace flamefleet::store
