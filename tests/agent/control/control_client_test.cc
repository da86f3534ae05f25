// SPDX-License-Identifier: Apache-2.0
#include "agent/control/control_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <optional>

#include "agent/control/assignment.h"
#include "base/clock.h"
#include "base/reasons.h"
#include "tests/support/fake_operator.h"
#include "tests/support/wait.h"

namespace flamefleet::agent {
namespace {

using fleet::v1alpha1::OperatorMessage;

const char* const kSnapshot =
    "snapshot { version: 1 pods { uid: \"a\" containers { name: \"app\" id: \"1\" } } }";

class ControlClientTest : public ::testing::Test {
 protected:
  void Connect(const std::string& address) {
    client_.emplace(
        ControlOptions{.operator_address = address,
                       .node = "n1",
                       .pool = "default",
                       .pod_name = "p",
                       .trust_file = files_.trust_file(),
                       .token_file = files_.token_file()},
        &health_, &metrics_,
        [this](const OperatorMessage& message) {
          FF_RETURN_IF_ERROR(assignment_.Apply(message));
          health_.SetCollections(assignment_.BuildWork(std::chrono::seconds(10)).collections);
          in_force_ = assignment_.version();
          return OkStatus();
        },
        [this] { return BuildReport(health_.Snapshot(), {.sampling = true}); });
  }

  ChannelFiles files_;
  Metrics metrics_;
  CollectionHealthBook health_{SystemClock()};
  Assignment assignment_;
  std::atomic<uint64_t> in_force_ = 0;
  std::optional<ControlClient> client_;  // last: gone first
};

TEST_F(ControlClientTest, HelloComesFirstAndWhatIsInForceIsAcknowledged) {
  FakeOperator fake(files_, kSnapshot);
  Connect(fake.address());
  ASSERT_TRUE(WaitUntil([&] { return fake.LastAck() == 1; }));
  EXPECT_EQ(in_force_, 1U);
  const auto hello = fake.Messages().at(0).hello();
  EXPECT_EQ(hello.node(), "n1");
  EXPECT_EQ(hello.pool(), "default");
  EXPECT_EQ(hello.pod_name(), "p");
  EXPECT_EQ(hello.agent_version(), FF_VERSION);
  fake.Send("delta { version: 2 removed_pod_uids: \"a\" }");
  EXPECT_TRUE(WaitUntil([&] { return fake.LastAck() == 2; }));
}

TEST_F(ControlClientTest, AChangeOfHealthIsReported) {
  FakeOperator fake(files_, kSnapshot);
  Connect(fake.address());
  ASSERT_TRUE(WaitUntil([&] { return fake.LastReport().collections_size() == 1; }));
  EXPECT_EQ(fake.LastReport().collections(0).state(), fleet::v1alpha1::COLLECTION_STATE_WAITING);
  EXPECT_TRUE(fake.LastReport().node().sampling());
  const CollectionKey key = {"a", "app", ProfileType::kCpu};
  health_.OnDelivered(key);
  EXPECT_TRUE(WaitUntil([&] {
    return fake.LastReport().collections(0).state() == fleet::v1alpha1::COLLECTION_STATE_DELIVERING;
  }));
  health_.OnNotDelivered(key, reasons::kBackendUnreachable, "503");
  EXPECT_TRUE(WaitUntil(
      [&] { return fake.LastReport().collections(0).reason() == reasons::kBackendUnreachable; }));
  EXPECT_GT(fake.LastReport().collections(0).failing_since_unix_ms(), 1'600'000'000'000);
}

TEST_F(ControlClientTest, AGapInTheVersionsBringsANewSnapshot) {
  FakeOperator fake(files_, kSnapshot);
  Connect(fake.address());
  ASSERT_TRUE(WaitUntil([&] { return fake.LastAck() == 1; }));
  fake.Send("delta { version: 9 removed_pod_uids: \"a\" }");
  EXPECT_TRUE(WaitUntil([&] { return fake.Hellos() == 2; }));
  EXPECT_EQ(health_.Snapshot().size(), 1U);
}

TEST_F(ControlClientTest, TheAssignmentStaysInForceWhileTheOperatorIsAwayAndTheNextOneIsFound) {
  int port = 0;
  {
    FakeOperator fake(files_, kSnapshot);
    port = fake.port();
    Connect(fake.address());
    ASSERT_TRUE(WaitUntil([&] { return fake.LastAck() == 1; }));
  }
  EXPECT_EQ(health_.Snapshot().size(), 1U);
  FakeOperator next(files_, "snapshot { version: 5 }", port);
  EXPECT_TRUE(WaitUntil([&] { return next.LastAck() == 5; }));
  EXPECT_TRUE(health_.Snapshot().empty());
}

TEST_F(ControlClientTest, ShowsTheTokenOfTheFileAndSendsANewerOne) {
  FakeOperator fake(files_, kSnapshot);
  Connect(fake.address());
  ASSERT_TRUE(WaitUntil([&] { return fake.LastAck() == 1; }));
  EXPECT_THAT(fake.Authorizations(), testing::ElementsAre("Bearer token-1"));
  files_.WriteToken("token-2");
  EXPECT_TRUE(WaitUntil([&] { return fake.LastRenewal() == "token-2"; }));
  EXPECT_EQ(fake.Hellos(), 1);
}

TEST_F(ControlClientTest, FindsAnOperatorWithAnotherAuthorityOnceTheFileSaysSo) {
  int port = 0;
  {
    FakeOperator fake(files_, kSnapshot);
    port = fake.port();
    Connect(fake.address());
    ASSERT_TRUE(WaitUntil([&] { return fake.LastAck() == 1; }));
  }
  files_.Rotate(/*keep=*/true);
  files_.WriteToken("token-2");
  FakeOperator next(files_, "snapshot { version: 5 }", port);
  EXPECT_TRUE(WaitUntil([&] { return next.LastAck() == 5; }));
  EXPECT_THAT(next.Authorizations(), testing::Contains("Bearer token-2"));
}

TEST_F(ControlClientTest, TellsNothingToAnOperatorThatItDoesNotTrust) {
  ChannelFiles others;
  FakeOperator fake(others, kSnapshot);
  FakeOperator trusted(files_, kSnapshot);
  Connect(fake.address());
  // As long as it takes another agent to connect.
  ControlClient other(
      {.operator_address = trusted.address(),
       .node = "n2",
       .pool = "default",
       .pod_name = "p",
       .trust_file = files_.trust_file(),
       .token_file = files_.token_file()},
      &health_, &metrics_, [](const OperatorMessage&) { return OkStatus(); },
      [] { return fleet::v1alpha1::Report(); });
  ASSERT_TRUE(WaitUntil([&] { return trusted.LastAck() == 1; }));
  EXPECT_THAT(fake.Authorizations(), testing::IsEmpty());
  EXPECT_EQ(in_force_, 0U);
}

TEST_F(ControlClientTest, AnOperatorThatIsNotThereDoesNotStopTheStop) {
  Connect("127.0.0.1:1");
  client_.reset();
}

}  // namespace
}  // namespace flamefleet::agent
