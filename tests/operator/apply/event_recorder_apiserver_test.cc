// SPDX-License-Identifier: Apache-2.0
// EventRecorder against a real kube-apiserver, read with kubectl.
#include "operator/apply/event_recorder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/fakes/fake_clock.h"
#include "tests/operator/apiserver_fixture.h"

namespace flamefleet {
namespace {

using testing::HasSubstr;

TEST(EventRecorder, TheServerTakesItsEventsAndTheirSeries) {
  const ApiServer server;
  Metrics metrics;
  const auto client = server.NewClient(metrics);
  FakeClock clock(SystemClock().WallNanos());
  EventRecorder recorder(*client, clock, metrics, "me");
  const auto events = [&](const std::string& ns, const std::string& field) {
    return server
        .Kubectl({"get", "events.v1.events.k8s.io", "-n", ns, "-o",
                  "jsonpath={range .items[*]}{.regarding.kind}/{.regarding.name} {." + field +
                      "}\n{end}"})
        .text;
  };
  // A name that ends badly where it is cut.
  const std::string name = std::string(199, 'a') + "." + std::string(50, 'b');
  const api::ObjectMeta pod{.ns = "default", .name = name, .uid = "u1"};
  const api::ObjectMeta pool{.name = "gpu", .uid = "u2"};
  recorder.Record(kPods, pod, {true, "InvalidAnnotation", "Profile", "first"});
  recorder.Record(kAgentPools, pool, {false, "Created", "Apply", "hello"});
  EXPECT_TRUE(Eventually([&] {
    const std::string notes = events("default", "note");
    return notes.find("Pod/" + name + " first") != std::string::npos &&
           notes.find("AgentPool/gpu hello") != std::string::npos;
  })) << events("default", "note");
  recorder.Record(kPods, pod, {true, "InvalidAnnotation", "Profile", "second"});
  EXPECT_TRUE(Eventually([&] {
    return events("default", "note").find("Pod/" + name + " second") != std::string::npos;
  })) << events("default", "note");
  clock.Advance(std::chrono::nanoseconds(EventRecorder::kRefresh).count());
  recorder.Record(kPods, pod, {true, "InvalidAnnotation", "Profile", "second"});
  EXPECT_TRUE(Eventually([&] {
    return events("default", "series.count").find("Pod/" + name + " 2") != std::string::npos;
  })) << events("default", "series.count");
  // People's view.
  EXPECT_THAT(server.MustKubectl({"get", "events"}), HasSubstr("InvalidAnnotation"));
}

}  // namespace
}  // namespace flamefleet
