// SPDX-License-Identifier: Apache-2.0
#include "base/pprof/merge.h"

#include <algorithm>

#include "base/pprof/stack_table.h"
#include "base/pprof/wrapping_sum.h"

namespace flamefleet::pprof {
namespace {

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

class Merger::Impl {
 public:
  Status Add(const Profile& source) {
    if (profiles_ > 0) FF_RETURN_IF_ERROR(CheckSameTypes(source));
    source_ = &source;
    table_.Begin(source);
    AddHeader(source);
    // The first mapping of a profile is its main program: it stays the first.
    if (sum_.mappings.empty() && !source.mappings.empty()) table_.MapMapping(0);
    for (size_t i = 0; i < source.samples.size(); ++i) {
      if (!AllZero(source, i)) AddSample(i);
    }
    ++profiles_;
    return OkStatus();
  }

  size_t Bytes() const { return table_.Bytes(); }

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

  ValueType MapType(const ValueType& type) {
    return {table_.MapString(type.type), table_.MapString(type.unit)};
  }

  void AddHeader(const Profile& source) {
    if (profiles_ == 0) {
      for (const ValueType& type : source.sample_types) {
        sum_.sample_types.push_back(MapType(type));
      }
      sum_.period_type = MapType(source.period_type);
      sum_.drop_frames = table_.MapString(source.drop_frames);
      sum_.keep_frames = table_.MapString(source.keep_frames);
    }
    if (sum_.time_ns == 0 || (source.time_ns != 0 && source.time_ns < sum_.time_ns)) {
      sum_.time_ns = source.time_ns;
    }
    sum_.duration_ns = WrappingSum(sum_.duration_ns, source.duration_ns);
    sum_.period = std::max(sum_.period, source.period);
    for (const uint32_t comment : source.comments) {
      const uint32_t mapped = table_.MapString(comment);
      if (std::find(sum_.comments.begin(), sum_.comments.end(), mapped) == sum_.comments.end()) {
        sum_.comments.push_back(mapped);
      }
    }
    if (sum_.default_sample_type == 0) {
      sum_.default_sample_type = table_.MapString(source.default_sample_type);
    }
    if (sum_.doc_url == 0) sum_.doc_url = table_.MapString(source.doc_url);
  }

  void AddSample(size_t index) {
    const uint32_t stack = table_.AddStack(index);
    const size_t width = source_->sample_types.size();
    const int64_t* values = source_->values.data() + index * width;
    if (size_t{stack} * width == sum_.values.size()) {
      sum_.values.insert(sum_.values.end(), values, values + width);
      return;
    }
    int64_t* sums = sum_.values.data() + size_t{stack} * width;
    for (size_t i = 0; i < width; ++i) {
      sums[i] = WrappingSum(sums[i], values[i]);
    }
  }

  StackTable table_{StackTable::Mappings::kMerged};
  Profile& sum_ = table_.profile();
  size_t profiles_ = 0;
  const Profile* source_ = nullptr;  // that is being added
};

Merger::Merger(size_t max_bytes) : max_bytes_(max_bytes), impl_(std::make_unique<Impl>()) {}
Merger::~Merger() = default;

Status Merger::Add(const Profile& profile, size_t held_bytes) {
  FF_RETURN_IF_ERROR(impl_->Add(profile));
  if (impl_->Bytes() + held_bytes <= max_bytes_) return OkStatus();
  return ResourceExhaustedError("merge: it needs more than " + std::to_string(max_bytes_) +
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
