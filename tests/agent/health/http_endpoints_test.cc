// SPDX-License-Identifier: Apache-2.0
#include "agent/health/http_endpoints.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/http/fetch.h"
#include "base/reasons.h"

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

CollectionStatus Failing(std::string_view reason) {
  return {.state = CollectionState::kFailing, .reason = std::string(reason), .message = "why"};
}

TEST(Readiness, BackendThatTakesNothingIsSaid) {
  EXPECT_TRUE(JudgeDelivery({}).ok());
  EXPECT_TRUE(JudgeDelivery({{.state = CollectionState::kWaiting}}).ok());
  EXPECT_TRUE(JudgeDelivery({Failing(reasons::kConnectionRefused)}).ok());
  EXPECT_THAT(ErrorMessage(JudgeDelivery({Failing(reasons::kBackendUnreachable)})),
              HasSubstr("why"));
  EXPECT_FALSE(
      JudgeDelivery({{.state = CollectionState::kIdle}, Failing(reasons::kBackendUnauthorized)})
          .ok());
  EXPECT_TRUE(JudgeDelivery(
                  {Failing(reasons::kBackendUnreachable), {.state = CollectionState::kDelivering}})
                  .ok());
}

TEST(Endpoints, HealthReadinessAndMetricsAreServed) {
  Metrics metrics;
  metrics.Counter("flamefleet_x_total", "X.");
  Status healthy = OkStatus();
  Status sampled = OkStatus();
  Status delivered = OkStatus();
  auto server = ServeEndpoints("127.0.0.1:0", &metrics,
                               {.healthy = [&healthy] { return healthy; },
                                .sampled = [&sampled] { return sampled; },
                                .delivered = [&delivered] { return delivered; }});
  ASSERT_TRUE(server.ok()) << server.status();
  const auto get = [&server](const std::string& target) {
    return *Fetch({.address = "127.0.0.1", .port = (*server)->port(), .target = target}, {});
  };
  EXPECT_EQ(get("/healthz").status, 200);
  EXPECT_EQ(get("/readyz").status, 200);
  sampled = UnavailableError("no samples");
  EXPECT_EQ(get("/readyz").status, 503);
  EXPECT_EQ(get("/readyz").body, "no samples\n");
  EXPECT_EQ(get("/readyz?exclude=delivery").status, 503);
  EXPECT_EQ(get("/healthz").status, 200);
  sampled = OkStatus();
  delivered = UnavailableError("no profile is delivered");
  EXPECT_EQ(get("/readyz").body, "no profile is delivered\n");
  EXPECT_EQ(get("/readyz?exclude=sampling").status, 503);
  EXPECT_EQ(get("/readyz?exclude=delivery").status, 200);
  delivered = OkStatus();
  healthy = DeadlineExceededError("stage push makes no progress");
  EXPECT_EQ(get("/healthz").status, 503);
  EXPECT_EQ(get("/healthz").body, "stage push makes no progress\n");
  EXPECT_EQ(get("/readyz").status, 200);
  EXPECT_THAT(get("/metrics").body, HasSubstr("flamefleet_x_total 0"));
  EXPECT_EQ(get("/").status, 404);
}

}  // namespace
}  // namespace flamefleet::agent
