// SPDX-License-Identifier: Apache-2.0
#include "agent/symbol/made_functions.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <utility>
#include <vector>

namespace flamefleet::agent {

void MadeFunctions::Clear() {
  functions_.clear();
  names_.clear();
}

// A program that runs for long compiles the same functions again and again: most names are of code
// that is gone.
void MadeFunctions::MakeRoom() {
  std::vector<Function*> newest_first;
  newest_first.reserve(functions_.size());
  for (auto& [start, function] : functions_)
    newest_first.push_back(&function);
  std::ranges::sort(newest_first, std::greater(), &Function::name);
  size_t count = 0;
  size_t bytes = 0;
  while (count < newest_first.size() && count < kMaxMadeFunctions / 2 &&
         bytes + newest_first[count]->name_size <= kMaxMadeNamesBytes / 2)
    bytes += newest_first[count++]->name_size;
  std::string names;
  names.reserve(kMaxMadeNamesBytes + kMaxMadeNameBytes);
  for (size_t i = count; i-- > 0;) {
    Function* const kept = newest_first[i];
    const std::string_view name = std::string_view(names_).substr(kept->name, kept->name_size);
    kept->name = static_cast<uint32_t>(names.size());
    names.append(name);
  }
  for (size_t i = count; i < newest_first.size(); ++i)
    newest_first[i]->end = 0;
  std::erase_if(functions_, [](const auto& item) { return item.second.end == 0; });
  names_ = std::move(names);
}

void MadeFunctions::Insert(uint64_t start, uint64_t end, std::string_view name) {
  if (functions_.size() >= kMaxMadeFunctions || names_.size() >= kMaxMadeNamesBytes) MakeRoom();
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
