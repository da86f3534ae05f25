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

TEST(ScrapeJob, OnlyRedirectsOfTheSameHostHaveATarget) {
  const auto target = [](const std::string& location, int status = 302) {
    const FetchOptions asked = {.address = "10.0.0.1", .port = 6060, .target = "/pprof"};
    return RedirectTarget(asked, {.status = status, .location = location}).value_or("none");
  };
  EXPECT_EQ(target("/pprof/heap?x=1#top"), "/pprof/heap?x=1");
  EXPECT_EQ(target("http://10.0.0.1:6060/pprof/"), "/pprof/");
  EXPECT_EQ(target("/pprof/", 200), "none");
  for (const char* const elsewhere :
       {"", "http://10.0.0.1:6061/", "https://10.0.0.1:6060/", "http://10.0.0.1:60601/",
        "http://10.0.0.1:6060@169.254.169.254/", "//169.254.169.254/", "http://169.254.169.254/",
        "/a b", "heap"}) {
    EXPECT_EQ(target(elsewhere), "none") << elsewhere;
  }
  const FetchOptions v6 = {.address = "fd00::1", .port = 443, .tls = FetchTls{}};
  EXPECT_EQ(RedirectTarget(v6, {.status = 308, .location = "https://[fd00::1]:443/x"}), "/x");
}

TEST(ScrapeJob, WhatIsAbsentOrInUseRestsAndOtherFailuresDoNot) {
  using std::chrono::seconds;
  EXPECT_EQ(RestAfter(FailureOfAnswer({404, ""}), 1, seconds(15)), kMaxRest);
  const ScrapeFailure in_use = FailureOfAnswer({500, "cpu profiling already in use"});
  EXPECT_EQ(RestAfter(in_use, 1, seconds(15)), seconds(15));
  EXPECT_EQ(RestAfter(in_use, 3, seconds(15)), seconds(60));
  EXPECT_EQ(RestAfter(in_use, 1000, seconds(15)), kMaxRest);
  EXPECT_EQ(RestAfter(FailureOfAnswer({500, ""}), 9, seconds(15)), seconds(0));
}

TEST(ScrapeJob, WhatAPodSaysIsQuotedPrintableAndShort) {
  const std::string message =
      FailureOfAnswer({500, "\x1b[31mred\n" + std::string(9999, 'x')}).message;
  EXPECT_THAT(message, HasSubstr("500: ?[31mred?xxx"));
  EXPECT_LT(message.size(), 200U);
  EXPECT_THAT(FailureOfAnswer({302, ""}).message, HasSubstr("on the same host only"));
}

}  // namespace
}  // namespace flamefleet::agent
