// SPDX-License-Identifier: Apache-2.0
#include "agent/symbol/kernel_symbols.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "base/fd.h"

namespace flamefleet::agent {
namespace {

// Kernel text and modules are in the last 4 GiB of addresses on x86-64.
constexpr uint64_t kKernelBase = 0xffffffff00000000;

bool IsFunctionType(char type) {
  return type == 't' || type == 'T' || type == 'w' || type == 'W';
}

}  // namespace

// "ffffffff81000000 T _text", of a module with "\t[name]" behind it.
Status KernelSymbols::AddLine(std::string_view line) {
  uint64_t address = 0;
  const auto [next, error] = std::from_chars(line.data(), line.data() + line.size(), address, 16);
  const std::string_view rest(next, static_cast<size_t>(line.data() + line.size() - next));
  if (error != std::errc() || rest.size() < 4 || rest[0] != ' ' || rest[2] != ' ') {
    constexpr size_t kShown = 100;
    return InvalidArgumentError("parse kallsyms: bad line \"" +
                                std::string(line.substr(0, kShown)) + "\"");
  }
  any_address_ = any_address_ || address != 0;
  if (!IsFunctionType(rest[1]) || address < kKernelBase) return OkStatus();
  const std::string_view name = rest.substr(3, std::min(rest.find('\t'), rest.size()) - 3);
  entries_.push_back(
      {static_cast<uint32_t>(address - kKernelBase), static_cast<uint32_t>(names_.size())});
  names_.append(name).push_back('\0');
  return OkStatus();
}

Status KernelSymbols::AddLines(std::string_view* text) {
  for (size_t end = text->find('\n'); end != std::string_view::npos; end = text->find('\n')) {
    FF_RETURN_IF_ERROR(AddLine(text->substr(0, end)));
    text->remove_prefix(end + 1);
  }
  return OkStatus();
}

Status KernelSymbols::Finish() {
  if (!any_address_) {
    return PermissionDeniedError(
        "read kallsyms: the kernel hides its addresses; CAP_SYSLOG and kernel.kptr_restrict below "
        "2 show them");
  }
  // Aliases: the first in the file wins.
  std::ranges::stable_sort(entries_, {}, &Entry::address);
  const auto same = [](const Entry& a, const Entry& b) { return a.address == b.address; };
  entries_.erase(std::unique(entries_.begin(), entries_.end(), same), entries_.end());
  entries_.shrink_to_fit();
  names_.shrink_to_fit();
  return OkStatus();
}

Result<KernelSymbols> KernelSymbols::Parse(std::string_view kallsyms) {
  KernelSymbols symbols;
  FF_RETURN_IF_ERROR(symbols.AddLines(&kallsyms));
  if (!kallsyms.empty()) FF_RETURN_IF_ERROR(symbols.AddLine(kallsyms));
  FF_RETURN_IF_ERROR(symbols.Finish());
  return symbols;
}

Result<KernelSymbols> KernelSymbols::Read(const std::string& path) {
  constexpr size_t kPieceBytes = 64 << 10;
  FF_ASSIGN_OR_RETURN(const UniqueFd fd, OpenFile(path, O_RDONLY));
  KernelSymbols symbols;
  std::string buffer(kPieceBytes, '\0');
  size_t kept = 0;  // of a line whose end is not read yet, at the front of the buffer
  for (size_t total = 0; total <= kMaxKallsymsBytes;) {
    const ssize_t got = ::read(fd.get(), buffer.data() + kept, buffer.size() - kept);
    if (got < 0) return ErrnoError(errno, "read " + path);
    if (got == 0) {
      FF_RETURN_IF_ERROR(symbols.Finish());
      return symbols;
    }
    total += static_cast<size_t>(got);
    std::string_view text(buffer.data(), kept + static_cast<size_t>(got));
    FF_RETURN_IF_ERROR(symbols.AddLines(&text));
    if (text.size() == buffer.size())
      return InvalidArgumentError("read " + path + ": endless line");
    kept = text.size();
    std::memmove(buffer.data(), text.data(), kept);
  }
  return ResourceExhaustedError("read " + path + ": more than 64 MiB");
}

std::string_view KernelSymbols::Find(uint64_t address) const {
  if (address < kKernelBase) return {};
  const auto next = std::ranges::upper_bound(entries_, static_cast<uint32_t>(address - kKernelBase),
                                             {}, &Entry::address);
  if (next == entries_.begin()) return {};
  return names_.c_str() + std::prev(next)->name;
}

}  // namespace flamefleet::agent
