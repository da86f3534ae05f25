// SPDX-License-Identifier: Apache-2.0
#include "base/pprof/call_tree.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>

#include "base/pprof/top.h"
#include "tests/base/pprof/test_profiles.h"

namespace flamefleet::pprof {
namespace {

constexpr CallTree::Side kMain = CallTree::kMain;
constexpr CallTree::Side kBaseline = CallTree::kBaseline;

// "main.main;main.work;main.leafA" -> self
std::map<std::string, int64_t> Stacks(const CallTree& tree, CallTree::Side side) {
  std::map<std::string, int64_t> stacks;
  for (CallTree::Node node : tree.nodes()) {
    if (node.self[side] == 0) continue;
    const int64_t self = node.self[side];
    std::string stack = tree.functions()[node.function].name;
    while (node.parent != 0) {
      node = tree.nodes()[node.parent];
      stack = tree.functions()[node.function].name + ";" + stack;
    }
    stacks[stack] += self;
  }
  return stacks;
}

TEST(CallTree, HasTheStacksOfTheProfile) {
  CallTree tree;
  EXPECT_TRUE(tree.Add(DecodeOrDie(ReadProfileFile("hand_cpu2.pb.gz")), 0, kMain).ok());
  EXPECT_EQ(Stacks(tree, kMain), (std::map<std::string, int64_t>{
                                     {"main.main;main.work", 1},
                                     {"main.main;main.work;main.leafA", 3},
                                     {"main.main;main.work;main.leafB", 2},
                                 }));
  EXPECT_EQ(tree.nodes()[0].total[kMain], 6);
  EXPECT_EQ(tree.nodes().size(), 5U);
}

TEST(CallTree, FunctionsAreThoseOfTheTopTable) {
  for (const KnownProfile& known : KnownProfiles()) {
    const Profile profile = DecodeOrDie(ReadProfileFile(known.file));
    if (profile.samples.empty()) continue;
    CallTree tree;
    EXPECT_TRUE(tree.Add(profile, 0, kMain).ok());
    std::map<std::string, std::pair<int64_t, int64_t>> functions;
    for (const CallTree::Function& f : tree.functions()) {
      if (!f.name.empty()) functions[f.name] = {f.self[kMain], f.total[kMain]};
    }
    const Top top = HottestFunctions(profile, 0, SIZE_MAX);
    for (const TopFunction& f : top.functions)
      EXPECT_EQ(functions[f.name], std::pair(f.flat, f.cum)) << known.file << ": " << f.name;
  }
}

TEST(CallTree, SidesDoNotMix) {
  CallTree tree;
  const Profile profile = DecodeOrDie(ReadProfileFile("hand_cpu2.pb.gz"));
  EXPECT_TRUE(tree.Add(profile, 0, kMain).ok());
  EXPECT_TRUE(tree.Add(profile, 1, kBaseline).ok());
  EXPECT_EQ(Stacks(tree, kMain).at("main.main;main.work;main.leafA"), 3);
  EXPECT_EQ(Stacks(tree, kBaseline).at("main.main;main.work;main.leafA"), 30'000'000);
}

TEST(CallTree, PruneKeepsTheHeaviestAndSaysWhatWent) {
  const Profile profile = DecodeOrDie(ReadProfileFile("real_cpu.pb.gz"));
  CallTree whole;
  EXPECT_TRUE(whole.Add(profile, 0, kMain).ok());
  CallTree tree;
  EXPECT_TRUE(tree.Add(profile, 0, kMain).ok());
  const CallTree::Pruned pruned = tree.Prune(10);
  ASSERT_EQ(tree.nodes().size(), 10U);
  EXPECT_EQ(pruned.nodes, whole.nodes().size() - 10);
  const auto self = [](const CallTree& t) {
    return std::accumulate(t.nodes().begin(), t.nodes().end(), int64_t{0},
                           [](int64_t sum, const auto& node) { return sum + node.self[kMain]; });
  };
  EXPECT_EQ(self(tree) + pruned.self[kMain], self(whole));
  EXPECT_EQ(tree.nodes()[0].total, whole.nodes()[0].total);
  for (uint32_t i = 1; i < tree.nodes().size(); ++i)
    EXPECT_LT(tree.nodes()[i].parent, i);
  EXPECT_EQ(tree.functions().size(), whole.functions().size());
}

TEST(CallTree, ValuesBelowZeroPruneNoParentOfAKeptNode) {
  CallTree tree;
  EXPECT_TRUE(tree.Add(DecodeOrDie(ReadProfileFile("hand_negative.pb.gz")), 0, kMain).ok());
  for (size_t left = tree.nodes().size() - 1; left > 0; --left) {
    tree.Prune(left);
    for (uint32_t i = 1; i < tree.nodes().size(); ++i)
      EXPECT_LT(tree.nodes()[i].parent, i);
  }
}

}  // namespace
}  // namespace flamefleet::pprof
