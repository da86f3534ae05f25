// SPDX-License-Identifier: Apache-2.0
#include "base/pprof/stack_table.h"

#include <absl/hash/hash.h>

#include <algorithm>
#include <tuple>

namespace flamefleet::pprof {
namespace {

// Mappings of one file whose sizes differ by less than a page are one, as google/pprof rounds.
constexpr uint64_t kMappingSizeRounding = 0x1000;

std::tuple<uint64_t, uint64_t, uint32_t> MappingKey(const Mapping& m) {
  const uint64_t size = m.memory_limit - m.memory_start + kMappingSizeRounding - 1;
  return {size / kMappingSizeRounding, m.file_offset, m.build_id != 0 ? m.build_id : m.file_name};
}

auto AllOf(const Mapping& m) {
  return std::tie(m.memory_start, m.memory_limit, m.file_offset, m.file_name, m.build_id,
                  m.has_functions, m.has_file_names, m.has_line_numbers, m.has_inline_frames);
}

auto FunctionKey(const Function& f) {
  return std::tie(f.name, f.system_name, f.file_name, f.start_line);
}

auto LocationKey(const Location& l) {
  return std::tie(l.mapping, l.address, l.is_folded, l.line_count);
}

auto LineKey(const Line& l) {
  return std::tie(l.function, l.line, l.column);
}

auto LabelKey(const Label& l) {
  return std::tie(l.key, l.text, l.number, l.unit);
}

template <typename T, typename Key>
size_t HashRange(size_t seed, const std::vector<T>& all, uint32_t first, uint32_t count, Key key) {
  for (uint32_t i = 0; i < count; ++i) {
    seed = absl::HashOf(seed, key(all[first + i]));
  }
  return seed;
}

template <typename T, typename Key>
bool EqualRanges(const std::vector<T>& all, uint32_t a, uint32_t b, uint32_t count, Key key) {
  return std::equal(all.begin() + a, all.begin() + a + count, all.begin() + b,
                    [&](const T& x, const T& y) { return key(x) == key(y); });
}

uint32_t Itself(uint32_t value) {
  return value;
}

template <typename T>
uint32_t Size32(const std::vector<T>& v) {
  return static_cast<uint32_t>(v.size());
}

}  // namespace

// Each Map... function copies one thing of the source to the end of the table, looks for an equal
// one, and takes the copy back if there is one. What it found is remembered for the rest of the
// source.
void StackTable::Begin(const Profile& source) {
  source_ = &source;
  strings_.assign(source.strings.Size(), kNone);
  mappings_.assign(source.mappings.size(), kNone);
  functions_.assign(source.functions.size(), kNone);
  locations_.assign(source.locations.size(), kNone);
}

size_t StackTable::Bytes() const {
  return BytesHeld(table_) + sample_index_.Bytes() + location_index_.Bytes() +
         function_index_.Bytes() + mapping_index_.Bytes();
}

uint32_t StackTable::MapString(uint32_t index) {
  uint32_t& mapped = strings_[index];
  if (mapped == kNone) mapped = table_.strings.Intern(source_->strings.Get(index));
  return mapped;
}

uint32_t StackTable::MapMapping(uint32_t index) {
  uint32_t& mapped = mappings_[index];
  if (mapped != kNone) return mapped;
  Mapping copy = source_->mappings[index];
  copy.file_name = MapString(copy.file_name);
  copy.build_id = MapString(copy.build_id);
  const auto key = MappingKey(copy);
  mapped =
      mapping_index_.FindOrAdd(absl::HashOf(key), Size32(table_.mappings), [&](uint32_t other) {
        const Mapping& m = table_.mappings[other];
        return exact_ ? AllOf(m) == AllOf(copy) : MappingKey(m) == key;
      });
  if (mapped == table_.mappings.size()) table_.mappings.push_back(copy);
  return mapped;
}

uint32_t StackTable::MapFunction(uint32_t index) {
  uint32_t& mapped = functions_[index];
  if (mapped != kNone) return mapped;
  Function copy = source_->functions[index];
  copy.name = MapString(copy.name);
  copy.system_name = MapString(copy.system_name);
  copy.file_name = MapString(copy.file_name);
  mapped = function_index_.FindOrAdd(
      absl::HashOf(FunctionKey(copy)), Size32(table_.functions),
      [&](uint32_t other) { return FunctionKey(table_.functions[other]) == FunctionKey(copy); });
  if (mapped == table_.functions.size()) table_.functions.push_back(copy);
  return mapped;
}

uint32_t StackTable::MapLocation(uint32_t index) {
  uint32_t& mapped = locations_[index];
  if (mapped != kNone) return mapped;
  const Location& source = source_->locations[index];
  Location copy = source;
  copy.first_line = Size32(table_.lines);
  if (source.mapping != kNone) {
    copy.mapping = MapMapping(source.mapping);
    copy.address +=
        table_.mappings[copy.mapping].memory_start - source_->mappings[source.mapping].memory_start;
  }
  for (uint32_t i = 0; i < source.line_count; ++i) {
    Line line = source_->lines[source.first_line + i];
    line.function = MapFunction(line.function);
    table_.lines.push_back(line);
  }
  const size_t hash = HashRange(absl::HashOf(LocationKey(copy)), table_.lines, copy.first_line,
                                copy.line_count, LineKey);
  mapped = location_index_.FindOrAdd(hash, Size32(table_.locations), [&](uint32_t i) {
    const Location& other = table_.locations[i];
    return LocationKey(other) == LocationKey(copy) &&
           EqualRanges(table_.lines, copy.first_line, other.first_line, copy.line_count, LineKey);
  });
  if (mapped == table_.locations.size()) {
    table_.locations.push_back(copy);
  } else {
    table_.lines.resize(copy.first_line);
  }
  return mapped;
}

void StackTable::CopyLabels(const Sample& source, const Sample& copy) {
  for (uint32_t i = 0; i < source.label_count; ++i) {
    Label label = source_->sample_labels[source.first_label + i];
    label.key = MapString(label.key);
    label.text = MapString(label.text);
    label.unit = MapString(label.unit);
    table_.sample_labels.push_back(label);
  }
  // Their order says nothing.
  std::sort(table_.sample_labels.begin() + copy.first_label, table_.sample_labels.end(),
            [](const Label& a, const Label& b) { return LabelKey(a) < LabelKey(b); });
}

uint32_t StackTable::AddStack(size_t sample) {
  const Sample& source = source_->samples[sample];
  Sample copy = source;
  copy.first_location = Size32(table_.sample_locations);
  copy.first_label = Size32(table_.sample_labels);
  for (uint32_t i = 0; i < source.location_count; ++i) {
    table_.sample_locations.push_back(
        MapLocation(source_->sample_locations[source.first_location + i]));
  }
  CopyLabels(source, copy);

  size_t hash = absl::HashOf(copy.location_count, copy.label_count);
  hash = HashRange(hash, table_.sample_locations, copy.first_location, copy.location_count, Itself);
  hash = HashRange(hash, table_.sample_labels, copy.first_label, copy.label_count, LabelKey);
  const uint32_t found = sample_index_.FindOrAdd(hash, Size32(table_.samples), [&](uint32_t i) {
    const Sample& other = table_.samples[i];
    return other.location_count == copy.location_count && other.label_count == copy.label_count &&
           EqualRanges(table_.sample_locations, copy.first_location, other.first_location,
                       copy.location_count, Itself) &&
           EqualRanges(table_.sample_labels, copy.first_label, other.first_label, copy.label_count,
                       LabelKey);
  });
  if (found == table_.samples.size()) {
    table_.samples.push_back(copy);
  } else {
    table_.sample_locations.resize(copy.first_location);
    table_.sample_labels.resize(copy.first_label);
  }
  return found;
}

}  // namespace flamefleet::pprof
