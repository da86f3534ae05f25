// SPDX-License-Identifier: Apache-2.0
// SymbolName: what a function is called. Thread: any; a value.
// NameBudget: how many bytes of names and lines may still be read, of all files together: an
// address that a program made up costs it nothing, its name costs us. Thread: one owner.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

namespace flamefleet::agent {

struct SymbolName {
  std::string name;         // demangled; UTF-8
  std::string system_name;  // as in the file; UTF-8
};

class NameBudget {
 public:
  explicit NameBudget(size_t bytes) : left_(bytes) {}
  void Refill(size_t bytes) { left_ = bytes; }
  bool HasRoom() const { return left_ > 0; }
  void Take(size_t bytes) { left_ -= std::min(left_, bytes); }
  void CountRefused() { ++refused_; }
  uint64_t refused() const { return refused_; }

 private:
  size_t left_;
  uint64_t refused_ = 0;
};

}  // namespace flamefleet::agent
