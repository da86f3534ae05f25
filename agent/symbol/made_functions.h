// SPDX-License-Identifier: Apache-2.0
// MadeFunctions: names of the code that a process made at run time, by address.
//
// Code moves and memory is used again: what is inserted later wins over every earlier function that
// it overlaps.
//
// Thread: one owner. Units: addresses of the process. Bounds: kMaxMadeFunctions and
// kMaxMadeNamesBytes, over which those that were inserted first are forgotten, down to half.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace flamefleet::agent {

constexpr size_t kMaxMadeFunctions = 1 << 15;
constexpr size_t kMaxMadeNamesBytes = 3 << 20;  // of all of them
constexpr size_t kMaxMadeNameBytes = 512;       // a longer name is cut

class MadeFunctions {
 public:
  void Insert(uint64_t start, uint64_t end, std::string_view name);
  void Clear();

  // The name at the address; "" when none is known. Valid until the next change.
  std::string_view Find(uint64_t address) const;

  size_t size() const { return functions_.size(); }
  size_t Bytes() const { return functions_.size() * kNodeBytes + names_.capacity(); }

 private:
  void MakeRoom();

  static constexpr size_t kNodeBytes = 80;
  struct Function {
    uint64_t end = 0;
    uint32_t name = 0;  // in names_
    uint32_t name_size = 0;
  };

  std::map<uint64_t, Function> functions_;  // by start; none overlaps another
  std::string names_;  // in the order of insertion; of functions that are gone as well
};

}  // namespace flamefleet::agent
