// SPDX-License-Identifier: Apache-2.0
#include "agent/run/profile_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/fd.h"
#include "tests/base/pprof/test_profiles.h"
#include "tests/support/temp_dir.h"

namespace flamefleet::agent {
namespace {

FinishedProfile OfService(const std::string& service, const std::string& file) {
  return {.labels = {{"service_name", service}}, .pprof = pprof::ReadProfileFile(file)};
}

TEST(ProfileFiles, ANameHasNoSeparatorAndNoLeadingDotAndIsUsedOnce) {
  std::set<std::string> used;
  EXPECT_EQ(FileNameOf("python3.11", &used), "python3.11");
  EXPECT_EQ(FileNameOf("../../etc/passwd", &used), "_.._.._etc_passwd");
  EXPECT_EQ(FileNameOf("", &used), "_");
  EXPECT_EQ(FileNameOf("a b", &used), "a_b");
  EXPECT_EQ(FileNameOf("a/b", &used), "a_b-2");
  EXPECT_EQ(FileNameOf(std::string("a\0b", 3), &used), "a_b-3");
  EXPECT_LE(FileNameOf(std::string(5000, 'x'), &used).size(), 100U);
}

TEST(ProfileFiles, TheWindowsOfAServiceAreSummedIntoOneFile) {
  const TempDir directory;
  ProfileFiles files;
  for (int i = 0; i < 3; ++i)
    ASSERT_TRUE(files.Add(OfService("app", "hand_cpu1.pb.gz")).ok());
  ASSERT_TRUE(files.Add(OfService("other", "hand_cpu1.pb.gz")).ok());
  const auto written = files.Write(directory.path() + "/new/folder");
  ASSERT_TRUE(written.ok()) << written.status();
  ASSERT_EQ(written->size(), 2U);
  EXPECT_EQ(written->at(0).path, directory.path() + "/new/folder/app.pb.gz");
  const pprof::Profile once = pprof::DecodeOrDie(pprof::ReadProfileFile("hand_cpu1.pb.gz"));
  const auto sum = pprof::DecodeOrDie(*ReadFile(written->at(0).path, 1 << 20));
  EXPECT_EQ(pprof::TotalValue(sum, 0), 3 * pprof::TotalValue(once, 0));
}

TEST(ProfileFiles, AFolderThatCannotBeMadeIsNamed) {
  ProfileFiles files;
  const auto written = files.Write("/proc/nowhere");
  EXPECT_THAT(ErrorMessage(written.status()), ::testing::HasSubstr("/proc/nowhere"));
}

}  // namespace
}  // namespace flamefleet::agent
