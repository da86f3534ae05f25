// SPDX-License-Identifier: Apache-2.0
#include "agent/stack/window.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <tuple>

namespace flamefleet::agent {
namespace {

using Frames = std::vector<uint64_t>;

bool Add(Window& window, uint32_t series, uint32_t image, const Frames& kernel,
         const Frames& user) {
  bool is_new = false;
  return window.Add(
      {.series = series, .image = image, .kernel_frames = kernel, .user_frames = user}, &is_new);
}

TEST(Window, CountsEqualStacksTogether) {
  Window window;
  bool is_new = false;
  const Frames user = {1, 2, 3};
  EXPECT_TRUE(window.Add({.user_frames = user}, &is_new));
  EXPECT_TRUE(is_new);
  EXPECT_TRUE(window.Add({.user_frames = user}, &is_new));
  EXPECT_FALSE(is_new);
  ASSERT_EQ(window.stacks().size(), 1u);
  EXPECT_EQ(window.stacks()[0].count, 2u);
  EXPECT_EQ(window.total(), 2u);
}

TEST(Window, WhereTheKernelPartEndsMatters) {
  Window window;
  Add(window, 0, 0, {1, 2}, {3});
  Add(window, 0, 0, {1}, {2, 3});
  Add(window, 0, 1, {1}, {2, 3});
  Add(window, 1, 0, {1}, {2, 3});
  Add(window, 0, 0, {}, {});
  EXPECT_EQ(window.stacks().size(), 5u);
}

TEST(Window, StacksOfThreadsThatAreToldApartAreCountedApart) {
  Window window;
  const Frames user = {1, 2};
  bool is_new = false;
  for (const uint32_t thread : {kNoThread, uint32_t{0}, uint32_t{1}, uint32_t{1}})
    window.Add({.thread = thread, .user_frames = user}, &is_new);
  ASSERT_EQ(window.stacks().size(), 3u);
  EXPECT_EQ(window.At(window.stacks()[2]).thread, 1u);
  EXPECT_EQ(window.stacks()[2].count, 2u);
}

TEST(Window, AgreesWithAMapForManyStacks) {
  std::mt19937_64 random(1);
  Window window;
  std::map<std::tuple<uint32_t, Frames, Frames>, uint64_t> expected;
  for (int i = 0; i < 50'000; ++i) {
    Frames kernel(random() % 3);
    Frames user(random() % 5);
    for (uint64_t& frame : kernel)
      frame = random() % 8;
    for (uint64_t& frame : user)
      frame = random() % 8;
    const auto series = static_cast<uint32_t>(random() % 3);
    ASSERT_TRUE(Add(window, series, 0, kernel, user));
    ++expected[{series, kernel, user}];
  }
  EXPECT_EQ(window.stacks().size(), expected.size());
  for (const Window::Stack& stack : window.stacks()) {
    const StackSample sample = window.At(stack);
    const std::tuple key(sample.series,
                         Frames(sample.kernel_frames.begin(), sample.kernel_frames.end()),
                         Frames(sample.user_frames.begin(), sample.user_frames.end()));
    EXPECT_EQ(expected[key], stack.count);
  }
}

TEST(Window, RefusesNewStacksWhenFullButCountsKnownOnes) {
  Window window;
  for (uint64_t i = 0; i < kMaxStacks; ++i)
    ASSERT_TRUE(Add(window, 0, 0, {}, {i}));
  EXPECT_FALSE(Add(window, 0, 0, {}, {kMaxStacks}));
  EXPECT_TRUE(Add(window, 0, 0, {}, {5}));
  EXPECT_EQ(window.total(), kMaxStacks + 1);
}

TEST(Window, RefusesMoreFramesThanItsBound) {
  Window window;
  Frames frames(254, 0);
  uint64_t added = 0;
  while (Add(window, 0, 0, {}, frames))
    frames[0] = ++added;
  EXPECT_EQ(added, kMaxFrames / frames.size());
}

TEST(Window, IsEmptyAfterClear) {
  Window window;
  Add(window, 0, 0, {}, {1});
  window.images.push_back(nullptr);
  window.Clear();
  EXPECT_TRUE(window.stacks().empty());
  EXPECT_TRUE(window.images.empty());
  EXPECT_EQ(window.total(), 0u);
  bool is_new = false;
  const Frames user = {1};
  EXPECT_TRUE(window.Add({.user_frames = user}, &is_new));
  EXPECT_TRUE(is_new);
}

}  // namespace
}  // namespace flamefleet::agent
