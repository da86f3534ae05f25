// SPDX-License-Identifier: Apache-2.0
#include "base/flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace flamefleet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class FlagsTest : public ::testing::Test {
 protected:
  FlagsTest() {
    flags_.Text("listen", "ADDRESS", "where to listen", &listen_, "FF_TEST_LISTEN");
    flags_.TextList("pid", "PID", "process to profile", &pids_);
    flags_.Number("frequency", "HZ", "samples a second", 1, 999, &frequency_);
    flags_.Duration("duration", "how long", &duration_);
    flags_.Switch("verbose", "say more", &verbose_);
  }
  Status Parse(std::vector<const char*> arguments) {
    return flags_.Parse(static_cast<int>(arguments.size()), arguments.data());
  }

  Flags flags_{"program [flags]", "Does things."};
  std::string listen_ = ":4040";
  std::vector<std::string> pids_;
  int64_t frequency_ = 19;
  std::chrono::nanoseconds duration_ = std::chrono::minutes(90);
  bool verbose_ = false;
};

TEST_F(FlagsTest, AValueMayFollowOrBeJoinedByAnEqualsSign) {
  ASSERT_TRUE(Parse({"--listen", "a=b", "--frequency=97", "--duration=20s", "--verbose"}).ok());
  EXPECT_EQ(listen_, "a=b");
  EXPECT_EQ(frequency_, 97);
  EXPECT_EQ(duration_, std::chrono::seconds(20));
  EXPECT_TRUE(verbose_);
}

TEST_F(FlagsTest, AListKeepsEveryValueInOrder) {
  ASSERT_TRUE(Parse({"--pid", "2", "--pid=1"}).ok());
  EXPECT_THAT(pids_, ElementsAre("2", "1"));
}

TEST_F(FlagsTest, AWrongValueNamesTheFlagAndWhatIsAllowed) {
  for (const char* value : {"0", "1000", "9x", "", "-5"}) {
    const std::string argument = std::string("--frequency=") + value;
    const Status status = Parse({argument.c_str()});
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << value;
    EXPECT_THAT(ErrorMessage(status), HasSubstr("--frequency"));
    EXPECT_THAT(ErrorMessage(status), HasSubstr("1 to 999"));
  }
}

TEST_F(FlagsTest, WhatIsNotAFlagIsRefused) {
  EXPECT_EQ(Parse({"--nosuch=1"}).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(Parse({"word"}).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(Parse({"--listen"}).code(), StatusCode::kInvalidArgument);
}

TEST_F(FlagsTest, AShortNameIsTheSameFlag) {
  flags_.Short('l', "listen");
  ASSERT_TRUE(Parse({"-l", "here"}).ok());
  EXPECT_EQ(listen_, "here");
  EXPECT_EQ(Parse({"-x", "1"}).code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(flags_.Help(), HasSubstr("--listen, -l ADDRESS"));
}

TEST_F(FlagsTest, ArgumentsAreTakenWhereTheyAreWanted) {
  std::vector<std::string> words;
  flags_.Arguments(&words);
  ASSERT_TRUE(Parse({"a", "--listen", "b", "-"}).ok());
  EXPECT_THAT(words, ElementsAre("a", "-"));
}

TEST_F(FlagsTest, TheCommandLineWinsOverTheEnvironmentAndThatOverTheDefault) {
  setenv("FF_TEST_LISTEN", "from-environment", 1);
  ASSERT_TRUE(Parse({}).ok());
  EXPECT_EQ(listen_, "from-environment");
  ASSERT_TRUE(Parse({"--listen=from-flag"}).ok());
  EXPECT_EQ(listen_, "from-flag");
  unsetenv("FF_TEST_LISTEN");
}

TEST_F(FlagsTest, HelpShowsDefaultsAndVariables) {
  ASSERT_TRUE(Parse({"--help"}).ok());
  EXPECT_TRUE(flags_.help_wanted());
  EXPECT_THAT(flags_.Help(), HasSubstr("(default :4040) [$FF_TEST_LISTEN]"));
  EXPECT_THAT(flags_.Help(), HasSubstr("(default 1h30m)"));
}

}  // namespace
}  // namespace flamefleet
