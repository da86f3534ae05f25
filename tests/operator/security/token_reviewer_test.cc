// SPDX-License-Identifier: Apache-2.0
// The reviewer with answers in the form of a kube-apiserver;
// tests/operator/channel_apiserver_test.cc has a real one.
#include "operator/security/token_reviewer.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/fd.h"
#include "tests/fakes/fake_clock.h"
#include "tests/operator/security/test_token.h"

namespace flamefleet::security {
namespace {

using nlohmann::json;

constexpr const char* kAgents = "system:serviceaccount:ns:flamefleet-agent";

class TokenReviewerTest : public testing::Test {
 protected:
  // A token for the operator that is good for another hour.
  std::string Token(const std::string& id = "", int64_t life_seconds = 3600) const {
    return TestToken(json{
        {"aud", {"flamefleet-operator"}},
        {"exp", clock_.WallNanos() / kNanosPerSecond + life_seconds},
        {"jti", id}}.dump());
  }
  static json Good() {
    return {{"authenticated", true},
            {"audiences", {"flamefleet-operator"}},
            {"user",
             {{"username", kAgents},
              {"extra",
               {{"authentication.kubernetes.io/node-name", {"n1"}},
                {"authentication.kubernetes.io/pod-name", {"agent-1"}},
                {"authentication.kubernetes.io/pod-uid", {"u1"}}}}}}};
  }
  Admission Check(const std::string& token) { return reviewer_.Check(token, {}); }
  std::string RefusalOf(const std::string& token) { return std::string(Check(token).refusal); }

  json answer_ = Good();
  Status failure_;
  int asked_ = 0;
  json last_asked_;
  FakeClock clock_;
  Metrics metrics_;
  TokenReviewer reviewer_{
      kAgents, clock_, metrics_,
      [this](const std::string& body, const std::stop_token&) -> Result<std::string> {
        ++asked_;
        last_asked_ = json::parse(body);
        FF_RETURN_IF_ERROR(failure_);
        return json{{"kind", "TokenReview"}, {"status", answer_}}.dump();
      },
      [](const std::string& pod, const std::string& uid) {
        return pod == "agent-1" && uid == "u1" ? std::string("n7") : std::string();
      }};
};

TEST_F(TokenReviewerTest, TheNodeIsThatOfThePodThatTheTokenIsBoundTo) {
  const std::string token = Token();
  const Admission admission = Check(token);
  ASSERT_TRUE(admission.status.ok()) << admission.status;
  EXPECT_EQ(admission.identity.node, "n1");
  EXPECT_EQ(admission.identity.pod, "agent-1");
  EXPECT_EQ(admission.identity.expires_at_ns, clock_.WallNanos() + 3600 * kNanosPerSecond);
  EXPECT_EQ(last_asked_["spec"]["token"], token);
  EXPECT_EQ(last_asked_["spec"]["audiences"], json({"flamefleet-operator"}));
}

TEST_F(TokenReviewerTest, AServerThatDoesNotSayTheNodeIsHelpedByThePod) {
  answer_["user"]["extra"].erase("authentication.kubernetes.io/node-name");
  EXPECT_EQ(Check(Token("a")).identity.node, "n7");
  answer_["user"]["extra"]["authentication.kubernetes.io/pod-uid"] = {"u2"};
  EXPECT_EQ(RefusalOf(Token("b")), "NoNode");
}

TEST_F(TokenReviewerTest, ATokenThatIsBoundToNoPodHasNoNode) {
  answer_["user"].erase("extra");
  EXPECT_EQ(RefusalOf(Token()), "NoNode");
  EXPECT_EQ(Check(Token()).status.code(), StatusCode::kPermissionDenied);
}

TEST_F(TokenReviewerTest, TheServerIsAskedOnceUntilShortlyBeforeTheTokenEnds) {
  const std::string token = Token();
  EXPECT_TRUE(Check(token).status.ok());
  clock_.Advance(3600 * kNanosPerSecond - TokenReviewer::kMarginNs - 1);
  EXPECT_TRUE(Check(token).status.ok());
  EXPECT_EQ(asked_, 1);
  clock_.Advance(1);
  answer_ = {{"authenticated", false}};
  EXPECT_EQ(RefusalOf(token), "TokenRefused");
  EXPECT_EQ(asked_, 2);
}

TEST_F(TokenReviewerTest, ARefusalIsRememberedBriefly) {
  answer_ = {{"authenticated", false}, {"error", "invalid bearer token"}};
  const std::string token = Token();
  EXPECT_EQ(ErrorMessage(Check(token).status),
            "the API server does not accept the token: invalid bearer token");
  EXPECT_EQ(RefusalOf(token), "TokenRefused");
  EXPECT_EQ(asked_, 1);
  answer_ = Good();
  clock_.Advance(TokenReviewer::kRefusedForNs);
  EXPECT_TRUE(Check(token).status.ok());
}

TEST_F(TokenReviewerTest, AnotherTokenIsAnotherQuestion) {
  EXPECT_TRUE(Check(Token("a")).status.ok());
  EXPECT_TRUE(Check(Token("b")).status.ok());
  EXPECT_EQ(asked_, 2);
}

TEST_F(TokenReviewerTest, AFailureIsNotRemembered) {
  failure_ = UnavailableError("connection refused");
  const Admission admission = Check(Token());
  EXPECT_EQ(admission.refusal, refusal::kReviewFailed);
  EXPECT_EQ(admission.status.code(), StatusCode::kUnavailable);
  failure_ = OkStatus();
  EXPECT_TRUE(Check(Token()).status.ok());
}

TEST_F(TokenReviewerTest, WhatIsHopelessIsNotSentToTheServer) {
  EXPECT_EQ(RefusalOf(""), "NoToken");
  EXPECT_EQ(RefusalOf("garbage"), "MalformedToken");
  EXPECT_EQ(RefusalOf(Token("", 0)), "TokenExpired");
  EXPECT_EQ(RefusalOf(TestToken(R"({"aud":["https://kubernetes.default.svc"],"exp":9000000000})")),
            "WrongAudience");
  EXPECT_EQ(asked_, 0);
}

TEST_F(TokenReviewerTest, OnlyTheAgentsAccountIsAnAgent) {
  answer_["user"]["username"] = "system:serviceaccount:other:flamefleet-agent";
  EXPECT_EQ(RefusalOf(Token()), "WrongAccount");
}

TEST_F(TokenReviewerTest, AServerThatDoesNotCheckAudiencesAcceptsNobody) {
  answer_.erase("audiences");
  EXPECT_EQ(RefusalOf(Token("a")), "TokenRefused");
  answer_["audiences"] = {"something-else"};
  EXPECT_EQ(RefusalOf(Token("b")), "TokenRefused");
}

TEST_F(TokenReviewerTest, AnAnswerOfAnotherFormIsNoAdmission) {
  int id = 0;
  for (const json& status :
       {json(), json("text"), json::array(), json{{"authenticated", "true"}},
        json{{"authenticated", true}, {"audiences", "flamefleet-operator"}},
        json{{"authenticated", true}, {"audiences", {"flamefleet-operator"}}, {"user", "root"}}}) {
    answer_ = status;
    EXPECT_FALSE(Check(Token(std::to_string(++id))).status.ok()) << status;
  }
}

TEST(Refusals, EachIsExplained) {
  const Result<std::string> text = ReadFile("docs/security.md", 1 << 20);
  ASSERT_TRUE(text.ok()) << text.status();
  for (const std::string_view reason : refusal::kAll)
    EXPECT_NE(text->find("\n| `" + std::string(reason) + "` | "), std::string::npos) << reason;
}

TEST_F(TokenReviewerTest, TheCacheIsBounded) {
  for (size_t i = 0; i < TokenReviewer::kMaxCached + 10; ++i)
    ASSERT_TRUE(Check(Token(std::to_string(i), 3600 + static_cast<int64_t>(i))).status.ok());
  const int before = asked_;
  // Those that end first went.
  EXPECT_TRUE(Check(Token("0", 3600)).status.ok());
  EXPECT_EQ(asked_, before + 1);
  EXPECT_TRUE(Check(Token("20000", 3600 + 20'000)).status.ok());
  EXPECT_EQ(asked_, before + 1);
}

}  // namespace
}  // namespace flamefleet::security
