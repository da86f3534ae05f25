// SPDX-License-Identifier: Apache-2.0
#include "agent/scrape/scrape_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/reasons.h"

namespace flamefleet::agent {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

ScrapeJob Job(ProfileType type) {
  return {.key = {.pod_uid = "uid", .container = "app", .type = type},
          .address = "fd00::1",
          .port = 6060,
          .path = "/debug/pprof/x",
          .interval = milliseconds(15'000),
          .timeout = milliseconds(10'000)};
}

TEST(ScrapeJob, ACpuProfileTakesTheIntervalLessASecondAndItsTimeoutStartsAfterIt) {
  ScrapeJob job = Job(ProfileType::kCpu);
  job.parameters = {{"seconds", "3600"}};  // not the user's to choose
  const FetchOptions options = FetchOptionsOf(job);
  EXPECT_EQ(options.target, "/debug/pprof/x?seconds=14");
  EXPECT_EQ(options.timeout, milliseconds(24'000));
  job.interval = milliseconds(1'000);
  EXPECT_EQ(FetchOptionsOf(job).target, "/debug/pprof/x?seconds=1");
}

TEST(ScrapeJob, ParametersAreEncodedAndJoinAQueryOfThePath) {
  ScrapeJob job = Job(ProfileType::kMemory);
  EXPECT_EQ(FetchOptionsOf(job).target, "/debug/pprof/x");
  job.parameters = {{"gc", "1"}, {"q", "a b&c"}};
  EXPECT_EQ(FetchOptionsOf(job).target, "/debug/pprof/x?gc=1&q=a%20b%26c");
  job.path = "/x?y=1";
  EXPECT_EQ(FetchOptionsOf(job).target, "/x?y=1&gc=1&q=a%20b%26c");
}

TEST(ScrapeJob, FirstScrapesSpreadOverTheInterval) {
  std::set<int64_t> tenths;
  for (int i = 0; i < 200; ++i) {
    ScrapeJob job = Job(ProfileType::kMemory);
    job.key.pod_uid = std::to_string(i);
    EXPECT_LT(FirstDelay(job), job.interval);
    EXPECT_EQ(FirstDelay(job), FirstDelay(job));
    tenths.insert(FirstDelay(job) * 10 / job.interval);
  }
  EXPECT_EQ(tenths.size(), 10U);
}

TEST(ScrapeJob, EachFailureHasItsReason) {
  EXPECT_EQ(FailureOfFetch(FailedPreconditionError("x")).reason, reasons::kConnectionRefused);
  EXPECT_EQ(FailureOfFetch(UnavailableError("x")).reason, reasons::kConnectionFailed);
  EXPECT_EQ(FailureOfFetch(PermissionDeniedError("x")).reason, reasons::kCertificateNotTrusted);
  EXPECT_EQ(FailureOfFetch(DeadlineExceededError("x")).reason, reasons::kTimeout);
  EXPECT_EQ(FailureOfFetch(ResourceExhaustedError("x")).reason, reasons::kProfileTooLarge);
  EXPECT_EQ(FailureOfFetch(InvalidArgumentError("x")).reason, reasons::kNotAProfile);
  EXPECT_EQ(FailureOfAnswer({404, "404 page not found\n"}).reason, reasons::kHTTPError);
  EXPECT_EQ(
      FailureOfAnswer({500, "Could not enable CPU profiling: cpu profiling already in use"}).reason,
      reasons::kProfilingInUse);
  EXPECT_EQ(FailureOfDecode(ResourceExhaustedError("x")).reason, reasons::kProfileTooLarge);
  EXPECT_EQ(FailureOfDecode(InvalidArgumentError("x")).reason, reasons::kNotAProfile);
}

TEST(ScrapeJob, WhatAPodSaysIsQuotedPrintableAndShort) {
  const std::string message =
      FailureOfAnswer({500, "\x1b[31mred\n" + std::string(9999, 'x')}).message;
  EXPECT_THAT(message, HasSubstr("500: ?[31mred?xxx"));
  EXPECT_LT(message.size(), 200U);
  EXPECT_THAT(FailureOfAnswer({302, ""}).message, HasSubstr("redirects are not followed"));
}

}  // namespace
}  // namespace flamefleet::agent
