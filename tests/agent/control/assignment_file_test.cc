// SPDX-License-Identifier: Apache-2.0
#include "agent/control/assignment_file.h"

#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "base/fd.h"
#include "tests/support/temp_dir.h"

namespace flamefleet::agent {
namespace {

using fleet::v1alpha1::Snapshot;

class AssignmentFileTest : public testing::Test {
 protected:
  static Snapshot Some(const std::string& uid) {
    Snapshot snapshot;
    snapshot.set_version(3);
    snapshot.mutable_config()->set_sampling_frequency_hz(19);
    snapshot.add_pods()->set_uid(uid);
    return snapshot;
  }

  TempDir dir_;
  const AssignmentFile file_{dir_.path(), "n1"};
};

TEST_F(AssignmentFileTest, GivesBackWhatWasSavedLast) {
  ASSERT_TRUE(file_.Save(Some("a")).ok());
  ASSERT_TRUE(file_.Save(Some("b")).ok());
  const Result<Snapshot> loaded = AssignmentFile(dir_.path(), "n1").Load();
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(*loaded, Some("b")));
}

TEST_F(AssignmentFileTest, NobodyElseMayReadIt) {
  ASSERT_TRUE(file_.Save(Some("a")).ok());
  struct stat status = {};
  ASSERT_EQ(::stat(file_.path().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600U);
}

TEST_F(AssignmentFileTest, IsThatOfOneNode) {
  ASSERT_TRUE(file_.Save(Some("a")).ok());
  EXPECT_EQ(AssignmentFile(dir_.path(), "n2").Load().status().code(), StatusCode::kNotFound);
}

TEST_F(AssignmentFileTest, IsGoneWhenThereIsNothingToDo) {
  ASSERT_TRUE(file_.Save(Some("a")).ok());
  Snapshot nothing;
  nothing.set_version(4);
  nothing.mutable_config()->add_backends()->set_endpoint("http://user:password@host");
  ASSERT_TRUE(file_.Save(nothing).ok());
  EXPECT_TRUE(std::filesystem::is_empty(dir_.path()));
  EXPECT_TRUE(file_.Save(nothing).ok());
}

TEST_F(AssignmentFileTest, WhatIsNotAWholeAssignmentIsNoWork) {
  for (const std::string& bytes : {std::string(), std::string(100, '\0'), std::string("garbage")}) {
    ASSERT_TRUE(WriteFileAtomically(file_.path(), bytes, 0600).ok());
    EXPECT_EQ(file_.Load().status().code(), StatusCode::kDataLoss);
  }
}

}  // namespace
}  // namespace flamefleet::agent
