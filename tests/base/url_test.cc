// SPDX-License-Identifier: Apache-2.0
#include "base/http/url.h"

#include <gtest/gtest.h>

namespace flamefleet {
namespace {

TEST(Url, DecodingReversesEncodingOfEveryByte) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte)
    all += static_cast<char>(byte);
  const std::string encoded = UrlEncode(all);
  EXPECT_EQ(encoded.find_first_of(" /?&=+#\"\n"), std::string::npos);
  EXPECT_EQ(*UrlDecode(encoded), all);
}

TEST(Url, ABrokenEscapeIsInvalid) {
  for (const char* text : {"%", "%4", "%4g", "a%-1"}) {
    EXPECT_EQ(UrlDecode(text).status().code(), StatusCode::kInvalidArgument) << text;
  }
}

TEST(Url, AnIpv6AddressIsBracketedInHostPortOnly) {
  EXPECT_EQ(JoinHostPort("fd00::1", 6060), "[fd00::1]:6060");
  EXPECT_EQ(JoinHostPort("10.0.0.1", 6060), "10.0.0.1:6060");
  EXPECT_EQ(ParseHostPort("[fd00::1]:6060")->host, "fd00::1");
  EXPECT_EQ(ParseHostPort("fd00::1:6060").status().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace flamefleet
