// SPDX-License-Identifier: Apache-2.0
#include "operator/control/node_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstddef>

namespace flamefleet::control {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int64_t kNow = 1'700'000'000 * kNanosPerSecond;

class NodeTableTest : public ::testing::Test {
 protected:
  // An address that stands for a stream, which the table never looks into.
  AgentStream* Stream(size_t number) {
    return reinterpret_cast<AgentStream*>(&addresses_.at(number));
  }
  AgentStream* SpeakerOf(const std::string& node) const {
    const auto streams = table_.StreamsOf(node);
    return !streams.empty() && table_.Speaks(node, streams[0]) ? streams[0] : nullptr;
  }

  NodeTable table_;

 private:
  std::array<std::max_align_t, 32> addresses_{};
};

TEST_F(NodeTableTest, TheNewestStreamSpeaksForANodeWithoutAnOwner) {
  EXPECT_EQ(table_.Join("n1", "a", Stream(0)), nullptr);
  EXPECT_EQ(table_.Join("n1", "b", Stream(1)), nullptr);
  EXPECT_THAT(table_.StreamsOf("n1"), ElementsAre(Stream(1), Stream(0)));
  EXPECT_EQ(table_.connected(), 1U);
  EXPECT_EQ(table_.ReportOf("n1")->pool, "b");
}

TEST_F(NodeTableTest, AnAgentThatComesAgainTakesItsOwnPlaceOnly) {
  table_.Join("n1", "a", Stream(0));
  table_.SetOwner("n1", "a");
  table_.Join("n1", "b", Stream(1));
  EXPECT_EQ(table_.Join("n1", "b", Stream(2)), Stream(1));
  EXPECT_EQ(SpeakerOf("n1"), Stream(0));
  EXPECT_EQ(table_.Join("n1", "a", Stream(3)), Stream(0));
  EXPECT_EQ(SpeakerOf("n1"), Stream(3));
  // What an older stream does at its end concerns nobody.
  EXPECT_FALSE(table_.Leave("n1", Stream(0), kNow).spoke);
  EXPECT_EQ(SpeakerOf("n1"), Stream(3));
}

TEST_F(NodeTableTest, TheOwnersAgentSpeaksAsSoonAsItIsThere) {
  table_.Join("n1", "a", Stream(0));
  EXPECT_FALSE(table_.SetOwner("n1", "b"));
  EXPECT_EQ(SpeakerOf("n1"), Stream(0));
  table_.Join("n1", "b", Stream(1));
  EXPECT_EQ(SpeakerOf("n1"), Stream(1));
  EXPECT_TRUE(table_.SetOwner("n1", "a"));
  EXPECT_EQ(SpeakerOf("n1"), Stream(0));
  EXPECT_FALSE(table_.SetOwner("n1", ""));
  EXPECT_EQ(SpeakerOf("n1"), Stream(0));
}

TEST_F(NodeTableTest, AnotherStreamSpeaksWhenTheOneThatDidIsGone) {
  table_.Join("n1", "a", Stream(0));
  table_.Join("n1", "b", Stream(1));
  NodeTable::Left left = table_.Leave("n1", Stream(1), kNow);
  EXPECT_TRUE(left.spoke);
  EXPECT_EQ(left.next, Stream(0));
  EXPECT_EQ(table_.connected(), 1U);
  EXPECT_TRUE(table_.ReportOf("n1")->connected);
  left = table_.Leave("n1", Stream(0), kNow);
  EXPECT_TRUE(left.spoke);
  EXPECT_EQ(left.next, nullptr);
  EXPECT_EQ(table_.connected(), 0U);
  EXPECT_FALSE(table_.ReportOf("n1")->connected);
  EXPECT_EQ(table_.ReportOf("n1")->disconnected_since_ns, kNow);
}

TEST_F(NodeTableTest, TheWordOfAnotherPoolsAgentIsNotKept) {
  table_.Join("n1", "a", Stream(0));
  table_.ChangeReport("n1", [](plan::NodeReport& report) { report.received = true; });
  table_.Join("n1", "a", Stream(1));
  EXPECT_TRUE(table_.ReportOf("n1")->received);
  table_.Join("n1", "b", Stream(2));
  EXPECT_FALSE(table_.ReportOf("n1")->received);
}

TEST_F(NodeTableTest, AReportThatWasGivenOutDoesNotChange) {
  table_.Join("n1", "a", Stream(0));
  const auto before = table_.ReportOf("n1");
  table_.ChangeReport("n1", [](plan::NodeReport& report) { report.received = true; });
  EXPECT_FALSE(before->received);
  EXPECT_TRUE(table_.ReportOf("n1")->received);
}

TEST_F(NodeTableTest, SeatsOfANodeAreBounded) {
  size_t streams = 0;
  while (table_.HasRoom("n1") && streams < 30) {
    table_.Join("n1", "pool" + std::to_string(streams), Stream(streams));
    ++streams;
  }
  EXPECT_EQ(streams, NodeTable::kMaxIdleStreams + 1);
  EXPECT_TRUE(table_.HasRoom("n2"));
}

TEST_F(NodeTableTest, ANodeIsForgottenWhenItWasGoneForLongAndNotBefore) {
  table_.Join("n1", "a", Stream(0));
  table_.ForgetOld(kNow + 2 * NodeTable::kForgetAfterNs);
  EXPECT_THAT(table_.Names(), ElementsAre("n1"));
  table_.Leave("n1", Stream(0), kNow);
  table_.ForgetOld(kNow + NodeTable::kForgetAfterNs - 1);
  EXPECT_THAT(table_.Names(), ElementsAre("n1"));
  table_.ForgetOld(kNow + NodeTable::kForgetAfterNs);
  EXPECT_THAT(table_.Names(), IsEmpty());
  EXPECT_EQ(table_.ReportOf("n1"), nullptr);
}

}  // namespace
}  // namespace flamefleet::control
