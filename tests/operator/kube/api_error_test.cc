// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/api_error.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace flamefleet {
namespace {

StatusCode CodeOf(int http_status, const std::string& reason = "") {
  const nlohmann::json body = {{"kind", "Status"}, {"reason", reason}, {"message", "m"}};
  return DecodeApiError(http_status, "", body.dump()).ToStatus("get x").code();
}

TEST(ApiError, TheCodeSaysWhetherARetryHelps) {
  EXPECT_EQ(CodeOf(400), StatusCode::kInvalidArgument);
  EXPECT_EQ(CodeOf(401), StatusCode::kUnavailable);
  EXPECT_EQ(CodeOf(403), StatusCode::kPermissionDenied);
  EXPECT_EQ(CodeOf(404), StatusCode::kNotFound);
  EXPECT_EQ(CodeOf(409, "AlreadyExists"), StatusCode::kAlreadyExists);
  EXPECT_EQ(CodeOf(409, "Conflict"), StatusCode::kAborted);
  EXPECT_EQ(CodeOf(410), StatusCode::kAborted);
  EXPECT_EQ(CodeOf(422), StatusCode::kInvalidArgument);
  EXPECT_EQ(CodeOf(429), StatusCode::kResourceExhausted);
  EXPECT_EQ(CodeOf(500), StatusCode::kUnavailable);
  EXPECT_EQ(CodeOf(503), StatusCode::kUnavailable);
  EXPECT_EQ(CodeOf(504), StatusCode::kDeadlineExceeded);
}

TEST(ApiError, CausesNameTheField) {
  const ApiError error = DecodeApiError(422, "", R"({
    "kind": "Status", "code": 422, "reason": "Invalid", "message": "AgentPool \"x\" is invalid",
    "details": {"causes": [{"reason": "FieldValueInvalid", "message": "should be at most 999",
                            "field": "spec.sampling.frequency"}]}})");
  EXPECT_EQ(error.reason, "Invalid");
  ASSERT_EQ(error.causes.size(), 1U);
  EXPECT_EQ(error.causes[0].field, "spec.sampling.frequency");
  EXPECT_EQ(ErrorMessage(error.ToStatus("apply AgentPool x")),
            "apply AgentPool x: AgentPool \"x\" is invalid");
}

TEST(ApiError, TheHeaderOrElseTheBodySaysWhenToRetry) {
  const char* body = R"({"kind":"Status","details":{"retryAfterSeconds":7}})";
  EXPECT_EQ(DecodeApiError(429, "3", body).retry_after, std::chrono::seconds(3));
  EXPECT_EQ(DecodeApiError(429, "", body).retry_after, std::chrono::seconds(7));
  EXPECT_EQ(DecodeApiError(429, "soon", "").retry_after, std::nullopt);
  EXPECT_EQ(DecodeApiError(429, "-1", "").retry_after, std::nullopt);
}

TEST(ApiError, NoServerMakesUsWaitForHours) {
  EXPECT_EQ(DecodeApiError(429, "86400", "").retry_after, ApiError::kMaxRetryAfter);
  const char* body = R"({"kind":"Status","details":{"retryAfterSeconds":9223372036854775807}})";
  EXPECT_EQ(DecodeApiError(429, "", body).retry_after, ApiError::kMaxRetryAfter);
}

TEST(ApiError, ExpiredIsToldByCodeOrReason) {
  EXPECT_TRUE(DecodeApiError(410, "", "").IsExpired());
  const nlohmann::json gone = {{"code", 410}};
  const nlohmann::json expired = {{"reason", "Expired"}};
  EXPECT_TRUE(DecodeApiError({&gone, {}}).IsExpired());
  EXPECT_TRUE(DecodeApiError({&expired, {}}).IsExpired());
  EXPECT_FALSE(DecodeApiError(500, "", "").IsExpired());
}

TEST(ApiError, AnAnswerThatIsNoStatusIsQuotedButNeverAllOfIt) {
  const ApiError error = DecodeApiError(502, "", std::string(10'000, 'x'));
  EXPECT_EQ(error.http_status, 502);
  EXPECT_TRUE(error.message.starts_with("HTTP 502 \"xxx")) << error.message;
  EXPECT_LT(error.message.size(), 300U);
}

TEST(ApiError, AStatusWithFieldsOfWrongTypesIsStillAnError) {
  const char* body = R"({"kind":"Status","reason":5,"message":[],"details":{"causes":[1,{}],
                         "retryAfterSeconds":"x"}})";
  EXPECT_EQ(DecodeApiError(500, "", body).ToStatus("get x").code(), StatusCode::kUnavailable);
  const nlohmann::json text = "text";
  EXPECT_EQ(DecodeApiError({&text, {}}).http_status, 0);
}

}  // namespace
}  // namespace flamefleet
