// SPDX-License-Identifier: Apache-2.0
#include "agent/push/outcome.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace flamefleet::agent {
namespace {

using Kind = Outcome::Kind;
using std::chrono::seconds;
using ::testing::HasSubstr;

Outcome Judge(int status, const std::string& retry_after = "", int server_errors = 0) {
  HttpResponse response = {.status = status, .body = "{\"message\":\"why\"}\n"};
  if (!retry_after.empty()) response.headers["retry-after"] = retry_after;
  return JudgeAnswer(response, server_errors);
}

TEST(Outcome, TheTableHolds) {
  const std::vector<std::pair<int, Kind>> table = {
      {200, Kind::kDelivered}, {201, Kind::kDrop},  {301, Kind::kDrop},  {400, Kind::kDrop},
      {401, Kind::kDrop},      {403, Kind::kDrop},  {404, Kind::kDrop},  {408, Kind::kRetry},
      {413, Kind::kDrop},      {415, Kind::kDrop},  {422, Kind::kDrop},  {429, Kind::kRetry},
      {500, Kind::kRetry},     {501, Kind::kRetry}, {502, Kind::kRetry}, {503, Kind::kRetry},
      {504, Kind::kRetry},     {507, Kind::kRetry}};
  for (const auto& [status, kind] : table)
    EXPECT_EQ(Judge(status).kind, kind) << status;
}

TEST(Outcome, NoAnswerIsTriedAgainForEver) {
  const Outcome outcome = JudgeAnswer(UnavailableError("refused"), 1000);
  EXPECT_EQ(outcome.kind, Kind::kRetry);
  EXPECT_FALSE(outcome.server_error);
}

TEST(Outcome, AServerErrorIsTriedAgainACappedNumberOfTimes) {
  EXPECT_EQ(Judge(500, "", kMaxServerErrors - 2).kind, Kind::kRetry);
  EXPECT_EQ(Judge(500, "", kMaxServerErrors - 1).kind, Kind::kDrop);
  EXPECT_EQ(Judge(503, "", 1000).kind, Kind::kRetry);
}

TEST(Outcome, RetryAfterIsHonouredUpToABound) {
  EXPECT_EQ(Judge(429, "7").retry_after, seconds(7));
  EXPECT_EQ(Judge(503, "100000").retry_after, kMaxRetryAfter);
  for (const char* text : {"-1", "soon", "1.5", "Wed, 21 Oct 2015 07:28:00 GMT"}) {
    EXPECT_EQ(Judge(429, text).retry_after, seconds(0)) << text;
  }
}

TEST(Outcome, TheMessageHasStatusAndAnswer) {
  EXPECT_THAT(Judge(400).message, HasSubstr("400: {\"message\":\"why\"}"));
}

}  // namespace
}  // namespace flamefleet::agent
