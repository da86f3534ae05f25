// SPDX-License-Identifier: Apache-2.0
#include "agent/scrape/delta.h"

#include <algorithm>
#include <array>

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

bool Delta::WentDown(const Totals& now) const {
  return std::any_of(past_.begin(), past_.end(), [&now](const auto& entry) {
    const auto found = now.find(entry.first);
    if (found == now.end()) {
      return std::any_of(entry.second.begin(), entry.second.end(), [](int64_t v) { return v > 0; });
    }
    for (size_t i = 0; i < entry.second.size(); ++i) {
      if (found->second[i] < entry.second[i]) return true;
    }
    return false;
  });
}

void Delta::Apply(pprof::Profile* profile) {
  std::vector<size_t> columns;
  for (size_t i = 0; i < profile->sample_types.size(); ++i) {
    if (IsCumulative(profile->strings.Get(profile->sample_types[i].type))) columns.push_back(i);
  }
  if (columns.empty()) return;

  const size_t width = profile->sample_types.size();
  const std::vector<StackKey> keys = KeysOf(*profile);
  Totals now;
  now.reserve(keys.size());
  for (size_t s = 0; s < keys.size(); ++s) {
    Values& values = now[keys[s]];
    values.resize(columns.size());
    for (size_t c = 0; c < columns.size(); ++c) {
      values[c] += profile->values[s * width + columns[c]];
    }
  }
  const bool has_past = has_past_ && !WentDown(now);

  // Samples of one stack: the first gets the difference of their sum, the others nothing.
  Totals left = has_past ? now : Totals();
  for (size_t s = 0; s < keys.size(); ++s) {
    const auto sum = left.find(keys[s]);
    const auto before = past_.find(keys[s]);
    for (size_t c = 0; c < columns.size(); ++c) {
      int64_t difference = 0;
      if (sum != left.end()) {
        difference = sum->second[c] - (before == past_.end() ? 0 : before->second[c]);
      }
      profile->values[s * width + columns[c]] = difference;
    }
    if (sum != left.end()) left.erase(sum);
  }
  past_ = std::move(now);
  has_past_ = true;
}

}  // namespace flamefleet::agent
