// SPDX-License-Identifier: Apache-2.0
#include "agent/scrape/delta.h"

#include <algorithm>
#include <array>

namespace flamefleet::agent {
namespace {

constexpr std::array<std::string_view, 4> kCumulativeTypes = {"alloc_objects", "alloc_space",
                                                              "contentions", "delay"};

// FNV-1a with a seed and a final mix; two seeds give two independent hashes.
class Hasher {
 public:
  explicit Hasher(uint64_t seed) : state_(14695981039346656037ULL ^ seed) {}
  void Add(uint64_t value) {
    for (int shift = 0; shift < 64; shift += 8)
      AddByte(static_cast<uint8_t>(value >> shift));
  }
  void Add(std::string_view text) {
    Add(text.size());
    for (const char c : text)
      AddByte(static_cast<uint8_t>(c));
  }
  uint64_t Result() const {
    const uint64_t mixed = (state_ ^ (state_ >> 33)) * 0xff51afd7ed558ccdULL;
    return mixed ^ (mixed >> 33);
  }

 private:
  void AddByte(uint8_t byte) { state_ = (state_ ^ byte) * 1099511628211ULL; }
  uint64_t state_;
};

// By address and by names: either may be missing.
uint64_t HashLocation(const pprof::Profile& profile, const pprof::Location& location,
                      uint64_t seed) {
  Hasher hasher(seed);
  hasher.Add(location.address);
  for (uint32_t i = 0; i < location.line_count; ++i) {
    const pprof::Line& line = profile.lines[location.first_line + i];
    if (line.function == pprof::kNone) continue;
    hasher.Add(profile.strings.Get(profile.functions[line.function].name));
    hasher.Add(static_cast<uint64_t>(line.line));
  }
  return hasher.Result();
}

std::vector<uint64_t> HashStacks(const pprof::Profile& profile, uint64_t seed) {
  std::vector<uint64_t> locations;
  locations.reserve(profile.locations.size());
  for (const pprof::Location& location : profile.locations) {
    locations.push_back(HashLocation(profile, location, seed));
  }
  std::vector<uint64_t> stacks;
  stacks.reserve(profile.samples.size());
  for (const pprof::Sample& sample : profile.samples) {
    Hasher hasher(seed);
    for (uint32_t i = 0; i < sample.location_count; ++i) {
      hasher.Add(locations[profile.sample_locations[sample.first_location + i]]);
    }
    for (uint32_t i = 0; i < sample.label_count; ++i) {
      const pprof::Label& label = profile.sample_labels[sample.first_label + i];
      hasher.Add(profile.strings.Get(label.key));
      hasher.Add(profile.strings.Get(label.text));
      hasher.Add(static_cast<uint64_t>(label.number));
    }
    stacks.push_back(hasher.Result());
  }
  return stacks;
}

}  // namespace

bool IsCumulative(std::string_view sample_type) {
  return std::find(kCumulativeTypes.begin(), kCumulativeTypes.end(), sample_type) !=
         kCumulativeTypes.end();
}

std::vector<Delta::StackKey> Delta::KeysOf(const pprof::Profile& profile) {
  constexpr uint64_t kFirstSeed = 0;
  constexpr uint64_t kSecondSeed = 0x9e3779b97f4a7c15ULL;
  const std::vector<uint64_t> first = HashStacks(profile, kFirstSeed);
  const std::vector<uint64_t> second = HashStacks(profile, kSecondSeed);
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
