// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/token_source.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/fakes/fake_clock.h"

namespace flamefleet {
namespace {

class TokenFile : public testing::Test {
 protected:
  void Write(const std::string& token) { std::ofstream(path_) << token; }
  void TearDown() override { std::filesystem::remove(path_); }

  const std::string path_ = testing::TempDir() + "/token_source_test.token";
  FakeClock clock_;
};

TEST_F(TokenFile, IsReadAgainOnlyAfterTheInterval) {
  Write("first\n");
  TokenSource source("", path_, clock_);
  EXPECT_EQ(*source.Token(), "first");
  Write("second");
  EXPECT_EQ(*source.Token(), "first");
  clock_.Advance(std::chrono::nanoseconds(TokenSource::kTokenReadInterval).count());
  EXPECT_EQ(*source.Token(), "second");
}

TEST_F(TokenFile, IsReadAtOnceAfterARefusal) {
  Write("first");
  TokenSource source("", path_, clock_);
  ASSERT_TRUE(source.Token().ok());
  Write("second");
  source.Refused();
  EXPECT_EQ(*source.Token(), "second");
}

TEST_F(TokenFile, ThatCannotBeReadKeepsTheTokenWeHave) {
  Write("first");
  TokenSource source("", path_, clock_);
  ASSERT_TRUE(source.Token().ok());
  std::filesystem::remove(path_);
  source.Refused();
  EXPECT_EQ(*source.Token(), "first");
}

TEST_F(TokenFile, ThatWasNeverThereIsAnErrorThatNamesIt) {
  TokenSource source("", path_, clock_);
  const Status status = source.Token().status();
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_NE(ErrorMessage(status).find(path_), std::string::npos) << status;
}

TEST(TokenSource, WithoutATokenIsEmpty) {
  FakeClock clock;
  EXPECT_EQ(*TokenSource("", "", clock).Token(), "");
  EXPECT_EQ(*TokenSource("fixed", "", clock).Token(), "fixed");
}

}  // namespace
}  // namespace flamefleet
