// SPDX-License-Identifier: Apache-2.0
#include "operator/apply/fleet_gauges.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace flamefleet {
namespace {

using nlohmann::json;

class FleetGaugesTest : public testing::Test {
 protected:
  static json Status(const std::string& ready, const char* counts, int profiled, int failing) {
    return {{"conditions",
             {{{"type", "Accepted"}, {"status", "True"}}, {{"type", "Ready"}, {"status", ready}}}},
            {counts, {{"profiled", profiled}, {"failing", failing}}}};
  }
  bool Shows(const std::string& series) const {
    return metrics_.RenderText().find("\n" + series + "\n") != std::string::npos;
  }

  Metrics metrics_;
};

TEST_F(FleetGaugesTest, AnObjectCountsOnceByItsLastStatus) {
  FleetGauges gauges(metrics_);
  gauges.Note("ProfilingTarget", "/a", Status("False", "pods", 1, 2));
  gauges.Note("ProfilingTarget", "/a", Status("True", "pods", 3, 0));
  EXPECT_TRUE(Shows(R"(flamefleet_operator_objects{kind="ProfilingTarget",ready="True"} 1)"));
  EXPECT_TRUE(Shows(R"(flamefleet_operator_objects{kind="ProfilingTarget",ready="False"} 0)"));
  EXPECT_TRUE(Shows(R"(flamefleet_operator_pods{state="profiled"} 3)"));
  EXPECT_TRUE(Shows(R"(flamefleet_operator_pods{state="failing"} 0)"));
}

TEST_F(FleetGaugesTest, PodsOfTargetsAndPodsWithAnnotationsAddUp) {
  FleetGauges gauges(metrics_);
  gauges.Note("ProfilingTarget", "/a", Status("True", "pods", 1, 0));
  gauges.Note("AgentPool", "/b", Status("True", "annotatedPods", 4, 2));
  EXPECT_TRUE(Shows(R"(flamefleet_operator_pods{state="profiled"} 5)"));
  EXPECT_TRUE(Shows(R"(flamefleet_operator_pods{state="failing"} 2)"));
}

TEST_F(FleetGaugesTest, AStatusThatSaysNothingOfReadyIsUnknown) {
  FleetGauges gauges(metrics_);
  gauges.Note("ProfilingBackend", "/a", json::object());
  EXPECT_TRUE(Shows(R"(flamefleet_operator_objects{kind="ProfilingBackend",ready="Unknown"} 1)"));
}

TEST_F(FleetGaugesTest, WhatIsForgottenCountsNoMore) {
  FleetGauges gauges(metrics_);
  gauges.Note("AgentPool", "/a", Status("True", "annotatedPods", 4, 2));
  gauges.Forget("/a");
  gauges.Forget("/a");
  EXPECT_TRUE(Shows(R"(flamefleet_operator_objects{kind="AgentPool",ready="True"} 0)"));
  EXPECT_TRUE(Shows(R"(flamefleet_operator_pods{state="profiled"} 0)"));
}

TEST_F(FleetGaugesTest, ATermThatEndsLeavesNothingBehind) {
  {
    FleetGauges gauges(metrics_);
    gauges.Note("AgentPool", "/a", Status("True", "annotatedPods", 4, 2));
  }
  EXPECT_TRUE(Shows(R"(flamefleet_operator_objects{kind="AgentPool",ready="True"} 0)"));
  EXPECT_TRUE(Shows(R"(flamefleet_operator_pods{state="profiled"} 0)"));
}

}  // namespace
}  // namespace flamefleet
