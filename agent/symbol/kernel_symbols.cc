// SPDX-License-Identifier: Apache-2.0
#include "agent/symbol/kernel_symbols.h"

#include <algorithm>
#include <charconv>
#include <limits>

namespace flamefleet::agent {
namespace {

// Kernel text and modules are in the last 4 GiB of addresses on x86-64.
constexpr uint64_t kKernelBase = 0xffffffff00000000;

bool IsFunctionType(char type) {
  return type == 't' || type == 'T' || type == 'w' || type == 'W';
}

}  // namespace

Result<KernelSymbols> KernelSymbols::Parse(std::string_view kallsyms) {
  KernelSymbols symbols;
  bool any_address = false;
  while (!kallsyms.empty()) {
    const size_t end = std::min(kallsyms.find('\n'), kallsyms.size());
    const std::string_view line = kallsyms.substr(0, end);
    kallsyms.remove_prefix(std::min(end + 1, kallsyms.size()));
    // "ffffffff81000000 T _text", of a module with "\t[name]" behind it.
    uint64_t address = 0;
    const auto [next, error] = std::from_chars(line.data(), line.data() + line.size(), address, 16);
    const std::string_view rest(next, static_cast<size_t>(line.data() + line.size() - next));
    if (error != std::errc() || rest.size() < 4 || rest[0] != ' ' || rest[2] != ' ')
      return InvalidArgumentError("parse kallsyms: bad line \"" + std::string(line.substr(0, 100)) +
                                  "\"");
    any_address = any_address || address != 0;
    if (!IsFunctionType(rest[1]) || address < kKernelBase) continue;
    const std::string_view name = rest.substr(3, std::min(rest.find('\t'), rest.size()) - 3);
    symbols.entries_.push_back({static_cast<uint32_t>(address - kKernelBase),
                                static_cast<uint32_t>(symbols.names_.size())});
    symbols.names_.append(name).push_back('\0');
  }
  if (!any_address) {
    return PermissionDeniedError(
        "read kallsyms: the kernel hides its addresses; CAP_SYSLOG and kernel.kptr_restrict below "
        "2 show them");
  }
  // Aliases: the first in the file wins.
  std::ranges::stable_sort(symbols.entries_, {}, &Entry::address);
  const auto same = std::ranges::unique(symbols.entries_, {}, &Entry::address);
  symbols.entries_.erase(same.begin(), same.end());
  symbols.entries_.shrink_to_fit();
  symbols.names_.shrink_to_fit();
  return symbols;
}

std::string_view KernelSymbols::Find(uint64_t address) const {
  if (address < kKernelBase) return {};
  const auto next = std::ranges::upper_bound(entries_, static_cast<uint32_t>(address - kKernelBase),
                                             {}, &Entry::address);
  if (next == entries_.begin()) return {};
  return names_.c_str() + std::prev(next)->name;
}

}  // namespace flamefleet::agent
