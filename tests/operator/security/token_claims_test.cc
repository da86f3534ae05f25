// SPDX-License-Identifier: Apache-2.0
#include "operator/security/token_claims.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "tests/operator/security/test_token.h"

namespace flamefleet::security {
namespace {

using testing::ElementsAre;

TEST(TokenClaims, AreThoseOfTheMiddlePart) {
  const Result<TokenClaims> claims =
      ReadTokenClaims(TestToken(R"({"aud":["a","b"],"exp":1700000000})"));
  ASSERT_TRUE(claims.ok()) << claims.status();
  EXPECT_THAT(claims->audiences, ElementsAre("a", "b"));
  EXPECT_EQ(claims->expires_at_ns, 1'700'000'000 * kNanosPerSecond);
}

TEST(TokenClaims, OneAudienceMayBeAText) {
  EXPECT_THAT(ReadTokenClaims(TestToken(R"({"aud":"a","exp":1})"))->audiences, ElementsAre("a"));
}

TEST(TokenClaims, EveryLengthOfPaddingIsRead) {
  for (const char* audience : {"", "x", "xy", "xyz", "\\u00e9~?"}) {
    EXPECT_TRUE(
        ReadTokenClaims(TestToken(R"({"exp":1,"aud":")" + std::string(audience) + "\"}")).ok());
  }
}

TEST(TokenClaims, WhatIsNoTokenIsAnError) {
  const std::vector<std::string> bad = {
      "",
      "a",
      "a.b",
      "a.b.c.d",
      "a.!!!!.c",
      "..",
      TestToken("[]"),
      TestToken("{"),
      TestToken("{}"),
      TestToken(R"({"exp":"soon"})"),
      TestToken(R"({"exp":-1})"),
      TestToken(R"({"exp":1e300})"),
      TestToken(R"({"exp":99999999999999})"),
      TestToken(std::string(10'000, '[')),
      std::string(kMaxTokenBytes + 1, 'a'),
  };
  for (const std::string& token : bad)
    EXPECT_EQ(ReadTokenClaims(token).status().code(), StatusCode::kInvalidArgument) << token;
}

}  // namespace
}  // namespace flamefleet::security
