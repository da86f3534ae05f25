// SPDX-License-Identifier: Apache-2.0
#include "agent/stack/window.h"

#include <algorithm>

#include "base/hash.h"

namespace flamefleet::agent {
namespace {

constexpr size_t kFirstSlots = 1024;

}  // namespace

Window::Window() : seed_(RandomHashSeed()), slots_(kFirstSlots, 0) {}

uint64_t Window::Hash(const StackSample& sample) const {
  uint64_t hash = MixHash(seed_, (uint64_t{sample.series} << 32) | sample.image);
  hash = MixHash(hash, (uint64_t{sample.thread} << 32) | sample.kernel_frames.size());
  for (const uint64_t frame : sample.kernel_frames)
    hash = MixHash(hash, frame + seed_);
  for (const uint64_t frame : sample.user_frames)
    hash = MixHash(hash, frame + seed_);
  return hash;
}

bool Window::Equal(const Stack& stack, uint64_t hash, const StackSample& sample) const {
  if (stack.hash != hash || stack.series != sample.series || stack.image != sample.image ||
      stack.thread != sample.thread || stack.kernel_frames != sample.kernel_frames.size() ||
      stack.user_frames != sample.user_frames.size())
    return false;
  const StackSample stored = At(stack);
  return std::ranges::equal(stored.kernel_frames, sample.kernel_frames) &&
         std::ranges::equal(stored.user_frames, sample.user_frames);
}

bool Window::Add(const StackSample& sample, bool* is_new) {
  *is_new = false;
  const uint64_t hash = Hash(sample);
  const size_t mask = slots_.size() - 1;
  size_t slot = hash & mask;
  for (; slots_[slot] != 0; slot = (slot + 1) & mask) {
    Stack& stack = stacks_[slots_[slot] - 1];
    if (!Equal(stack, hash, sample)) continue;
    ++stack.count;
    ++total_;
    return true;
  }
  *is_new = true;
  const size_t frames = sample.kernel_frames.size() + sample.user_frames.size();
  if (stacks_.size() >= kMaxStacks || frames_.size() + frames > kMaxFrames) return false;
  stacks_.push_back({.hash = hash,
                     .count = 1,
                     .series = sample.series,
                     .image = sample.image,
                     .thread = sample.thread,
                     .first_frame = static_cast<uint32_t>(frames_.size()),
                     .kernel_frames = static_cast<uint16_t>(sample.kernel_frames.size()),
                     .user_frames = static_cast<uint16_t>(sample.user_frames.size())});
  frames_.insert(frames_.end(), sample.kernel_frames.begin(), sample.kernel_frames.end());
  frames_.insert(frames_.end(), sample.user_frames.begin(), sample.user_frames.end());
  slots_[slot] = static_cast<uint32_t>(stacks_.size());
  ++total_;
  if (stacks_.size() * 2 > slots_.size()) Grow();
  return true;
}

StackSample Window::At(const Stack& stack) const {
  const std::span<const uint64_t> all(frames_);
  return {.series = stack.series,
          .image = stack.image,
          .thread = stack.thread,
          .kernel_frames = all.subspan(stack.first_frame, stack.kernel_frames),
          .user_frames = all.subspan(stack.first_frame + stack.kernel_frames, stack.user_frames)};
}

void Window::Grow() {
  slots_.assign(slots_.size() * 2, 0);
  const size_t mask = slots_.size() - 1;
  for (size_t i = 0; i < stacks_.size(); ++i) {
    size_t slot = stacks_[i].hash & mask;
    while (slots_[slot] != 0)
      slot = (slot + 1) & mask;
    slots_[slot] = static_cast<uint32_t>(i + 1);
  }
}

void Window::Clear() {
  std::ranges::fill(slots_, 0);
  stacks_.clear();
  frames_.clear();
  images.clear();
  threads.clear();
  total_ = 0;
  start_ns = 0;
  duration_ns = 0;
  period_ns = 0;
}

}  // namespace flamefleet::agent
