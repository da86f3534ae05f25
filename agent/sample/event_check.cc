// SPDX-License-Identifier: Apache-2.0
#include "agent/sample/event_check.h"

#include <algorithm>
#include <bit>
#include <charconv>

namespace flamefleet::agent {
namespace {

constexpr uint64_t kNanosPerTick = 10'000'000;  // USER_HZ is 100 on every architecture

// Takes a number and the spaces before it off the front; false when there is none.
bool TakeNumber(std::string_view* text, uint64_t* number) {
  text->remove_prefix(std::min(text->find_first_not_of(' '), text->size()));
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), *number);
  text->remove_prefix(static_cast<size_t>(end - text->data()));
  return error == std::errc();
}

}  // namespace

std::map<int, uint64_t> BusyNanosByCpu(std::string_view stat) {
  std::map<int, uint64_t> busy;
  while (!stat.empty()) {
    const size_t end = std::min(stat.find('\n'), stat.size());
    std::string_view line = stat.substr(0, end);
    stat.remove_prefix(std::min(end + 1, stat.size()));
    constexpr std::string_view kPrefix = "cpu";
    if (!line.starts_with(kPrefix)) continue;
    line.remove_prefix(kPrefix.size());
    if (line.starts_with(' ')) continue;  // the sum of all
    uint64_t cpu = 0;
    uint64_t user = 0;
    uint64_t nice = 0;
    uint64_t system = 0;
    if (TakeNumber(&line, &cpu) && TakeNumber(&line, &user) && TakeNumber(&line, &nice) &&
        TakeNumber(&line, &system))
      busy[static_cast<int>(cpu)] = (user + nice + system) * kNanosPerTick;
  }
  return busy;
}

std::vector<int> EventCheck::Update(const std::vector<uint64_t>& events,
                                    const std::map<int, uint64_t>& busy_ns, uint64_t period_ns) {
  std::vector<int> due;
  if (period_ns != period_ns_) cpus_.clear();
  period_ns_ = period_ns;
  std::erase_if(cpus_, [&busy_ns](const auto& cpu) { return !busy_ns.contains(cpu.first); });
  for (const auto& [number, busy] : busy_ns) {
    if (static_cast<size_t>(number) >= events.size()) continue;
    const uint64_t count = events[static_cast<size_t>(number)];
    const auto [found, is_new] = cpus_.try_emplace(number, Cpu{.events = count, .busy_ns = busy});
    Cpu& cpu = found->second;
    // The kernel's sums can step back.
    const uint64_t expected = (std::max(busy, cpu.busy_ns) - cpu.busy_ns) / period_ns;
    if (count > cpu.events) cpu.has_spoken = true;
    if (is_new || expected < kJudgedEvents) continue;
    const bool is_silent = count - cpu.events < expected / kLeastShare;
    cpu = {.events = count,
           .busy_ns = busy,
           .has_spoken = cpu.has_spoken,
           .silences = is_silent ? cpu.silences + 1 : 0};
    if (std::has_single_bit(cpu.silences) ||
        (is_silent && cpu.silences % kMaxSilencesBetweenReopenings == 0))
      due.push_back(number);
  }
  return due;
}

bool EventCheck::IsSilent() const {
  const auto is_heard = [](const auto& cpu) {
    return cpu.second.has_spoken && cpu.second.silences == 0;
  };
  return !Problem().empty() && std::ranges::none_of(cpus_, is_heard);
}

std::string EventCheck::Problem() const {
  constexpr size_t kMaxListed = 8;
  std::string list;
  size_t count = 0;
  for (const auto& [number, cpu] : cpus_) {
    if (cpu.silences == 0) continue;
    if (++count <= kMaxListed) list += (list.empty() ? "" : ", ") + std::to_string(number);
  }
  if (count == 0) return "";
  if (count > kMaxListed) list += " and " + std::to_string(count - kMaxListed) + " more";
  return "programs run on CPU " + list +
         ", but its sampling timer is not heard. The agent opens it again; if that does not help, "
         "see whether kernel.perf_event_max_sample_rate is below sampling.frequency and what the "
         "kernel's log says of perf";
}

}  // namespace flamefleet::agent
