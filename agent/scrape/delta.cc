// SPDX-License-Identifier: Apache-2.0
#include "agent/scrape/delta.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <string>

#include "base/pprof/wrapping_sum.h"

namespace flamefleet::agent {
namespace {

constexpr std::array<std::string_view, 4> kCumulativeTypes = {"alloc_objects", "alloc_space",
                                                              "contentions", "delay"};

// Each text once, however many lines and labels refer to it.
std::vector<uint64_t> HashTexts(const pprof::StringTable& strings, uint64_t seed) {
  std::vector<uint64_t> texts;
  texts.reserve(strings.Size());
  for (uint32_t i = 0; i < strings.Size(); ++i)
    texts.push_back(HashText(seed, strings.Get(i)));
  return texts;
}

// By address and by names: either may be missing.
uint64_t HashLocation(const pprof::Profile& profile, const pprof::Location& location,
                      const std::vector<uint64_t>& texts, uint64_t seed) {
  uint64_t hash = MixHash(seed, location.address);
  for (uint32_t i = 0; i < location.line_count; ++i) {
    const pprof::Line& line = profile.lines[location.first_line + i];
    if (line.function == pprof::kNone) continue;
    hash = MixHash(hash, texts[profile.functions[line.function].name]);
    hash = MixHash(hash, static_cast<uint64_t>(line.line) + seed);
  }
  return hash;
}

std::vector<uint64_t> HashStacks(const pprof::Profile& profile, uint64_t seed) {
  const std::vector<uint64_t> texts = HashTexts(profile.strings, seed);
  std::vector<uint64_t> locations;
  locations.reserve(profile.locations.size());
  for (const pprof::Location& location : profile.locations)
    locations.push_back(HashLocation(profile, location, texts, seed));
  std::vector<uint64_t> stacks;
  stacks.reserve(profile.samples.size());
  for (const pprof::Sample& sample : profile.samples) {
    uint64_t hash = MixHash(seed, sample.location_count);
    for (uint32_t i = 0; i < sample.location_count; ++i) {
      const uint32_t location = profile.sample_locations[sample.first_location + i];
      hash = MixHash(hash, locations[location] + seed);
    }
    for (uint32_t i = 0; i < sample.label_count; ++i) {
      const pprof::Label& label = profile.sample_labels[sample.first_label + i];
      hash = MixHash(hash, texts[label.key] + seed);
      hash = MixHash(hash, texts[label.text] + seed);
      hash = MixHash(hash, static_cast<uint64_t>(label.number) + seed);
    }
    stacks.push_back(hash);
  }
  return stacks;
}

}  // namespace

bool IsCumulative(std::string_view sample_type) {
  return std::find(kCumulativeTypes.begin(), kCumulativeTypes.end(), sample_type) !=
         kCumulativeTypes.end();
}

std::vector<Delta::StackKey> Delta::KeysOf(const pprof::Profile& profile) const {
  const std::vector<uint64_t> first = HashStacks(profile, first_seed_);
  const std::vector<uint64_t> second = HashStacks(profile, second_seed_);
  std::vector<StackKey> keys;
  keys.reserve(first.size());
  for (size_t i = 0; i < first.size(); ++i)
    keys.emplace_back(first[i], second[i]);
  return keys;
}

bool Delta::HasRestarted(const Totals& now) const {
  // Another set of cumulative types is another program.
  if (now.values.size() * past_.stacks.size() != past_.values.size() * now.stacks.size())
    return true;
  const size_t width = past_.stacks.empty() ? 0 : past_.values.size() / past_.stacks.size();
  size_t at = 0;
  for (size_t i = 0; i < past_.stacks.size(); ++i) {
    while (at < now.stacks.size() && now.stacks[at] < past_.stacks[i])
      ++at;
    const bool is_there = at < now.stacks.size() && now.stacks[at] == past_.stacks[i];
    for (size_t c = 0; c < width; ++c) {
      const int64_t value = is_there ? now.values[at * width + c] : 0;
      if (value < past_.values[i * width + c]) return true;
    }
  }
  return false;
}

Status Delta::Apply(pprof::Profile* profile) {
  std::vector<size_t> columns;
  for (size_t i = 0; i < profile->sample_types.size(); ++i) {
    if (IsCumulative(profile->strings.Get(profile->sample_types[i].type))) columns.push_back(i);
  }
  if (columns.empty()) return OkStatus();

  // Samples by stack, those of one stack as they came.
  const std::vector<StackKey> keys = KeysOf(*profile);
  std::vector<uint32_t> order(keys.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, [&keys](uint32_t s) { return std::pair(keys[s], s); });
  const auto begins_stack = [&](size_t i) {
    return i == 0 || keys[order[i]] != keys[order[i - 1]];
  };
  size_t stacks = 0;
  for (size_t i = 0; i < order.size(); ++i)
    stacks += begins_stack(i);

  Totals now;
  now.stacks.reserve(stacks);
  now.values.reserve(stacks * columns.size());
  const size_t width = profile->sample_types.size();
  const auto value = [&](uint32_t sample, size_t c) -> int64_t& {
    return profile->values[sample * width + columns[c]];
  };
  for (size_t i = 0; i < order.size(); ++i) {
    if (begins_stack(i)) {
      now.stacks.push_back(keys[order[i]]);
      now.values.resize(now.values.size() + columns.size());
    }
    int64_t* const sums = &now.values[now.values.size() - columns.size()];
    for (size_t c = 0; c < columns.size(); ++c)
      sums[c] = pprof::WrappingSum(sums[c], value(order[i], c));
  }
  if (room_ != nullptr && !room_->Take(now.Bytes() - past_.Bytes())) {
    return ResourceExhaustedError(
        "no memory is left to keep its " + std::to_string(stacks) +
        " stacks for the next profile; the agent needs a larger memory limit");
  }
  const bool has_past = has_past_ && !HasRestarted(now);

  // The first sample of a stack gets the difference of all, the others nothing.
  size_t stack = 0;   // of `now`, one further
  size_t before = 0;  // of past_
  for (size_t i = 0; i < order.size(); ++i) {
    const bool is_first = begins_stack(i);
    stack += is_first;
    while (before < past_.stacks.size() && past_.stacks[before] < keys[order[i]])
      ++before;
    const bool is_known = before < past_.stacks.size() && past_.stacks[before] == keys[order[i]];
    for (size_t c = 0; c < columns.size(); ++c) {
      int64_t& difference = value(order[i], c);
      difference = 0;
      if (!is_first || !has_past) continue;
      difference = now.values[(stack - 1) * columns.size() + c];
      if (is_known) difference -= past_.values[before * columns.size() + c];
    }
  }
  past_ = std::move(now);
  has_past_ = true;
  return OkStatus();
}

}  // namespace flamefleet::agent
