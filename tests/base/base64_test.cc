// SPDX-License-Identifier: Apache-2.0
#include "base/base64.h"

#include <gtest/gtest.h>

namespace flamefleet {
namespace {

TEST(Base64, HasTheTestVectorsOfTheRfc) {
  const std::pair<const char*, const char*> rows[] = {{"", ""},
                                                      {"f", "Zg=="},
                                                      {"fo", "Zm8="},
                                                      {"foo", "Zm9v"},
                                                      {"foob", "Zm9vYg=="},
                                                      {"fooba", "Zm9vYmE="},
                                                      {"foobar", "Zm9vYmFy"}};
  for (const auto& [plain, text] : rows) {
    EXPECT_EQ(EncodeBase64(plain), text);
    EXPECT_EQ(*DecodeBase64(text), plain);
  }
  EXPECT_EQ(*DecodeBase64("Zm9v\nYmFy\n"), "foobar");
}

TEST(Base64, AnErrorDoesNotRepeatTheText) {
  for (const char* bad : {"secret!!", "Zg=", "Zm9vY", "\xff\xff\xff\xff"}) {
    const auto decoded = DecodeBase64(bad);
    ASSERT_EQ(decoded.status().code(), StatusCode::kInvalidArgument) << bad;
    EXPECT_EQ(ErrorMessage(decoded.status()), "not base64");
  }
}

}  // namespace
}  // namespace flamefleet
