// SPDX-License-Identifier: Apache-2.0
// StackTable: the distinct stacks, with their labels, of many profiles; and all that they name.
//
// Equal stacks have one number, which counts from 0 in the order of arrival: the table is a Profile
// whose samples are the stacks, and whose values are the caller's business.
//
// What equal means: see Merger; with Mappings::kExact only mappings that are equal in every field
// are one, so that no address changes.
//
// Thread: none of its own; one owner. Bounds: the caller looks at Bytes().
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/pprof/index_table.h"
#include "base/pprof/profile.h"

namespace flamefleet::pprof {

class StackTable {
 public:
  enum class Mappings { kMerged, kExact };
  explicit StackTable(Mappings mappings) : exact_(mappings == Mappings::kExact) {}

  // What follows is of `source`, a valid profile that stays as it is until the next Begin.
  void Begin(const Profile& source);
  // The numbers here of a string and a mapping of the source.
  uint32_t MapString(uint32_t index);
  uint32_t MapMapping(uint32_t index);
  // The number here of the stack of a sample.
  uint32_t AddStack(size_t sample);

  size_t Size() const { return table_.samples.size(); }
  size_t Bytes() const;
  Profile& profile() { return table_; }
  const Profile& profile() const { return table_; }

 private:
  uint32_t MapFunction(uint32_t index);
  uint32_t MapLocation(uint32_t index);
  void CopyLabels(const Sample& source, const Sample& copy);

  const bool exact_;
  Profile table_;
  IndexTable sample_index_;
  IndexTable location_index_;
  IndexTable function_index_;
  IndexTable mapping_index_;
  // Of the source: from its indexes to those of the table.
  const Profile* source_ = nullptr;
  std::vector<uint32_t> strings_;
  std::vector<uint32_t> mappings_;
  std::vector<uint32_t> functions_;
  std::vector<uint32_t> locations_;
};

}  // namespace flamefleet::pprof
