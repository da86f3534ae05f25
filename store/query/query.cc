// SPDX-License-Identifier: Apache-2.0
#include "store/query/query.h"

#include <optional>
#include <set>

#include "base/pprof/merge.h"

namespace flamefleet::store {
namespace {

constexpr size_t kNoSampleType = SIZE_MAX;

// The number of the sample type that is asked for; kNoSampleType when the profile does not have it.
size_t FindSampleType(const SampleTypeChoice& choice, const pprof::Profile& profile) {
  const auto text = [&](uint32_t index) { return std::string(profile.strings.Get(index)); };
  for (size_t i = 0; i < profile.sample_types.size(); ++i) {
    if (choice.Matches({.type = text(profile.sample_types[i].type),
                        .unit = text(profile.sample_types[i].unit),
                        .period_type = text(profile.period_type.type),
                        .period_unit = text(profile.period_type.unit)})) {
      return i;
    }
  }
  return kNoSampleType;
}

class Query {
 public:
  Query(const Selector& selector, const QueryLimits& limits)
      : selector_(selector), merger_(limits.max_merge_bytes) {}

  Status Add(const SelectedPart& part) {
    if (!selector_.sample_type.type.empty()) {
      const size_t index = FindSampleType(selector_.sample_type, *part.profile);
      if (index == kNoSampleType) return OkStatus();
      pprof::KeepSampleType(index, part.profile);
    }
    const Status added = merger_.Add(*part.profile, part.held_bytes);
    if (added.code() == StatusCode::kResourceExhausted) {
      return ResourceExhaustedError(ErrorMessage(added) +
                                    "; choose a shorter time range or fewer series");
    }
    if (added.code() == StatusCode::kFailedPrecondition) {
      return FailedPreconditionError(ErrorMessage(added) +
                                     "; name the one you want, as in process_cpu:cpu");
    }
    FF_RETURN_IF_ERROR(added);
    profiles_ += part.profiles;
    series_.insert(part.labels);
    names_.insert(part.labels.at(kProfileName));
    return OkStatus();
  }

  MergedProfile Take() {
    MergedProfile merged{.profiles = profiles_, .series = series_.size()};
    merged.profile = merger_.Take();
    for (const std::string& name : names_)
      merged.name += (merged.name.empty() ? "" : ",") + name;
    return merged;
  }

 private:
  const Selector& selector_;
  pprof::Merger merger_;
  size_t profiles_ = 0;
  std::set<Labels> series_;
  std::set<std::string> names_;
};

}  // namespace

Result<MergedProfile> MergeProfiles(Database* database, const Clock& clock,
                                    const Selector& selector, const TimeRange& range,
                                    const QueryLimits& limits) {
  Query query(selector, limits);
  const SelectionTime time(clock, limits.max_duration_ns);
  const auto add = [&](const SelectedPart& part) {
    FF_RETURN_IF_ERROR(time.Check());
    return query.Add(part);
  };
  FF_RETURN_IF_ERROR(database->Select(selector, range, add));
  MergedProfile merged = query.Take();
  if (merged.profiles == 0) {
    return NotFoundError("no profile matches between " + FormatRfc3339(range.from_ns) + " and " +
                         FormatRfc3339(range.until_ns) + "; /series lists what there is");
  }
  return merged;
}

}  // namespace flamefleet::store
