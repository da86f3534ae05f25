// SPDX-License-Identifier: Apache-2.0
// An id or a string may be used before it is defined, so the message is walked three times:
// strings, types, mappings and functions; then locations; then samples. What a pass does not read
// costs it one jump.
#include <algorithm>
#include <type_traits>

#include "base/gzip.h"
#include "base/pprof/fields.h"
#include "base/pprof/id_map.h"
#include "base/pprof/profile.h"
#include "base/utf8.h"
#include "base/wire_fields.h"

namespace flamefleet::pprof {
namespace {

constexpr const char* kFormat = "pprof";

Status Bad(const std::string& what) {
  return InvalidArgumentError(std::string(kFormat) + ": " + what);
}

Status TooMany(const std::string& what, size_t limit) {
  return ResourceExhaustedError("pprof: more than " + std::to_string(limit) + " " + what);
}

class Decoder {
 public:
  Decoder(std::string_view data, const DecodeLimits& limits, Profile* out)
      : data_(data), limits_(limits), left_(limits.max_memory), out_(out) {}

  Status Run() {
    FF_RETURN_IF_ERROR(ReadTables());
    FF_RETURN_IF_ERROR(CheckStringIndexes());
    FF_RETURN_IF_ERROR(mapping_ids_.Seal("mapping"));
    FF_RETURN_IF_ERROR(function_ids_.Seal("function"));
    FF_RETURN_IF_ERROR(ReadLocations());
    FF_RETURN_IF_ERROR(location_ids_.Seal("location"));
    return ReadSamples();
  }

 private:
  template <typename T>
  Status Varint(const WireField& field, T* value) {
    if (field.type != WireType::kVarint) return Bad("a number with another wire type");
    if constexpr (std::is_same_v<T, bool>) {
      *value = field.varint != 0;
    } else {
      *value = static_cast<T>(field.varint);
    }
    return OkStatus();
  }

  // An index into the string table, whose end is not known yet: see CheckStringIndexes.
  Status String(const WireField& field, uint32_t* index) {
    if (field.type != WireType::kVarint) return Bad("a string index with another wire type");
    max_string_ = std::max(max_string_, field.varint);
    *index = static_cast<uint32_t>(field.varint);
    return OkStatus();
  }

  Status CheckStringIndexes() const {
    if (max_string_ < out_->strings.Size()) return OkStatus();
    return Bad("string index " + std::to_string(max_string_) + " of " +
               std::to_string(out_->strings.Size()));
  }

  // Before each element is added.
  Status Hold(size_t bytes) {
    if (bytes > left_) return TooMany("bytes in memory", limits_.max_memory);
    left_ -= bytes;
    return OkStatus();
  }

  static Status Message(const WireField& field, const char* what) {
    if (field.type != WireType::kBytes) return Bad(std::string(what) + " with another wire type");
    return OkStatus();
  }

  template <typename Add>
  Status Repeated(const WireField& field, const Add& add) {
    return ForEachNumber(kFormat, field, add);
  }
  template <typename Handle>
  Status ForEachField(std::string_view message, const char* what, const Handle& handle) {
    return flamefleet::ForEachField(kFormat, message, what, handle);
  }

  Status ReadTables();
  Status ReadTableField(const WireField& field);
  Status ReadString(std::string_view text);
  Status ReadValueType(std::string_view message, ValueType* out);
  Status ReadMapping(std::string_view message);
  Status ReadFunction(std::string_view message);
  Status ReadLocations();
  Status ReadLocation(std::string_view message);
  Status ReadLine(std::string_view message);
  Status ReadSamples();
  Status ReadSample(std::string_view message);
  Status ReadLabel(std::string_view message);

  const std::string_view data_;
  const DecodeLimits& limits_;
  size_t left_;  // of limits_.max_memory
  Profile* const out_;
  IdMap mapping_ids_;
  IdMap function_ids_;
  IdMap location_ids_;
  uint64_t max_string_ = 0;
  bool first_string_seen_ = false;
};

Status Decoder::ReadTables() {
  return ForEachField(data_, "profile", [this](const WireField& f) { return ReadTableField(f); });
}

Status Decoder::ReadTableField(const WireField& field) {
  switch (field.number) {
    case ProfileField::kSampleType:
      FF_RETURN_IF_ERROR(Message(field, "sample_type"));
      return ReadValueType(field.bytes, &out_->sample_types.emplace_back());
    case ProfileField::kMapping:
      FF_RETURN_IF_ERROR(Message(field, "mapping"));
      return ReadMapping(field.bytes);
    case ProfileField::kFunction:
      FF_RETURN_IF_ERROR(Message(field, "function"));
      return ReadFunction(field.bytes);
    case ProfileField::kStringTable:
      FF_RETURN_IF_ERROR(Message(field, "string_table"));
      return ReadString(field.bytes);
    case ProfileField::kDropFrames:
      return String(field, &out_->drop_frames);
    case ProfileField::kKeepFrames:
      return String(field, &out_->keep_frames);
    case ProfileField::kTimeNanos:
      return Varint(field, &out_->time_ns);
    case ProfileField::kDurationNanos:
      return Varint(field, &out_->duration_ns);
    case ProfileField::kPeriodType:
      FF_RETURN_IF_ERROR(Message(field, "period_type"));
      return ReadValueType(field.bytes, &out_->period_type);
    case ProfileField::kPeriod:
      return Varint(field, &out_->period);
    case ProfileField::kComment:
      return Repeated(field, [this](uint64_t index) {
        if (out_->comments.size() >= limits_.max_elements) {
          return TooMany("comments", limits_.max_elements);
        }
        FF_RETURN_IF_ERROR(Hold(sizeof(uint32_t)));
        max_string_ = std::max(max_string_, index);
        out_->comments.push_back(static_cast<uint32_t>(index));
        return OkStatus();
      });
    case ProfileField::kDefaultSampleType:
      return String(field, &out_->default_sample_type);
    case ProfileField::kDocUrl:
      return String(field, &out_->doc_url);
    default:
      return OkStatus();
  }
}

Status Decoder::ReadString(std::string_view text) {
  if (!first_string_seen_) {
    first_string_seen_ = true;
    return text.empty() ? OkStatus() : Bad("string 0 is not empty");
  }
  if (out_->strings.Size() >= limits_.max_strings) return TooMany("strings", limits_.max_strings);
  FF_RETURN_IF_ERROR(Hold(text.size() + sizeof(uint32_t)));
  if (!IsUtf8(text)) {
    return Bad("string " + std::to_string(out_->strings.Size()) + " is not UTF-8");
  }
  out_->strings.Append(text);
  return OkStatus();
}

Status Decoder::ReadValueType(std::string_view message, ValueType* out) {
  if (out_->sample_types.size() > limits_.max_sample_types) {
    return TooMany("sample types", limits_.max_sample_types);
  }
  return ForEachField(message, "value type", [&](const WireField& field) {
    switch (field.number) {
      case ValueTypeField::kType:
        return String(field, &out->type);
      case ValueTypeField::kUnit:
        return String(field, &out->unit);
      default:
        return OkStatus();
    }
  });
}

Status Decoder::ReadMapping(std::string_view message) {
  if (out_->mappings.size() >= limits_.max_locations) {
    return TooMany("mappings", limits_.max_locations);
  }
  FF_RETURN_IF_ERROR(Hold(sizeof(Mapping) + IdMap::kBytesEach));
  uint64_t id = 0;
  Mapping& out = out_->mappings.emplace_back();
  const Status read = ForEachField(message, "mapping", [&](const WireField& field) {
    switch (field.number) {
      case MappingField::kId:
        return Varint(field, &id);
      case MappingField::kMemoryStart:
        return Varint(field, &out.memory_start);
      case MappingField::kMemoryLimit:
        return Varint(field, &out.memory_limit);
      case MappingField::kFileOffset:
        return Varint(field, &out.file_offset);
      case MappingField::kFilename:
        return String(field, &out.file_name);
      case MappingField::kBuildId:
        return String(field, &out.build_id);
      case MappingField::kHasFunctions:
        return Varint(field, &out.has_functions);
      case MappingField::kHasFilenames:
        return Varint(field, &out.has_file_names);
      case MappingField::kHasLineNumbers:
        return Varint(field, &out.has_line_numbers);
      case MappingField::kHasInlineFrames:
        return Varint(field, &out.has_inline_frames);
      default:
        return OkStatus();
    }
  });
  FF_RETURN_IF_ERROR(read);
  mapping_ids_.Add(id);
  return OkStatus();
}

Status Decoder::ReadFunction(std::string_view message) {
  if (out_->functions.size() >= limits_.max_locations) {
    return TooMany("functions", limits_.max_locations);
  }
  FF_RETURN_IF_ERROR(Hold(sizeof(Function) + IdMap::kBytesEach));
  uint64_t id = 0;
  Function& out = out_->functions.emplace_back();
  const Status read = ForEachField(message, "function", [&](const WireField& field) {
    switch (field.number) {
      case FunctionField::kId:
        return Varint(field, &id);
      case FunctionField::kName:
        return String(field, &out.name);
      case FunctionField::kSystemName:
        return String(field, &out.system_name);
      case FunctionField::kFilename:
        return String(field, &out.file_name);
      case FunctionField::kStartLine:
        return Varint(field, &out.start_line);
      default:
        return OkStatus();
    }
  });
  FF_RETURN_IF_ERROR(read);
  function_ids_.Add(id);
  return OkStatus();
}

Status Decoder::ReadLocations() {
  return ForEachField(data_, "profile", [this](const WireField& field) {
    if (field.number != ProfileField::kLocation) return OkStatus();
    FF_RETURN_IF_ERROR(Message(field, "location"));
    return ReadLocation(field.bytes);
  });
}

Status Decoder::ReadLocation(std::string_view message) {
  if (out_->locations.size() >= limits_.max_locations) {
    return TooMany("locations", limits_.max_locations);
  }
  FF_RETURN_IF_ERROR(Hold(sizeof(Location) + IdMap::kBytesEach));
  uint64_t id = 0;
  uint64_t mapping_id = 0;
  Location& out = out_->locations.emplace_back();
  out.first_line = static_cast<uint32_t>(out_->lines.size());
  const Status read = ForEachField(message, "location", [&](const WireField& field) {
    switch (field.number) {
      case LocationField::kId:
        return Varint(field, &id);
      case LocationField::kMappingId:
        return Varint(field, &mapping_id);
      case LocationField::kAddress:
        return Varint(field, &out.address);
      case LocationField::kLine:
        FF_RETURN_IF_ERROR(Message(field, "line"));
        return ReadLine(field.bytes);
      case LocationField::kIsFolded:
        return Varint(field, &out.is_folded);
      default:
        return OkStatus();
    }
  });
  FF_RETURN_IF_ERROR(read);
  out.line_count = static_cast<uint32_t>(out_->lines.size()) - out.first_line;
  if (mapping_id != 0 && !mapping_ids_.Find(mapping_id, &out.mapping)) {
    return Bad("location " + std::to_string(id) + " names mapping " + std::to_string(mapping_id) +
               ", which does not exist");
  }
  location_ids_.Add(id);
  return OkStatus();
}

Status Decoder::ReadLine(std::string_view message) {
  if (out_->lines.size() >= limits_.max_elements) return TooMany("lines", limits_.max_elements);
  FF_RETURN_IF_ERROR(Hold(sizeof(Line)));
  uint64_t function_id = 0;
  Line& out = out_->lines.emplace_back();
  const Status read = ForEachField(message, "line", [&](const WireField& field) {
    switch (field.number) {
      case LineField::kFunctionId:
        return Varint(field, &function_id);
      case LineField::kLine:
        return Varint(field, &out.line);
      case LineField::kColumn:
        return Varint(field, &out.column);
      default:
        return OkStatus();
    }
  });
  FF_RETURN_IF_ERROR(read);
  if (!function_ids_.Find(function_id, &out.function)) {
    return Bad("a line names function " + std::to_string(function_id) + ", which does not exist");
  }
  return OkStatus();
}

Status Decoder::ReadSamples() {
  const Status read = ForEachField(data_, "profile", [this](const WireField& field) {
    if (field.number != ProfileField::kSample) return OkStatus();
    FF_RETURN_IF_ERROR(Message(field, "sample"));
    return ReadSample(field.bytes);
  });
  FF_RETURN_IF_ERROR(read);
  return CheckStringIndexes();  // those of labels
}

Status Decoder::ReadSample(std::string_view message) {
  if (out_->samples.size() >= limits_.max_samples) return TooMany("samples", limits_.max_samples);
  FF_RETURN_IF_ERROR(Hold(sizeof(Sample)));
  Sample& out = out_->samples.emplace_back();
  out.first_location = static_cast<uint32_t>(out_->sample_locations.size());
  out.first_label = static_cast<uint32_t>(out_->sample_labels.size());
  const size_t first_value = out_->values.size();
  const Status read = ForEachField(message, "sample", [&](const WireField& field) {
    switch (field.number) {
      case SampleField::kLocationId:
        return Repeated(field, [&](uint64_t id) {
          uint32_t index = 0;
          if (!location_ids_.Find(id, &index)) {
            return Bad("a sample names location " + std::to_string(id) + ", which does not exist");
          }
          if (out_->sample_locations.size() - out.first_location >= limits_.max_depth) {
            return TooMany("locations in a sample", limits_.max_depth);
          }
          if (out_->sample_locations.size() >= limits_.max_elements) {
            return TooMany("locations in all samples", limits_.max_elements);
          }
          FF_RETURN_IF_ERROR(Hold(sizeof(index)));
          out_->sample_locations.push_back(index);
          return OkStatus();
        });
      case SampleField::kValue:
        return Repeated(field, [&](uint64_t value) {
          if (out_->values.size() >= limits_.max_elements) {
            return TooMany("values", limits_.max_elements);
          }
          FF_RETURN_IF_ERROR(Hold(sizeof(value)));
          out_->values.push_back(static_cast<int64_t>(value));
          return OkStatus();
        });
      case SampleField::kLabel:
        FF_RETURN_IF_ERROR(Message(field, "label"));
        return ReadLabel(field.bytes);
      default:
        return OkStatus();
    }
  });
  FF_RETURN_IF_ERROR(read);
  out.location_count = static_cast<uint32_t>(out_->sample_locations.size()) - out.first_location;
  out.label_count = static_cast<uint32_t>(out_->sample_labels.size()) - out.first_label;
  const size_t values = out_->values.size() - first_value;
  if (out_->sample_types.empty()) return Bad("samples but no sample type");
  if (values != out_->sample_types.size()) {
    return Bad("a sample has " + std::to_string(values) + " values, there are " +
               std::to_string(out_->sample_types.size()) + " sample types");
  }
  return OkStatus();
}

Status Decoder::ReadLabel(std::string_view message) {
  if (out_->sample_labels.size() >= limits_.max_elements) {
    return TooMany("labels", limits_.max_elements);
  }
  FF_RETURN_IF_ERROR(Hold(sizeof(Label)));
  Label& out = out_->sample_labels.emplace_back();
  return ForEachField(message, "label", [&](const WireField& field) {
    switch (field.number) {
      case LabelField::kKey:
        return String(field, &out.key);
      case LabelField::kStr:
        return String(field, &out.text);
      case LabelField::kNum:
        return Varint(field, &out.number);
      case LabelField::kNumUnit:
        return String(field, &out.unit);
      default:
        return OkStatus();
    }
  });
}

}  // namespace

Status Decode(std::string_view data, const DecodeLimits& limits, Profile* out) {
  out->Clear();
  std::string plain;
  if (IsGzip(data)) {
    Result<std::string> unzipped = GunzipBounded(data, limits.max_bytes);
    if (!unzipped.ok()) return Annotate(unzipped.status(), "pprof");
    plain = *std::move(unzipped);
    data = plain;
  }
  if (data.empty()) return Bad("empty");
  if (data.size() > limits.max_bytes) return TooMany("bytes", limits.max_bytes);
  return Decoder(data, limits, out).Run();
}

}  // namespace flamefleet::pprof
