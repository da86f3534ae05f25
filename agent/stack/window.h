// SPDX-License-Identifier: Apache-2.0
// Window: the samples of a few seconds, equal stacks counted together.
//
// Thread: one owner at a time; a full window is moved to the next stage. Units: nanoseconds.
// Bounds: kMaxStacks different stacks and kMaxFrames frames in all; a sample that would pass one is
// refused, the caller counts it. Clear() keeps the memory: a reused window allocates nothing.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "agent/host/process.h"

namespace flamefleet::agent {

constexpr size_t kMaxStacks = 1 << 16;  // 10 s of 64 CPUs at 97 Hz, were they all different
constexpr size_t kMaxFrames = 1 << 21;  // 16 MiB; 32 per stack

constexpr uint32_t kNoImage = UINT32_MAX;
constexpr uint32_t kNoThread = UINT32_MAX;

// A thread whose samples are told apart from those of others.
struct ThreadLabel {
  uint32_t id = 0;  // as the node numbers it; 0: there is none, several threads share the name
  std::string name;

  friend auto operator<=>(const ThreadLabel&, const ThreadLabel&) = default;
};

// One stack of one process of one series. Frames are innermost first.
struct StackSample {
  uint32_t series = 0;  // the pipeline's number of it
  uint32_t image =
      kNoImage;  // index into Window::images; kNoImage: kernel thread or unread process
  uint32_t thread = kNoThread;  // index into Window::threads; kNoThread: whichever
  std::span<const uint64_t> kernel_frames;
  std::span<const uint64_t> user_frames;
};

class Window {
 public:
  struct Stack {
    uint64_t hash = 0;
    uint64_t count = 0;
    uint32_t series = 0;
    uint32_t image = kNoImage;
    uint32_t thread = kNoThread;
    uint32_t first_frame = 0;
    uint16_t kernel_frames = 0;
    uint16_t user_frames = 0;
  };

  Window();

  // Counts the sample. False when it is a new stack and there is no room; *is_new tells the two
  // apart.
  bool Add(const StackSample& sample, bool* is_new);

  const std::vector<Stack>& stacks() const { return stacks_; }
  StackSample At(const Stack& stack) const;
  uint64_t total() const { return total_; }
  void Clear();

  int64_t start_ns = 0;     // wall clock
  int64_t duration_ns = 0;  // of the sampling, monotonic clock
  uint64_t period_ns = 0;   // what one sample stands for
  // What the processes had mapped, by StackSample::image; may hold nulls.
  std::vector<std::shared_ptr<const ProcessImage>> images;
  std::vector<ThreadLabel> threads;  // by StackSample::thread

 private:
  uint64_t Hash(const StackSample& sample) const;
  bool Equal(const Stack& stack, uint64_t hash, const StackSample& sample) const;
  void Grow();

  const uint64_t seed_;  // random: return addresses come from the profiled, who could collide them
  std::vector<uint32_t> slots_;  // open addressing: index into stacks_ + 1; 0 is free; power of two
  std::vector<Stack> stacks_;
  std::vector<uint64_t> frames_;
  uint64_t total_ = 0;
};

}  // namespace flamefleet::agent
