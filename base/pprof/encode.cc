// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "base/pprof/fields.h"
#include "base/pprof/profile.h"
#include "base/wire.h"

namespace flamefleet::pprof {
namespace {

// More than any message without repeated fields takes: Mapping, the largest, has 10 fields of at
// most 11 bytes.
constexpr size_t kMaxFlatMessage = 128;
// Tag and length before a message.
constexpr size_t kMaxPrefix = 2 * kMaxVarintBytes;

// Writes at the end of a string that is kept larger than what is used; Finish cuts it to size. What
// is written has its room asked for before, by Ensure.
class Writer {
 public:
  explicit Writer(std::string* out) : out_(out), used_(out->size()) {}

  void Finish() { out_->resize(used_); }

  void Ensure(size_t bytes) {
    if (out_->size() - used_ >= bytes) return;
    out_->resize(std::max({out_->capacity(), 2 * out_->size(), used_ + bytes}));
  }

  void Varint(uint64_t value) {
    char* p = out_->data() + used_;
    char* const begin = p;
    while (value >= 0x80) {
      *p++ = static_cast<char>(value | 0x80);
      value >>= kVarintBits;
    }
    *p++ = static_cast<char>(value);
    used_ += static_cast<size_t>(p - begin);
  }

  void Tag(uint32_t field, WireType type) { Varint(field << 3 | static_cast<uint32_t>(type)); }

  // As proto3: zero is the default and not written.
  void Number(uint32_t field, uint64_t value) {
    if (value == 0) return;
    Tag(field, WireType::kVarint);
    Varint(value);
  }
  void Number(uint32_t field, int64_t value) { Number(field, static_cast<uint64_t>(value)); }

  void Text(uint32_t field, std::string_view text) {
    Tag(field, WireType::kBytes);
    Varint(text.size());
    std::memcpy(out_->data() + used_, text.data(), text.size());
    used_ += text.size();
  }

  // A message or packed field: what is written between Begin and End is its content. Most are
  // shorter than 128 bytes: one byte is left for the length, and a longer content moves.
  size_t Begin(uint32_t field) {
    Tag(field, WireType::kBytes);
    return ++used_;
  }
  void End(size_t content) {
    const size_t size = used_ - content;
    used_ = content - 1;
    if (size >= 0x80) {
      size_t prefix = 2;
      while (size >> (kVarintBits * prefix) != 0)
        ++prefix;
      char* const begin = out_->data() + used_;
      std::memmove(begin + prefix, begin + 1, size);
    }
    Varint(size);
    used_ += size;
  }

 private:
  std::string* out_;
  size_t used_;
};

void WriteValueType(uint32_t field, const ValueType& value, Writer* w) {
  w->Ensure(kMaxFlatMessage);
  const size_t message = w->Begin(field);
  w->Number(ValueTypeField::kType, uint64_t{value.type});
  w->Number(ValueTypeField::kUnit, uint64_t{value.unit});
  w->End(message);
}

void WriteLabel(const Label& label, Writer* w) {
  const size_t message = w->Begin(SampleField::kLabel);
  w->Number(LabelField::kKey, uint64_t{label.key});
  w->Number(LabelField::kStr, uint64_t{label.text});
  w->Number(LabelField::kNum, label.number);
  w->Number(LabelField::kNumUnit, uint64_t{label.unit});
  w->End(message);
}

void WriteSample(const Profile& profile, size_t index, Writer* w) {
  const Sample& sample = profile.samples[index];
  const size_t width = profile.sample_types.size();
  w->Ensure(kMaxPrefix * 3 + (sample.location_count + width) * kMaxVarintBytes +
            sample.label_count * kMaxFlatMessage);
  const size_t message = w->Begin(ProfileField::kSample);
  if (sample.location_count > 0) {
    const size_t ids = w->Begin(SampleField::kLocationId);
    const uint32_t* location = profile.sample_locations.data() + sample.first_location;
    for (uint32_t i = 0; i < sample.location_count; ++i)
      w->Varint(uint64_t{location[i]} + 1);
    w->End(ids);
  }
  if (width > 0) {
    const size_t values = w->Begin(SampleField::kValue);
    const int64_t* value = profile.values.data() + index * width;
    for (size_t i = 0; i < width; ++i) {
      w->Varint(static_cast<uint64_t>(value[i]));
    }
    w->End(values);
  }
  for (uint32_t i = 0; i < sample.label_count; ++i) {
    WriteLabel(profile.sample_labels[sample.first_label + i], w);
  }
  w->End(message);
}

void WriteMapping(const Mapping& mapping, uint64_t id, Writer* w) {
  w->Ensure(kMaxFlatMessage);
  const size_t message = w->Begin(ProfileField::kMapping);
  w->Number(MappingField::kId, id);
  w->Number(MappingField::kMemoryStart, mapping.memory_start);
  w->Number(MappingField::kMemoryLimit, mapping.memory_limit);
  w->Number(MappingField::kFileOffset, mapping.file_offset);
  w->Number(MappingField::kFilename, uint64_t{mapping.file_name});
  w->Number(MappingField::kBuildId, uint64_t{mapping.build_id});
  w->Number(MappingField::kHasFunctions, uint64_t{mapping.has_functions});
  w->Number(MappingField::kHasFilenames, uint64_t{mapping.has_file_names});
  w->Number(MappingField::kHasLineNumbers, uint64_t{mapping.has_line_numbers});
  w->Number(MappingField::kHasInlineFrames, uint64_t{mapping.has_inline_frames});
  w->End(message);
}

void WriteLocation(const Profile& profile, const Location& location, uint64_t id, Writer* w) {
  w->Ensure(kMaxFlatMessage * (1 + size_t{location.line_count}));
  const size_t message = w->Begin(ProfileField::kLocation);
  w->Number(LocationField::kId, id);
  w->Number(LocationField::kMappingId,
            location.mapping == kNone ? uint64_t{0} : uint64_t{location.mapping} + 1);
  w->Number(LocationField::kAddress, location.address);
  for (uint32_t i = 0; i < location.line_count; ++i) {
    const Line& line = profile.lines[location.first_line + i];
    const size_t line_message = w->Begin(LocationField::kLine);
    w->Number(LineField::kFunctionId, uint64_t{line.function} + 1);
    w->Number(LineField::kLine, line.line);
    w->Number(LineField::kColumn, line.column);
    w->End(line_message);
  }
  w->Number(LocationField::kIsFolded, uint64_t{location.is_folded});
  w->End(message);
}

void WriteFunction(const Function& function, uint64_t id, Writer* w) {
  w->Ensure(kMaxFlatMessage);
  const size_t message = w->Begin(ProfileField::kFunction);
  w->Number(FunctionField::kId, id);
  w->Number(FunctionField::kName, uint64_t{function.name});
  w->Number(FunctionField::kSystemName, uint64_t{function.system_name});
  w->Number(FunctionField::kFilename, uint64_t{function.file_name});
  w->Number(FunctionField::kStartLine, function.start_line);
  w->End(message);
}

void WriteStrings(const StringTable& strings, Writer* w) {
  for (uint32_t i = 0; i < strings.Size(); ++i) {
    const std::string_view text = strings.Get(i);
    w->Ensure(kMaxPrefix + text.size());
    w->Text(ProfileField::kStringTable, text);
  }
}

void WriteScalars(const Profile& profile, Writer* w) {
  w->Ensure(kMaxFlatMessage);
  w->Number(ProfileField::kDropFrames, uint64_t{profile.drop_frames});
  w->Number(ProfileField::kKeepFrames, uint64_t{profile.keep_frames});
  w->Number(ProfileField::kTimeNanos, profile.time_ns);
  w->Number(ProfileField::kDurationNanos, profile.duration_ns);
  if (profile.period_type.type != 0 || profile.period_type.unit != 0) {
    WriteValueType(ProfileField::kPeriodType, profile.period_type, w);
  }
  w->Ensure(kMaxFlatMessage + profile.comments.size() * kMaxVarintBytes);
  w->Number(ProfileField::kPeriod, profile.period);
  if (!profile.comments.empty()) {
    const size_t comments = w->Begin(ProfileField::kComment);
    for (const uint32_t comment : profile.comments) {
      w->Varint(comment);
    }
    w->End(comments);
  }
  w->Number(ProfileField::kDefaultSampleType, uint64_t{profile.default_sample_type});
  w->Number(ProfileField::kDocUrl, uint64_t{profile.doc_url});
}

}  // namespace

void Encode(const Profile& profile, std::string* out) {
  Writer w(out);
  for (const ValueType& type : profile.sample_types) {
    WriteValueType(ProfileField::kSampleType, type, &w);
  }
  for (size_t i = 0; i < profile.samples.size(); ++i) {
    WriteSample(profile, i, &w);
  }
  for (size_t i = 0; i < profile.mappings.size(); ++i) {
    WriteMapping(profile.mappings[i], i + 1, &w);
  }
  for (size_t i = 0; i < profile.locations.size(); ++i) {
    WriteLocation(profile, profile.locations[i], i + 1, &w);
  }
  for (size_t i = 0; i < profile.functions.size(); ++i) {
    WriteFunction(profile.functions[i], i + 1, &w);
  }
  WriteStrings(profile.strings, &w);
  WriteScalars(profile, &w);
  w.Finish();
}

}  // namespace flamefleet::pprof
