// SPDX-License-Identifier: Apache-2.0
#include "base/pprof/merge.h"

#include <absl/hash/hash.h>

#include <algorithm>
#include <tuple>

#include "base/pprof/index_table.h"
#include "base/pprof/wrapping_sum.h"

namespace flamefleet::pprof {
namespace {

// Mappings of one file whose sizes differ by less than a page are one, as google/pprof rounds.
constexpr uint64_t kMappingSizeRounding = 0x1000;

std::tuple<uint64_t, uint64_t, uint32_t> MappingKey(const Mapping& m) {
  const uint64_t size = m.memory_limit - m.memory_start + kMappingSizeRounding - 1;
  return {size / kMappingSizeRounding, m.file_offset, m.build_id != 0 ? m.build_id : m.file_name};
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
size_t BytesOf(const std::vector<T>& v) {
  return v.capacity() * sizeof(T);
}

template <typename T>
uint32_t Size32(const std::vector<T>& v) {
  return static_cast<uint32_t>(v.size());
}

bool AllZero(const Profile& profile, size_t sample) {
  const size_t width = profile.sample_types.size();
  const auto first = profile.values.begin() + static_cast<ptrdiff_t>(sample * width);
  return std::all_of(first, first + static_cast<ptrdiff_t>(width),
                     [](int64_t v) { return v == 0; });
}

std::string TypeName(const Profile& profile, const ValueType& type) {
  return std::string(profile.strings.Get(type.type)) + "/" +
         std::string(profile.strings.Get(type.unit));
}

}  // namespace

std::string SampleTypeNames(const Profile& profile) {
  std::string names;
  for (const ValueType& type : profile.sample_types) {
    if (!names.empty()) names += ',';
    names += TypeName(profile, type);
  }
  return names;
}

// Each Map... function copies one thing of the source to the end of the sum, looks for an equal
// one, and takes the copy back if there is one. What it found is remembered for the rest of the
// source.
class Merger::Impl {
 public:
  Status Add(const Profile& source) {
    if (profiles_ > 0) FF_RETURN_IF_ERROR(CheckSameTypes(source));
    source_ = &source;
    strings_.assign(source.strings.Size(), kNone);
    mappings_.assign(source.mappings.size(), kNone);
    functions_.assign(source.functions.size(), kNone);
    locations_.assign(source.locations.size(), kNone);
    AddHeader(source);
    // The first mapping of a profile is its main program: it stays the first.
    if (sum_.mappings.empty() && !source.mappings.empty()) MapMapping(0);
    for (size_t i = 0; i < source.samples.size(); ++i) {
      if (!AllZero(source, i)) AddSample(i);
    }
    ++profiles_;
    return OkStatus();
  }

  size_t Bytes() const {
    return sum_.strings.Bytes() + sum_.strings.Size() * 3 * sizeof(uint32_t) +
           BytesOf(sum_.samples) + BytesOf(sum_.values) + BytesOf(sum_.sample_locations) +
           BytesOf(sum_.sample_labels) + BytesOf(sum_.mappings) + BytesOf(sum_.locations) +
           BytesOf(sum_.lines) + BytesOf(sum_.functions) + sample_table_.Bytes() +
           location_table_.Bytes() + function_table_.Bytes() + mapping_table_.Bytes();
  }

  size_t profiles() const { return profiles_; }
  Profile& sum() { return sum_; }

 private:
  Status CheckSameTypes(const Profile& source) const {
    const std::string want = SampleTypeNames(sum_);
    const std::string got = SampleTypeNames(source);
    if (want != got) {
      return FailedPreconditionError("merge: sample types differ: " + want + " and " + got);
    }
    const std::string want_period = TypeName(sum_, sum_.period_type);
    const std::string got_period = TypeName(source, source.period_type);
    if (want_period != got_period) {
      return FailedPreconditionError("merge: period types differ: " + want_period + " and " +
                                     got_period);
    }
    return OkStatus();
  }

  ValueType MapType(const ValueType& type) { return {MapString(type.type), MapString(type.unit)}; }

  void AddHeader(const Profile& source) {
    if (profiles_ == 0) {
      for (const ValueType& type : source.sample_types) {
        sum_.sample_types.push_back(MapType(type));
      }
      sum_.period_type = MapType(source.period_type);
      sum_.drop_frames = MapString(source.drop_frames);
      sum_.keep_frames = MapString(source.keep_frames);
    }
    if (sum_.time_ns == 0 || (source.time_ns != 0 && source.time_ns < sum_.time_ns)) {
      sum_.time_ns = source.time_ns;
    }
    sum_.duration_ns = WrappingSum(sum_.duration_ns, source.duration_ns);
    sum_.period = std::max(sum_.period, source.period);
    for (const uint32_t comment : source.comments) {
      const uint32_t mapped = MapString(comment);
      if (std::find(sum_.comments.begin(), sum_.comments.end(), mapped) == sum_.comments.end()) {
        sum_.comments.push_back(mapped);
      }
    }
    if (sum_.default_sample_type == 0) {
      sum_.default_sample_type = MapString(source.default_sample_type);
    }
    if (sum_.doc_url == 0) sum_.doc_url = MapString(source.doc_url);
  }

  uint32_t MapString(uint32_t index) {
    uint32_t& mapped = strings_[index];
    if (mapped == kNone) mapped = sum_.strings.Intern(source_->strings.Get(index));
    return mapped;
  }

  uint32_t MapMapping(uint32_t index) {
    uint32_t& mapped = mappings_[index];
    if (mapped != kNone) return mapped;
    Mapping copy = source_->mappings[index];
    copy.file_name = MapString(copy.file_name);
    copy.build_id = MapString(copy.build_id);
    const auto key = MappingKey(copy);
    mapped = mapping_table_.FindOrAdd(
        absl::HashOf(key), Size32(sum_.mappings),
        [&](uint32_t other) { return MappingKey(sum_.mappings[other]) == key; });
    if (mapped == sum_.mappings.size()) sum_.mappings.push_back(copy);
    return mapped;
  }

  uint32_t MapFunction(uint32_t index) {
    uint32_t& mapped = functions_[index];
    if (mapped != kNone) return mapped;
    Function copy = source_->functions[index];
    copy.name = MapString(copy.name);
    copy.system_name = MapString(copy.system_name);
    copy.file_name = MapString(copy.file_name);
    mapped = function_table_.FindOrAdd(
        absl::HashOf(FunctionKey(copy)), Size32(sum_.functions),
        [&](uint32_t other) { return FunctionKey(sum_.functions[other]) == FunctionKey(copy); });
    if (mapped == sum_.functions.size()) sum_.functions.push_back(copy);
    return mapped;
  }

  uint32_t MapLocation(uint32_t index) {
    uint32_t& mapped = locations_[index];
    if (mapped != kNone) return mapped;
    const Location& source = source_->locations[index];
    Location copy = source;
    copy.first_line = Size32(sum_.lines);
    if (source.mapping != kNone) {
      copy.mapping = MapMapping(source.mapping);
      copy.address +=
          sum_.mappings[copy.mapping].memory_start - source_->mappings[source.mapping].memory_start;
    }
    for (uint32_t i = 0; i < source.line_count; ++i) {
      Line line = source_->lines[source.first_line + i];
      line.function = MapFunction(line.function);
      sum_.lines.push_back(line);
    }
    const size_t hash = HashRange(absl::HashOf(LocationKey(copy)), sum_.lines, copy.first_line,
                                  copy.line_count, LineKey);
    mapped = location_table_.FindOrAdd(hash, Size32(sum_.locations), [&](uint32_t i) {
      const Location& other = sum_.locations[i];
      return LocationKey(other) == LocationKey(copy) &&
             EqualRanges(sum_.lines, copy.first_line, other.first_line, copy.line_count, LineKey);
    });
    if (mapped == sum_.locations.size()) {
      sum_.locations.push_back(copy);
    } else {
      sum_.lines.resize(copy.first_line);
    }
    return mapped;
  }

  void CopyLabels(const Sample& source, const Sample& copy) {
    for (uint32_t i = 0; i < source.label_count; ++i) {
      Label label = source_->sample_labels[source.first_label + i];
      label.key = MapString(label.key);
      label.text = MapString(label.text);
      label.unit = MapString(label.unit);
      sum_.sample_labels.push_back(label);
    }
    // Their order says nothing.
    std::sort(sum_.sample_labels.begin() + copy.first_label, sum_.sample_labels.end(),
              [](const Label& a, const Label& b) { return LabelKey(a) < LabelKey(b); });
  }

  void AddSample(size_t index) {
    const Sample& source = source_->samples[index];
    Sample copy = source;
    copy.first_location = Size32(sum_.sample_locations);
    copy.first_label = Size32(sum_.sample_labels);
    for (uint32_t i = 0; i < source.location_count; ++i) {
      sum_.sample_locations.push_back(
          MapLocation(source_->sample_locations[source.first_location + i]));
    }
    CopyLabels(source, copy);

    size_t hash = absl::HashOf(copy.location_count, copy.label_count);
    hash = HashRange(hash, sum_.sample_locations, copy.first_location, copy.location_count, Itself);
    hash = HashRange(hash, sum_.sample_labels, copy.first_label, copy.label_count, LabelKey);
    const uint32_t found = sample_table_.FindOrAdd(hash, Size32(sum_.samples), [&](uint32_t i) {
      const Sample& other = sum_.samples[i];
      return other.location_count == copy.location_count && other.label_count == copy.label_count &&
             EqualRanges(sum_.sample_locations, copy.first_location, other.first_location,
                         copy.location_count, Itself) &&
             EqualRanges(sum_.sample_labels, copy.first_label, other.first_label, copy.label_count,
                         LabelKey);
    });
    const size_t width = source_->sample_types.size();
    const int64_t* values = source_->values.data() + index * width;
    if (found == sum_.samples.size()) {
      sum_.samples.push_back(copy);
      sum_.values.insert(sum_.values.end(), values, values + width);
      return;
    }
    sum_.sample_locations.resize(copy.first_location);
    sum_.sample_labels.resize(copy.first_label);
    int64_t* sums = sum_.values.data() + size_t{found} * width;
    for (size_t i = 0; i < width; ++i) {
      sums[i] = WrappingSum(sums[i], values[i]);
    }
  }

  Profile sum_;
  IndexTable sample_table_;
  IndexTable location_table_;
  IndexTable function_table_;
  IndexTable mapping_table_;
  size_t profiles_ = 0;
  // Of the profile that is being added: from its indexes to those of the sum.
  const Profile* source_ = nullptr;
  std::vector<uint32_t> strings_;
  std::vector<uint32_t> mappings_;
  std::vector<uint32_t> functions_;
  std::vector<uint32_t> locations_;
};

Merger::Merger(size_t max_bytes) : max_bytes_(max_bytes), impl_(std::make_unique<Impl>()) {}
Merger::~Merger() = default;

Status Merger::Add(const Profile& profile) {
  FF_RETURN_IF_ERROR(impl_->Add(profile));
  if (impl_->Bytes() <= max_bytes_) return OkStatus();
  return ResourceExhaustedError("merge: the result needs more than " + std::to_string(max_bytes_) +
                                " bytes of memory");
}

size_t Merger::profiles() const {
  return impl_->profiles();
}

Profile Merger::Take() {
  Profile sum = std::move(impl_->sum());
  impl_ = std::make_unique<Impl>();
  for (size_t i = 0; i < sum.samples.size(); ++i) {
    if (!AllZero(sum, i)) continue;
    // Values cancelled out: merged once more, what only those samples used is gone.
    Impl again;
    FF_CHECK(again.Add(sum).ok());
    return std::move(again.sum());
  }
  return sum;
}

void KeepSampleType(size_t index, Profile* profile) {
  const size_t width = profile->sample_types.size();
  FF_CHECK(index < width);
  size_t kept = 0;
  for (size_t i = 0; i < profile->samples.size(); ++i) {
    const int64_t value = profile->values[i * width + index];
    if (value == 0) continue;
    profile->samples[kept] = profile->samples[i];
    profile->values[kept] = value;  // kept <= i: never ahead of what is still to be read
    ++kept;
  }
  profile->samples.resize(kept);
  profile->values.resize(kept);
  profile->sample_types = {profile->sample_types[index]};
}

}  // namespace flamefleet::pprof
