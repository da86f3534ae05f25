// SPDX-License-Identifier: Apache-2.0
#include "operator/control/outbox.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/utf8.h"
#include "operator/control/convert.h"

namespace flamefleet::control {
namespace {

plan::PodAssignment Pod(const std::string& uid, const std::string& ip = "10.0.0.1") {
  return {.uid = uid,
          .ns = "shop",
          .name = "pod-" + uid,
          .ip = ip,
          .containers = {{.name = "app", .id = "c"}}};
}

AssignmentPtr Assignment(const std::vector<plan::PodAssignment>& pods) {
  auto assignment = std::make_shared<plan::NodeAssignment>();
  for (const plan::PodAssignment& pod : pods)
    assignment->emplace(pod.uid, pod);
  return assignment;
}

ConfigPtr Config(int frequency = 19) {
  return std::make_shared<plan::AgentConfig>(plan::AgentConfig{
      .sampling_frequency_hz = frequency, .backends = {{"default", "http://store:4040"}}});
}

TEST(Diff, FindsWhatCameChangedAndWent) {
  const AssignmentPtr from = Assignment({Pod("same"), Pod("changed"), Pod("gone")});
  const AssignmentPtr to = Assignment({Pod("same"), Pod("changed", "10.0.0.2"), Pod("new")});
  const AssignmentDelta delta = Diff(*from, *to);
  ASSERT_EQ(delta.upserted.size(), 2U);
  EXPECT_EQ(delta.upserted[0]->uid, "changed");
  EXPECT_EQ(delta.upserted[1]->uid, "new");
  EXPECT_THAT(delta.removed, testing::ElementsAre("gone"));
}

TEST(Diff, OfEqualAssignmentsIsEmpty) {
  const AssignmentDelta delta = Diff(*Assignment({Pod("a")}), *Assignment({Pod("a")}));
  EXPECT_TRUE(delta.upserted.empty());
  EXPECT_TRUE(delta.removed.empty());
}

TEST(Outbox, BeginsWithASnapshotEvenOfNothing) {
  Outbox outbox;
  pb::OperatorMessage message;
  ASSERT_TRUE(outbox.Next(Config(), Assignment({}), message));
  ASSERT_TRUE(message.has_snapshot());
  EXPECT_EQ(message.snapshot().version(), 1U);
  EXPECT_EQ(message.snapshot().config().sampling_frequency_hz(), 19U);
  EXPECT_EQ(message.snapshot().pods_size(), 0);
}

TEST(Outbox, SendsOneDeltaForAllThatHappenedMeanwhile) {
  Outbox outbox;
  pb::OperatorMessage message;
  outbox.Next(Config(), Assignment({Pod("a"), Pod("b")}), message);
  ASSERT_TRUE(outbox.Next(Config(97), Assignment({Pod("b", "10.0.0.9"), Pod("c")}), message));
  const pb::Delta& delta = message.delta();
  EXPECT_EQ(delta.version(), 2U);
  EXPECT_EQ(delta.config().sampling_frequency_hz(), 97U);
  EXPECT_EQ(delta.upserted_pods_size(), 2);
  EXPECT_THAT(delta.removed_pod_uids(), testing::ElementsAre("a"));
}

TEST(Outbox, LeavesOutAConfigurationThatDidNotChange) {
  Outbox outbox;
  pb::OperatorMessage message;
  outbox.Next(Config(), Assignment({}), message);
  ASSERT_TRUE(outbox.Next(Config(), Assignment({Pod("a")}), message));
  EXPECT_FALSE(message.delta().has_config());
}

TEST(Outbox, SendsNothingWhenTheAgentHasItAll) {
  Outbox outbox;
  pb::OperatorMessage message;
  outbox.Next(Config(), Assignment({Pod("a")}), message);
  EXPECT_FALSE(outbox.Next(Config(), Assignment({Pod("a")}), message));
  EXPECT_FALSE(message.has_delta());
}

TEST(Outbox, RefusesToBeAcknowledgedBeyondWhatItSent) {
  Outbox outbox;
  pb::OperatorMessage message;
  outbox.Next(Config(), Assignment({}), message);
  EXPECT_FALSE(outbox.all_acknowledged());
  EXPECT_EQ(outbox.Acknowledge(2).code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(outbox.Acknowledge(1).ok());
  EXPECT_TRUE(outbox.all_acknowledged());
}

TEST(Convert, KeepsEveryFieldOfAnAssignment) {
  plan::PodAssignment pod = Pod("a");
  pod.containers[0].backend = "main";
  pod.containers[0].labels = {{"service_name", "x"}};
  pod.containers[0].thread_labels = true;
  pod.pulls = {{.type = ProfileType::kMutex,
                .port = 6060,
                .path = "/p",
                .parameters = {{"gc", "1"}},
                .interval_ns = 15 * kNanosPerSecond,
                .timeout_ns = kNanosPerSecond / 2,
                .container = "app",
                .backend = "other",
                .labels = {{"k", "v"}}}};
  pb::PodAssignment out;
  ToProto(pod, out);
  EXPECT_EQ(out.uid(), "a");
  EXPECT_EQ(out.namespace_(), "shop");
  EXPECT_EQ(out.name(), "pod-a");
  EXPECT_EQ(out.ip(), "10.0.0.1");
  EXPECT_EQ(out.containers(0).name(), "app");
  EXPECT_EQ(out.containers(0).id(), "c");
  EXPECT_EQ(out.containers(0).backend(), "main");
  EXPECT_EQ(out.containers(0).labels().at("service_name"), "x");
  EXPECT_TRUE(out.containers(0).thread_labels());
  const pb::PullJob& pull = out.pulls(0);
  EXPECT_EQ(pull.type(), pb::PROFILE_TYPE_MUTEX);
  EXPECT_EQ(pull.port(), 6060U);
  EXPECT_EQ(pull.path(), "/p");
  EXPECT_EQ(pull.parameters().at("gc"), "1");
  EXPECT_EQ(pull.interval_ms(), 15'000U);
  EXPECT_EQ(pull.timeout_ms(), 500U);
  EXPECT_EQ(pull.container(), "app");
  EXPECT_EQ(pull.backend(), "other");
  EXPECT_EQ(pull.labels().at("k"), "v");
}

TEST(Convert, CutsTextsBetweenCharacters) {
  pb::Report report;
  std::string message = "x";
  for (int i = 0; i < 200; ++i)
    message += "\u00e9";
  report.mutable_node()->add_problems()->set_message(message);
  plan::NodeReport out;
  FromProto(report, out);
  EXPECT_EQ(out.problems.at(0).message.size(), kMaxReportText - 1);
  EXPECT_TRUE(IsUtf8(out.problems[0].message));
}

TEST(Convert, ReadsAReportAndSkipsWhatItDoesNotKnow) {
  pb::Report report;
  report.mutable_node()->set_sampling(true);
  for (int i = 0; i < 20; ++i)
    report.mutable_node()->add_problems()->set_reason(std::string(1000, 'x'));
  pb::CollectionHealth& health = *report.add_collections();
  health.set_pod_uid("u");
  health.set_container("app");
  health.set_type(pb::PROFILE_TYPE_MEMORY);
  health.set_state(pb::COLLECTION_STATE_FAILING);
  health.set_reason("Timeout");
  health.set_last_delivered_unix_ms(5);
  health.set_failing_since_unix_ms(7);
  report.add_collections()->set_pod_uid("no type and no state");

  plan::NodeReport out{.pool = "default", .connected = true};
  FromProto(report, out);
  EXPECT_EQ(out.pool, "default");
  EXPECT_TRUE(out.connected);
  EXPECT_TRUE(out.received);
  EXPECT_TRUE(out.sampling);
  EXPECT_EQ(out.problems.size(), static_cast<size_t>(kMaxNodeProblems));
  EXPECT_EQ(out.problems[0].reason.size(), kMaxReportText);
  ASSERT_EQ(out.collections.size(), 1U);
  EXPECT_EQ(out.collections.begin()->first, (plan::CollectionId{"u", "app", ProfileType::kMemory}));
  EXPECT_EQ(out.collections.begin()->second,
            (plan::CollectionHealth{plan::CollectionState::kFailing, "Timeout", "", 5'000'000,
                                    7'000'000}));
}

}  // namespace
}  // namespace flamefleet::control
