// SPDX-License-Identifier: Apache-2.0
#include "operator/api/agent_pod.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "operator/api/object_event.h"

namespace flamefleet::api {
namespace {

using nlohmann::json;

AgentPod Decode(const json& status) {
  json object = json::parse(R"({
    "metadata": {"name": "a-x", "namespace": "flamefleet-system", "resourceVersion": "7",
                 "labels": {"flamefleet.dev/pool": "gpu"}},
    "spec": {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
      {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n3"]}]}]}}}}
  })");
  object["status"] = status;
  const Result<AgentPod> pod = DecodeAgentPod(object);
  EXPECT_TRUE(pod.ok()) << pod.status();
  return pod.ok() ? *pod : AgentPod{};
}

json Container(const json& fields) {
  json status = {{"name", "agent"}, {"ready", false}};
  status.update(fields);
  return {{"containerStatuses", {status}}};
}

TEST(DecodeAgentPod, KnowsTheNodeBeforeThePodIsScheduled) {
  const AgentPod pod = Decode(json::object());
  EXPECT_EQ(pod.node, "n3");
  EXPECT_EQ(pod.pool, "gpu");
  EXPECT_EQ(pod.reason, "");
}

TEST(DecodeAgentPod, SaysWhyItIsNotScheduled) {
  const AgentPod pod = Decode({{"conditions",
                                {{{"type", "Ready"}, {"status", "False"}, {"reason", "other"}},
                                 {{"type", "PodScheduled"},
                                  {"status", "False"},
                                  {"reason", "Unschedulable"},
                                  {"message", "m"}}}}});
  EXPECT_EQ(pod.reason, "Unschedulable");
  EXPECT_EQ(pod.message, "m");
}

TEST(DecodeAgentPod, FindsNothingWrongWithOneThatStarts) {
  EXPECT_EQ(Decode(Container({{"state", {{"waiting", {{"reason", "ContainerCreating"}}}}}})).reason,
            "");
  EXPECT_EQ(Decode(Container({{"state", {{"running", json::object()}}}})).reason, "");
}

TEST(DecodeAgentPod, SaysWhyItsContainerWaits) {
  const AgentPod pod = Decode(Container(
      {{"state", {{"waiting", {{"reason", "ErrImagePull"}, {"message", "not found"}}}}}}));
  EXPECT_EQ(pod.reason, "ErrImagePull");
  EXPECT_EQ(pod.message, "not found");
}

// Waiting, running and ended take turns; what is wrong is the same.
TEST(DecodeAgentPod, SaysTheSameInEachStateOfACrashLoop) {
  const json ended = {{"terminated", {{"reason", "OOMKilled"}, {"exitCode", 137}}}};
  const json waiting = {{"waiting", {{"reason", "CrashLoopBackOff"}, {"message", "back-off 20s"}}}};
  for (const json& fields : {json{{"state", waiting}, {"lastState", ended}},
                             json{{"state", {{"running", json::object()}}}, {"lastState", ended}},
                             json{{"state", ended}}}) {
    const AgentPod pod = Decode(Container(fields));
    EXPECT_EQ(pod.reason, "CrashLoopBackOff");
    EXPECT_EQ(pod.message, "OOMKilled, exit code 137");
  }
}

TEST(DecodeAgentPod, ForgetsTheCrashOfOneThatIsReady) {
  EXPECT_EQ(Decode(Container({{"ready", true},
                              {"state", {{"running", json::object()}}},
                              {"lastState", {{"terminated", {{"exitCode", 1}}}}}}))
                .reason,
            "");
}

TEST(DecodeObjectEvent, TakesTheNewestOfItsTimes) {
  const json base = {{"metadata", {{"name", "e"}, {"namespace", "s"}}},
                     {"regarding", {{"kind", "DaemonSet"}, {"name", "d"}, {"uid", "u"}}},
                     {"note", "m"},
                     {"eventTime", "2026-11-29T17:05:00.000000Z"}};
  const auto last = [&](const json& more) {
    json object = base;
    object.update(more);
    const Result<ObjectEvent> event = DecodeObjectEvent(object);
    EXPECT_TRUE(event.ok()) << event.status();
    return event->last_ns;
  };
  const int64_t first = last({{"deprecatedLastTimestamp", nullptr}});
  EXPECT_GT(last({{"deprecatedLastTimestamp", "2026-11-29T17:06:00Z"}}), first);
  EXPECT_GT(last({{"series", {{"count", 2}, {"lastObservedTime", "2026-11-29T17:07:00.000000Z"}}}}),
            first);
  EXPECT_EQ(DecodeObjectEvent(base)->object_uid, "u");
}

}  // namespace
}  // namespace flamefleet::api
