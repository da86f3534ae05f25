// SPDX-License-Identifier: Apache-2.0
#include "agent/symbol/made_functions.h"

#include <algorithm>
#include <iterator>

namespace flamefleet::agent {

void MadeFunctions::Clear() {
  functions_.clear();
  names_.clear();
}

void MadeFunctions::Insert(uint64_t start, uint64_t end, std::string_view name) {
  if (functions_.size() >= kMaxMadeFunctions || names_.size() >= kMaxMadeNamesBytes) Clear();
  auto next = functions_.lower_bound(start);
  if (next != functions_.begin()) {
    Function& before = std::prev(next)->second;
    before.end = std::min(before.end, start);  // what it had behind the new one is gone as well
  }
  while (next != functions_.end() && next->first < end)
    next = functions_.erase(next);
  functions_[start] = {.end = end,
                       .name = static_cast<uint32_t>(names_.size()),
                       .name_size = static_cast<uint32_t>(name.size())};
  names_.append(name);
}

std::string_view MadeFunctions::Find(uint64_t address) const {
  const auto next = functions_.upper_bound(address);
  if (next == functions_.begin()) return {};
  const Function& function = std::prev(next)->second;
  if (address >= function.end) return {};
  return std::string_view(names_).substr(function.name, function.name_size);
}

}  // namespace flamefleet::agent
