// SPDX-License-Identifier: Apache-2.0
// A table is read when those that it points to are there: the messages are walked once for each.
// What a walk does not read costs it one jump.
#include "store/ingest/otlp_dictionary.h"

#include <cstdio>
#include <cstring>

#include "base/utf8.h"
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
using otlp::OnlyField;
using otlp::TooMany;

constexpr std::string_view kBuildId = "process.executable.build_id.gnu";
constexpr size_t kMaxBuildIdBytes = 256;  // a longer one is none

class Reader {
 public:
  Reader(const std::vector<std::string_view>& messages, const pprof::DecodeLimits& limits,
         OtlpDictionary* out)
      : messages_(messages), limits_(limits), out_(*out) {}

  Status Run() {
    using Tables = pb::ProfilesDictionary;
    FF_RETURN_IF_ERROR(ReadTable(Tables::kStringTableFieldNumber, "strings", limits_.max_strings,
                                 &out_.strings, &Reader::ReadString));
    FF_RETURN_IF_ERROR(ReadTable(Tables::kAttributeTableFieldNumber, "attributes",
                                 limits_.max_locations, &out_.attributes, &Reader::ReadAttribute));
    FF_RETURN_IF_ERROR(ReadTable(Tables::kFunctionTableFieldNumber, "functions",
                                 limits_.max_locations, &out_.functions, &Reader::ReadFunction));
    FF_RETURN_IF_ERROR(ReadTable(Tables::kMappingTableFieldNumber, "mappings",
                                 limits_.max_locations, &out_.mappings, &Reader::ReadMapping));
    FF_RETURN_IF_ERROR(ReadTable(Tables::kLocationTableFieldNumber, "locations",
                                 limits_.max_locations, &out_.locations, &Reader::ReadLocation));
    return ReadTable(Tables::kStackTableFieldNumber, "stacks", limits_.max_locations, &out_.stacks,
                     &Reader::ReadStack);
  }

 private:
  template <typename T>
  Status ReadTable(int number, const char* what, size_t limit, std::vector<T>* table,
                   Status (Reader::*read)(std::string_view, T*)) {
    for (const std::string_view message : messages_) {
      FF_RETURN_IF_ERROR(ForEachMessage(message, number, what, [&](std::string_view element) {
        if (table->size() >= limit) return TooMany(what, limit);
        table->emplace_back();
        return (this->*read)(element, &table->back());
      }));
    }
    if (table->empty()) table->emplace_back();
    return OkStatus();
  }

  Status Text(const WireField& field, uint32_t* out) const {
    return Index(field, out_.strings.size(), "strings", out);
  }

  Status ReadString(std::string_view text, std::string_view* out) {
    if (out_.strings.size() == 1 && !text.empty()) return Bad("string 0 is not empty");
    if (!IsUtf8(text)) {
      return Bad("string " + std::to_string(out_.strings.size() - 1) + " is not UTF-8");
    }
    *out = text;
    return OkStatus();
  }

  Status ReadAttribute(std::string_view message, OtlpDictionary::Attribute* out) {
    return ForEachField(message, "attribute", [&](const WireField& field) {
      switch (field.number) {
        case pb::KeyValueAndUnit::kKeyStrindexFieldNumber:
          return Text(field, &out->key);
        case pb::KeyValueAndUnit::kValueFieldNumber:
          if (field.type != WireType::kBytes) return Bad("a value with another wire type");
          out->value = field.bytes;
          return OkStatus();
        case pb::KeyValueAndUnit::kUnitStrindexFieldNumber:
          return Text(field, &out->unit);
        default:
          return OkStatus();
      }
    });
  }

  Status ReadFunction(std::string_view message, pprof::Function* out) {
    return ForEachField(message, "function", [&](const WireField& field) {
      switch (field.number) {
        case pb::Function::kNameStrindexFieldNumber:
          return Text(field, &out->name);
        case pb::Function::kSystemNameStrindexFieldNumber:
          return Text(field, &out->system_name);
        case pb::Function::kFilenameStrindexFieldNumber:
          return Text(field, &out->file_name);
        case pb::Function::kStartLineFieldNumber:
          return Number(field, &out->start_line);
        default:
          return OkStatus();
      }
    });
  }

  Status ReadMapping(std::string_view message, pprof::Mapping* out) {
    return ForEachField(message, "mapping", [&](const WireField& field) {
      switch (field.number) {
        case pb::Mapping::kMemoryStartFieldNumber:
          return Number(field, &out->memory_start);
        case pb::Mapping::kMemoryLimitFieldNumber:
          return Number(field, &out->memory_limit);
        case pb::Mapping::kFileOffsetFieldNumber:
          return Number(field, &out->file_offset);
        case pb::Mapping::kFilenameStrindexFieldNumber:
          return Text(field, &out->file_name);
        case pb::Mapping::kAttributeIndicesFieldNumber:
          return ForEachNumber(field, [&](uint64_t index) { return ReadBuildId(index, out); });
        default:
          return OkStatus();
      }
    });
  }

  // Its text is in the dictionary, or in the attribute: then it is added.
  Status ReadBuildId(uint64_t index, pprof::Mapping* out) {
    uint32_t attribute = 0;
    FF_RETURN_IF_ERROR(Index(index, out_.attributes.size(), "attributes", &attribute));
    if (out_.strings[out_.attributes[attribute].key] != kBuildId) return OkStatus();
    WireField field;
    FF_ASSIGN_OR_RETURN(const bool found,
                        OnlyField(out_.attributes[attribute].value, "build ID", &field));
    if (!found) return OkStatus();
    if (field.number == pb::AnyValue::kStringValueStrindexFieldNumber) {
      return Text(field, &out->build_id);
    }
    if (field.number != pb::AnyValue::kStringValueFieldNumber || field.type != WireType::kBytes ||
        field.bytes.size() > kMaxBuildIdBytes) {
      return OkStatus();
    }
    if (!IsUtf8(field.bytes)) return Bad("a build ID is not UTF-8");
    if (out_.strings.size() >= limits_.max_strings) return TooMany("strings", limits_.max_strings);
    out->build_id = static_cast<uint32_t>(out_.strings.size());
    out_.strings.push_back(field.bytes);
    return OkStatus();
  }

  Status ReadLocation(std::string_view message, pprof::Location* out) {
    out->mapping = 0;
    out->first_line = static_cast<uint32_t>(out_.lines.size());
    FF_RETURN_IF_ERROR(ForEachField(message, "location", [&](const WireField& field) {
      switch (field.number) {
        case pb::Location::kMappingIndexFieldNumber:
          return Index(field, out_.mappings.size(), "mappings", &out->mapping);
        case pb::Location::kAddressFieldNumber:
          return Number(field, &out->address);
        case pb::Location::kLinesFieldNumber:
          if (field.type != WireType::kBytes) return Bad("a line with another wire type");
          return ReadLine(field.bytes);
        default:
          return OkStatus();
      }
    }));
    out->line_count = static_cast<uint32_t>(out_.lines.size()) - out->first_line;
    if (out->line_count > 0) out_.mappings[out->mapping].has_functions = true;
    return OkStatus();
  }

  Status ReadLine(std::string_view message) {
    if (out_.lines.size() >= limits_.max_elements) return TooMany("lines", limits_.max_elements);
    pprof::Line line;
    FF_RETURN_IF_ERROR(ForEachField(message, "line", [&](const WireField& field) {
      switch (field.number) {
        case pb::Line::kFunctionIndexFieldNumber:
          return Index(field, out_.functions.size(), "functions", &line.function);
        case pb::Line::kLineFieldNumber:
          return Number(field, &line.line);
        case pb::Line::kColumnFieldNumber:
          return Number(field, &line.column);
        default:
          return OkStatus();
      }
    }));
    if (line.function != 0) out_.lines.push_back(line);
    return OkStatus();
  }

  Status ReadStack(std::string_view message, OtlpDictionary::Stack* out) {
    out->first = static_cast<uint32_t>(out_.stack_locations.size());
    const Status read = ForEachField(message, "stack", [&](const WireField& field) {
      if (field.number != pb::Stack::kLocationIndicesFieldNumber) return OkStatus();
      return ForEachNumber(field, [&](uint64_t index) {
        uint32_t location = 0;
        FF_RETURN_IF_ERROR(Index(index, out_.locations.size(), "locations", &location));
        if (location == 0) return OkStatus();
        if (out_.stack_locations.size() - out->first >= limits_.max_depth) {
          return TooMany("locations in a stack", limits_.max_depth);
        }
        if (out_.stack_locations.size() >= limits_.max_elements) {
          return TooMany("locations in all stacks", limits_.max_elements);
        }
        out_.stack_locations.push_back(location);
        return OkStatus();
      });
    });
    FF_RETURN_IF_ERROR(read);
    out->count = static_cast<uint32_t>(out_.stack_locations.size()) - out->first;
    return OkStatus();
  }

  const std::vector<std::string_view>& messages_;
  const pprof::DecodeLimits& limits_;
  OtlpDictionary& out_;
};

// As people write it: 0.5, 1e+20.
std::string FormatDouble(std::string_view fixed64) {
  double value = 0;
  std::memcpy(&value, fixed64.data(), sizeof value);
  char text[32];
  return {text, static_cast<size_t>(std::snprintf(text, sizeof text, "%g", value))};
}

}  // namespace

Result<OtlpDictionary> ReadOtlpDictionary(const std::vector<std::string_view>& messages,
                                          const pprof::DecodeLimits& limits) {
  OtlpDictionary dictionary;
  FF_RETURN_IF_ERROR(Reader(messages, limits, &dictionary).Run());
  return dictionary;
}

Status ReadOtlpValue(std::string_view message, const OtlpDictionary& dictionary, OtlpValue* out) {
  *out = {};
  WireField field;
  FF_ASSIGN_OR_RETURN(const bool found, OnlyField(message, "value of an attribute", &field));
  if (!found) return OkStatus();
  switch (field.number) {
    case pb::AnyValue::kStringValueFieldNumber:
      if (field.type != WireType::kBytes) return Bad("a text with another wire type");
      if (!IsUtf8(field.bytes)) return Bad("the value of an attribute is not UTF-8");
      out->text = field.bytes;
      return OkStatus();
    case pb::AnyValue::kStringValueStrindexFieldNumber: {
      uint32_t text = 0;
      FF_RETURN_IF_ERROR(Index(field, dictionary.strings.size(), "strings", &text));
      out->text = dictionary.strings[text];
      return OkStatus();
    }
    case pb::AnyValue::kBoolValueFieldNumber: {
      uint64_t value = 0;
      FF_RETURN_IF_ERROR(Number(field, &value));
      out->text = value != 0 ? "true" : "false";
      return OkStatus();
    }
    case pb::AnyValue::kIntValueFieldNumber:
      return Number(field, &out->number.emplace());
    case pb::AnyValue::kDoubleValueFieldNumber:
      if (field.type != WireType::kFixed64) return Bad("a fraction with another wire type");
      out->made = FormatDouble(field.bytes);
      out->text = out->made;
      return OkStatus();
    default:
      return OkStatus();
  }
}

}  // namespace flamefleet::store
