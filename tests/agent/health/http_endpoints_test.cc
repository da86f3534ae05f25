// SPDX-License-Identifier: Apache-2.0
#include "agent/health/http_endpoints.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/http/fetch.h"

namespace flamefleet::agent {
namespace {

using ::testing::HasSubstr;

TEST(Readiness, SamplesThatAreWantedMustFlow) {
  EXPECT_TRUE(JudgeReadiness({.wanted = false, .running = false}).ok());
  EXPECT_FALSE(JudgeReadiness({.wanted = true, .running = false}).ok());
  EXPECT_TRUE(JudgeReadiness({.wanted = true, .running = true, .nanos_since_drain = 0}).ok());
  EXPECT_FALSE(
      JudgeReadiness({.wanted = true, .running = true, .nanos_since_drain = 60 * kNanosPerSecond})
          .ok());
}

TEST(Endpoints, HealthReadinessAndMetricsAreServed) {
  Metrics metrics;
  metrics.Counter("flamefleet_x_total", "X.");
  Status ready = OkStatus();
  auto server = ServeEndpoints("127.0.0.1:0", &metrics, [&ready] { return ready; });
  ASSERT_TRUE(server.ok()) << server.status();
  const auto get = [&server](const std::string& target) {
    return *Fetch({.address = "127.0.0.1", .port = (*server)->port(), .target = target}, {});
  };
  EXPECT_EQ(get("/healthz").status, 200);
  EXPECT_EQ(get("/readyz").status, 200);
  ready = UnavailableError("no samples");
  EXPECT_EQ(get("/readyz").status, 503);
  EXPECT_EQ(get("/readyz").body, "no samples\n");
  EXPECT_EQ(get("/healthz").status, 200);
  EXPECT_THAT(get("/metrics").body, HasSubstr("flamefleet_x_total 0"));
  EXPECT_EQ(get("/").status, 404);
}

}  // namespace
}  // namespace flamefleet::agent
