// SPDX-License-Identifier: Apache-2.0
// OtlpProfileBuilder: makes one profile of a request at a time, of its own message and of what its
// samples need from the dictionary.
//
// Thread: none of its own; one owner. Bounds: pprof::DecodeLimits. Errors: as ReadOtlpDictionary.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/pprof/profile.h"
#include "base/status.h"
#include "base/wire.h"
#include "store/ingest/otlp_dictionary.h"

namespace flamefleet::store {

class OtlpProfileBuilder {
 public:
  // Both outlive the object.
  OtlpProfileBuilder(const OtlpDictionary& dictionary, const pprof::DecodeLimits& limits);

  enum class Counts { kKept, kBecomeTime };
  // A profile is valid until the next Build. kBecomeTime: a count of samples with a period of CPU
  // time is made CPU time.
  Status Build(std::string_view message, Counts counts);
  // Of a message that can be built.
  bool HoldsCpuTime(std::string_view message) const;
  const pprof::Profile& profile() const { return profile_; }
  // Of the profile, in the dictionary.
  const std::vector<uint32_t>& attributes() const { return attributes_; }

 private:
  // From elements of the dictionary to those of this profile.
  class IndexMap {
   public:
    explicit IndexMap(size_t size) : to_(size, pprof::kNone) {}
    // The index there; `add` makes it where there is none yet.
    template <typename Add>
    uint32_t Of(uint32_t from, const Add& add) {
      if (to_[from] == pprof::kNone) {
        to_[from] = add();
        used_.push_back(from);
      }
      return to_[from];
    }
    // Costs what was used.
    void Clear() {
      for (const uint32_t from : used_)
        to_[from] = pprof::kNone;
      used_.clear();
    }

   private:
    std::vector<uint32_t> to_;
    std::vector<uint32_t> used_;
  };

  Status ReadHead(std::string_view message);
  // What a pprof says beside its samples, if `attribute` is that.
  Status ReadPprofAttribute(uint32_t attribute);
  Status ReadAttributes(const WireField& field, std::vector<uint32_t>* out) const;
  Status ReadValueType(const WireField& field, pprof::ValueType* out) const;
  Status ReadSample(std::string_view message, int64_t factor);
  Status ReadSampleFields(std::string_view message, uint32_t* stack, uint64_t* value);
  Status AddLabel(uint32_t attribute);
  bool Is(const pprof::ValueType& type, std::string_view name, std::string_view unit) const;
  uint32_t String(uint32_t index);
  uint32_t Function(uint32_t index);
  uint32_t Mapping(uint32_t index);
  uint32_t Location(uint32_t index);

  const OtlpDictionary& dictionary_;
  const pprof::DecodeLimits& limits_;
  IndexMap strings_;
  IndexMap functions_;
  IndexMap mappings_;
  IndexMap locations_;
  IndexMap label_of_;  // from attributes to labels_
  pprof::Profile profile_;
  std::vector<pprof::Label> labels_;  // key 0: the attribute is none
  std::vector<uint32_t> attributes_;
  std::vector<uint32_t> sample_attributes_;
};

}  // namespace flamefleet::store
