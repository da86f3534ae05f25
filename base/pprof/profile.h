// SPDX-License-Identifier: Apache-2.0
// Profile: one pprof profile in memory, flat: what the agents build, the scraper checks and the
// store merges.
//
// All references are indexes from 0 into the vectors of the same Profile (on the wire ids start at
// 1); a location without mapping has kNone. Clear() keeps every capacity, so a reused Profile
// allocates nothing in the steady state.
//
// Invariant of a valid Profile (Decode checks it, Encode relies on it): every index is in range,
// values.size() == samples.size() * sample_types.size(), strings[0] is "".
//
// Thread: none of its own; one owner. Units: nanoseconds.
// Source: https://github.com/google/pprof/blob/main/proto/profile.proto
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace flamefleet::pprof {

constexpr uint32_t kNone = UINT32_MAX;

// Interned strings: equal texts have equal indexes; index 0 is "". At most 4 GiB of text.
class StringTable {
 public:
  StringTable();
  uint32_t Intern(std::string_view text);
  // As Intern, but always a new entry: decoders keep the numbering of the wire.
  uint32_t Append(std::string_view text);
  std::string_view Get(uint32_t index) const;  // valid until the next Intern, Append or Clear
  size_t Size() const { return ends_.size(); }
  size_t Bytes() const { return bytes_.size(); }
  void Clear();

 private:
  // The slot that holds `text`, or the free one where it belongs.
  size_t FindSlot(std::string_view text) const;
  void IndexAppended();  // makes every entry findable

  std::string bytes_;            // all texts, one after another
  std::vector<uint32_t> ends_;   // ends_[i]: where text i ends in bytes_
  std::vector<uint32_t> slots_;  // open addressing, index + 1; 0 is free; power of two
  size_t indexed_ = 0;           // entries that are in slots_; Append leaves that to Intern
};

struct ValueType {
  uint32_t type = 0;  // string
  uint32_t unit = 0;  // string
};

struct Label {
  uint32_t key = 0;   // string
  uint32_t text = 0;  // string; 0 when the label is a number
  int64_t number = 0;
  uint32_t unit = 0;  // string, of the number
};

// Slices of sample_locations (leaf first) and sample_labels.
struct Sample {
  uint32_t first_location = 0;
  uint32_t location_count = 0;
  uint32_t first_label = 0;
  uint32_t label_count = 0;
};

struct Mapping {
  uint64_t memory_start = 0;
  uint64_t memory_limit = 0;
  uint64_t file_offset = 0;
  uint32_t file_name = 0;  // string
  uint32_t build_id = 0;   // string
  bool has_functions = false;
  bool has_file_names = false;
  bool has_line_numbers = false;
  bool has_inline_frames = false;
};

struct Line {
  uint32_t function = 0;
  int64_t line = 0;
  int64_t column = 0;
};

// lines[first_line] is the innermost of inlined frames.
struct Location {
  uint64_t address = 0;
  uint32_t mapping = kNone;
  uint32_t first_line = 0;
  uint32_t line_count = 0;
  bool is_folded = false;
};

struct Function {
  uint32_t name = 0;         // string
  uint32_t system_name = 0;  // string
  uint32_t file_name = 0;    // string
  int64_t start_line = 0;
};

struct Profile {
  StringTable strings;
  std::vector<ValueType> sample_types;
  std::vector<Sample> samples;
  std::vector<int64_t> values;             // sample_types.size() per sample, in order
  std::vector<uint32_t> sample_locations;  // locations of all samples
  std::vector<Label> sample_labels;
  std::vector<Mapping> mappings;
  std::vector<Location> locations;
  std::vector<Line> lines;
  std::vector<Function> functions;
  std::vector<uint32_t> comments;    // strings
  uint32_t drop_frames = 0;          // string
  uint32_t keep_frames = 0;          // string
  uint32_t default_sample_type = 0;  // string
  uint32_t doc_url = 0;              // string
  int64_t time_ns = 0;
  int64_t duration_ns = 0;
  ValueType period_type;
  int64_t period = 0;

  void Clear();
};

// Limits of what Decode accepts; a profile over one is kResourceExhausted.
struct DecodeLimits {
  size_t max_sample_types = 64;
  size_t max_bytes = 64 << 20;  // after decompression
  size_t max_samples = 1 << 20;
  size_t max_locations = 1 << 20;  // locations and, each, functions and mappings
  size_t max_strings = 1 << 20;
  size_t max_depth = 4096;  // locations of one sample
  size_t max_elements =
      4 << 20;  // each: values, locations and labels of all samples; lines; comments
  // What the profile takes in memory, the room left out that vectors keep for more.
  size_t max_memory = SIZE_MAX;
};

// Reads a pprof, plain or gzip, into `out` (cleared first; unspecified after an error).
// kInvalidArgument: not a pprof (damaged gzip or protobuf, index out of range, ids that are 0 or
// twice, value count that does not fit, text that is not UTF-8); the message says which. Ids may
// come in any order; fields may be packed or not.
Status Decode(std::string_view data, const DecodeLimits& limits, Profile* out);

// Appends the profile as protobuf to `out`. Byte for byte what libprotobuf writes for the same
// message. Allocates only when `out` must grow.
void Encode(const Profile& profile, std::string* out);

// Memory that the profile holds, about.
size_t BytesHeld(const Profile& profile);

// The sum over all samples of value number `value_index`.
int64_t TotalValue(const Profile& profile, size_t value_index);

// The sample type that a person wants to see first: the profile's default, else the last one.
size_t DefaultSampleType(const Profile& profile);

}  // namespace flamefleet::pprof
