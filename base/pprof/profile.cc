// SPDX-License-Identifier: Apache-2.0
#include "base/pprof/profile.h"

#include <absl/hash/hash.h>
#include <absl/strings/string_view.h>

#include "base/pprof/wrapping_sum.h"

namespace flamefleet::pprof {
namespace {

constexpr size_t kInitialSlots = 64;

// Seeded per process: a hostile profile cannot choose texts that collide.
size_t HashText(std::string_view text) {
  return absl::Hash<absl::string_view>{}(absl::string_view(text.data(), text.size()));
}

template <typename T>
size_t BytesOf(const std::vector<T>& v) {
  return v.capacity() * sizeof(T);
}

}  // namespace

StringTable::StringTable() {
  Clear();
}

void StringTable::Clear() {
  bytes_.clear();
  ends_.assign(1, 0);
  slots_.assign(std::max(slots_.size(), kInitialSlots), 0);
  indexed_ = 0;
}

std::string_view StringTable::Get(uint32_t index) const {
  const uint32_t begin = index == 0 ? 0 : ends_[index - 1];
  return std::string_view(bytes_).substr(begin, ends_[index] - begin);
}

uint32_t StringTable::Append(std::string_view text) {
  FF_CHECK(bytes_.size() + text.size() <= UINT32_MAX);
  bytes_.append(text);
  ends_.push_back(static_cast<uint32_t>(bytes_.size()));
  return static_cast<uint32_t>(ends_.size() - 1);
}

uint32_t StringTable::Intern(std::string_view text) {
  IndexAppended();
  const size_t slot = FindSlot(text);
  if (slots_[slot] != 0) return slots_[slot] - 1;
  const uint32_t index = Append(text);
  slots_[slot] = index + 1;
  ++indexed_;
  return index;
}

size_t StringTable::FindSlot(std::string_view text) const {
  const size_t mask = slots_.size() - 1;
  size_t slot = HashText(text) & mask;
  while (slots_[slot] != 0 && Get(slots_[slot] - 1) != text)
    slot = (slot + 1) & mask;
  return slot;
}

void StringTable::IndexAppended() {
  // Room for one more entry at a load of at most one half.
  size_t slots = slots_.size();
  while (slots < (Size() + 1) * 2)
    slots *= 2;
  if (slots != slots_.size()) {
    slots_.assign(slots, 0);
    indexed_ = 0;
  }
  for (; indexed_ < Size(); ++indexed_) {
    uint32_t& slot = slots_[FindSlot(Get(static_cast<uint32_t>(indexed_)))];
    if (slot == 0) slot = static_cast<uint32_t>(indexed_) + 1;  // else: a repeated text
  }
}

void Profile::Clear() {
  strings.Clear();
  sample_types.clear();
  samples.clear();
  values.clear();
  sample_locations.clear();
  sample_labels.clear();
  mappings.clear();
  locations.clear();
  lines.clear();
  functions.clear();
  comments.clear();
  drop_frames = 0;
  keep_frames = 0;
  default_sample_type = 0;
  doc_url = 0;
  time_ns = 0;
  duration_ns = 0;
  period_type = {};
  period = 0;
}

size_t BytesHeld(const Profile& p) {
  constexpr size_t kBytesPerString = 3 * sizeof(uint32_t);  // its end, and slots
  return p.strings.Bytes() + p.strings.Size() * kBytesPerString + BytesOf(p.samples) +
         BytesOf(p.values) + BytesOf(p.sample_locations) + BytesOf(p.sample_labels) +
         BytesOf(p.mappings) + BytesOf(p.locations) + BytesOf(p.lines) + BytesOf(p.functions);
}

int64_t TotalValue(const Profile& profile, size_t value_index) {
  const size_t width = profile.sample_types.size();
  FF_CHECK(value_index < width);
  int64_t total = 0;
  for (size_t i = value_index; i < profile.values.size(); i += width) {
    total = WrappingSum(total, profile.values[i]);
  }
  return total;
}

size_t DefaultSampleType(const Profile& profile) {
  FF_CHECK(!profile.sample_types.empty());
  if (profile.default_sample_type != 0) {
    const std::string_view wanted = profile.strings.Get(profile.default_sample_type);
    for (size_t i = 0; i < profile.sample_types.size(); ++i) {
      if (profile.strings.Get(profile.sample_types[i].type) == wanted) return i;
    }
  }
  return profile.sample_types.size() - 1;
}

}  // namespace flamefleet::pprof
