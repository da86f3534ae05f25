// SPDX-License-Identifier: Apache-2.0
#include "operator/runtime/own_writes.h"

#include <gtest/gtest.h>

namespace flamefleet {
namespace {

TEST(IsOlderVersion, ComparesNumbersOfAnyLength) {
  EXPECT_TRUE(IsOlderVersion("9", "10"));
  EXPECT_FALSE(IsOlderVersion("10", "9"));
  EXPECT_TRUE(IsOlderVersion("99999999999999999999998", "99999999999999999999999"));
  EXPECT_FALSE(IsOlderVersion("7", "7"));
  EXPECT_TRUE(IsOlderVersion("", "1"));
}

class OwnWritesTest : public testing::Test {
 protected:
  std::map<std::string_view, std::string> seen_ = {{"daemonsets", "10"}, {"agentpools", "10"}};
  OwnWrites writes_{[this](const Resource& resource) { return seen_[resource.plural]; }};
};

TEST_F(OwnWritesTest, AKeyWaitsUntilTheCacheHasSeenWhatWasWrittenForIt) {
  writes_.Begin("pool/a");
  EXPECT_TRUE(writes_.Seen("pool/a"));
  writes_.Wrote(kDaemonSets, "12");
  EXPECT_FALSE(writes_.Seen("pool/a"));
  seen_["daemonsets"] = "11";
  EXPECT_FALSE(writes_.Seen("pool/a"));
  seen_["daemonsets"] = "15";  // of another object, or a bookmark
  EXPECT_TRUE(writes_.Seen("pool/a"));
}

TEST_F(OwnWritesTest, OtherKeysAndKindsDoNotCount) {
  writes_.Begin("pool/a");
  writes_.Wrote(kDaemonSets, "12");
  writes_.Begin("pool/b");
  EXPECT_TRUE(writes_.Seen("pool/b"));
  seen_["agentpools"] = "99";
  EXPECT_FALSE(writes_.Seen("pool/a"));
}

TEST_F(OwnWritesTest, TheNewestOfSeveralWritesCounts) {
  writes_.Begin("pool/a");
  writes_.Wrote(kDaemonSets, "12");
  writes_.Wrote(kDaemonSets, "9");  // an answer that changed nothing
  writes_.Wrote(kAgentPools, "13");
  seen_["daemonsets"] = "12";
  EXPECT_FALSE(writes_.Seen("pool/a"));
  seen_["agentpools"] = "13";
  EXPECT_TRUE(writes_.Seen("pool/a"));
}

TEST_F(OwnWritesTest, AServerThatWasSetBackHoldsNobodyUp) {
  writes_.Begin("pool/a");
  writes_.Wrote(kDaemonSets, "12");
  seen_["daemonsets"] = "9";
  EXPECT_TRUE(writes_.Seen("pool/a"));
}

TEST_F(OwnWritesTest, AKindThatTheCacheDoesNotKeepHoldsNobodyUp) {
  writes_.Begin("pool/a");
  writes_.Wrote(kLeases, "12");
  EXPECT_TRUE(writes_.Seen("pool/a"));
}

}  // namespace
}  // namespace flamefleet
