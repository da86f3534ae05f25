// SPDX-License-Identifier: Apache-2.0
#include "agent/push/outcome.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/reasons.h"
#include "base/utf8.h"

namespace flamefleet::agent {
namespace {

using Kind = Outcome::Kind;
using std::chrono::seconds;
using ::testing::HasSubstr;

HttpResponse Answer(int status, const std::string& body = "{\"message\":\"why\"}\n") {
  return {.status = status, .body = body};
}

TEST(Outcome, TheTableHolds) {
  struct Row {
    int status;
    Kind kind;
    bool back_off;
    std::string_view reason;
  };
  using namespace reasons;  // NOLINT: a table
  const Row rows[] = {
      {200, Kind::kDelivered, false, ""},
      {201, Kind::kDrop, false, kBackendRefused},
      {301, Kind::kRetry, true, kBackendUnreachable},
      {400, Kind::kDrop, false, kBackendRefused},
      {401, Kind::kRetry, true, kBackendUnauthorized},
      {403, Kind::kRetry, true, kBackendUnauthorized},
      {404, Kind::kRetry, true, kBackendUnreachable},
      {405, Kind::kRetry, true, kBackendUnreachable},
      {408, Kind::kRetry, true, kBackendUnreachable},
      {413, Kind::kSplit, false, kProfileTooLarge},
      {415, Kind::kRetry, true, kBackendUnreachable},
      {422, Kind::kDrop, false, kBackendRefused},
      {429, Kind::kRetry, true, kBackendUnreachable},
      {500, Kind::kRetry, true, kBackendUnreachable},
      {501, Kind::kRetry, true, kBackendUnreachable},
      {502, Kind::kRetry, true, kBackendUnreachable},
      {503, Kind::kRetry, true, kBackendUnreachable},
      {504, Kind::kRetry, true, kBackendUnreachable},
      {507, Kind::kRetry, true, kBackendUnreachable},
  };
  for (const Row& row : rows) {
    const Outcome outcome = JudgeAnswer(Answer(row.status), {});
    EXPECT_EQ(outcome.kind, row.kind) << row.status;
    EXPECT_EQ(outcome.back_off, row.back_off) << row.status;
    EXPECT_EQ(outcome.reason, row.reason) << row.status;
  }
}

TEST(Outcome, TheTableOfCallsHolds) {
  struct Row {
    StatusCode code;
    Kind kind;
    bool back_off;
    bool may_be_profile;
    std::string_view reason;
  };
  using namespace reasons;  // NOLINT: a table
  const Row rows[] = {
      {StatusCode::kOk, Kind::kDelivered, false, false, ""},
      {StatusCode::kCancelled, Kind::kRetry, true, false, kBackendUnreachable},
      {StatusCode::kUnknown, Kind::kRetry, true, true, kBackendUnreachable},
      {StatusCode::kInvalidArgument, Kind::kDrop, false, false, kBackendRefused},
      {StatusCode::kDeadlineExceeded, Kind::kRetry, true, false, kBackendUnreachable},
      {StatusCode::kNotFound, Kind::kRetry, true, false, kBackendUnreachable},
      {StatusCode::kAlreadyExists, Kind::kDrop, false, false, kBackendRefused},
      {StatusCode::kPermissionDenied, Kind::kRetry, true, false, kBackendUnauthorized},
      {StatusCode::kResourceExhausted, Kind::kRetry, true, false, kBackendUnreachable},
      {StatusCode::kFailedPrecondition, Kind::kDrop, false, false, kBackendRefused},
      {StatusCode::kAborted, Kind::kRetry, true, false, kBackendUnreachable},
      {StatusCode::kOutOfRange, Kind::kDrop, false, false, kBackendRefused},
      {StatusCode::kUnimplemented, Kind::kRetry, true, false, kBackendUnreachable},
      {StatusCode::kInternal, Kind::kRetry, true, true, kBackendUnreachable},
      {StatusCode::kUnavailable, Kind::kRetry, true, false, kBackendUnreachable},
      {StatusCode::kDataLoss, Kind::kRetry, true, true, kBackendUnreachable},
      {StatusCode::kUnauthenticated, Kind::kRetry, true, false, kBackendUnauthorized},
  };
  for (const Row& row : rows) {
    const Outcome outcome = JudgeCall(Status(row.code, "why"), {});
    EXPECT_EQ(outcome.kind, row.kind) << row.code;
    EXPECT_EQ(outcome.back_off, row.back_off) << row.code;
    EXPECT_EQ(outcome.may_be_profile, row.may_be_profile) << row.code;
    EXPECT_EQ(outcome.reason, row.reason) << row.code;
  }
  const PushedProfile last_time = {.server_errors = kMaxServerErrors - 1};
  EXPECT_EQ(JudgeCall(Status(StatusCode::kUnknown, ""), last_time).kind, Kind::kDrop);
  EXPECT_EQ(JudgeCall(Status(StatusCode::kUnavailable, ""), last_time).kind, Kind::kRetry);
  const PushedProfile large = {.bytes = kLargeProfile + 1};
  EXPECT_EQ(JudgeCall(Status(StatusCode::kResourceExhausted, "rate"), large).kind, Kind::kSplit);
}

TEST(Outcome, NoAnswerIsTriedAgainForEver) {
  const Outcome outcome = JudgeAnswer(UnavailableError("refused"), {.server_errors = 1000});
  EXPECT_EQ(outcome.kind, Kind::kRetry);
  EXPECT_FALSE(outcome.may_be_profile);
}

TEST(Outcome, WhatMayBeTheProfilesFaultIsTriedAgainACappedNumberOfTimes) {
  EXPECT_EQ(JudgeAnswer(Answer(500), {kMaxServerErrors - 2}).kind, Kind::kRetry);
  EXPECT_EQ(JudgeAnswer(Answer(500), {kMaxServerErrors - 1}).kind, Kind::kDrop);
  for (const int status : {404, 429, 501, 502, 503, 504})
    EXPECT_EQ(JudgeAnswer(Answer(status), {1000}).kind, Kind::kRetry) << status;
}

// The texts are those of running servers.
TEST(Outcome, A400SaysWhatIsWrong) {
  EXPECT_EQ(JudgeAnswer(Answer(400, "profile with labels '{}' is outside of ingestion window"), {})
                .reason,
            reasons::kExpired);
  for (const char* text :
       {"uncompressed profile payload size exceeds limit of 4.2 MB",
        "the profile with labels '{}' exceeds the samples count limit (max 16000)"}) {
    EXPECT_EQ(JudgeAnswer(Answer(400, text), {}).kind, Kind::kSplit) << text;
  }
  EXPECT_EQ(JudgeAnswer(Answer(400, "invalid label name"), {}).reason, reasons::kBackendRefused);
}

TEST(Outcome, ALargeProfileThatIsRateLimitedIsSplit) {
  EXPECT_EQ(JudgeAnswer(Answer(429), {.bytes = kLargeProfile}).kind, Kind::kRetry);
  const Outcome outcome = JudgeAnswer(Answer(429), {.bytes = kLargeProfile + 1});
  EXPECT_EQ(outcome.kind, Kind::kSplit);
  EXPECT_TRUE(outcome.back_off);
}

TEST(Outcome, AWebPageIsNoDelivery) {
  HttpResponse page = Answer(200, "<html>");
  page.headers["content-type"] = "text/html; charset=utf-8";
  EXPECT_EQ(JudgeAnswer(page, {}).kind, Kind::kRetry);
}

TEST(Outcome, RetryAfterIsHonouredUpToABound) {
  const auto after = [](const std::string& text) {
    HttpResponse response = Answer(503);
    response.headers["retry-after"] = text;
    return JudgeAnswer(response, {}).retry_after;
  };
  EXPECT_EQ(after("7"), seconds(7));
  EXPECT_EQ(after("100000"), kMaxRetryAfter);
  for (const char* text : {"-1", "soon", "1.5", "Wed, 21 Oct 2015 07:28:00 GMT"})
    EXPECT_EQ(after(text), seconds(0)) << text;
}

TEST(Outcome, TheMessageHasStatusAndAnswer) {
  EXPECT_THAT(JudgeAnswer(Answer(400), {}).message, HasSubstr("400: {\"message\":\"why\"}"));
}

TEST(Outcome, TheMessageIsUtf8WhateverTheAnswerIs) {
  HttpResponse answer = Answer(503);
  answer.body = std::string(159, 'a') + "\u00e9";
  EXPECT_TRUE(IsUtf8(JudgeAnswer(answer, {}).message));
  answer.body = "caf\xe9";
  EXPECT_TRUE(IsUtf8(JudgeAnswer(answer, {}).message));
}

}  // namespace
}  // namespace flamefleet::agent
