// SPDX-License-Identifier: Apache-2.0
#include "agent/spool/spool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/sqlite.h"
#include "tests/support/temp_dir.h"

namespace flamefleet::agent {
namespace {

using ::testing::ElementsAre;

SpooledProfile Named(const std::string& body, const std::string& backend = "a",
                     int64_t time_ns = 100) {
  return {.collection = {"uid", "app", ProfileType::kMemory},
          .backend = backend,
          .time_ns = time_ns,
          .raw_bytes = 7,
          .body = body};
}

class SpoolTest : public ::testing::Test {
 protected:
  SpoolTest() { Reopen(); }
  void Reopen() {
    spool_.reset();
    auto opened = Spool::Open(options_, &damaged_);
    ASSERT_TRUE(opened.ok()) << opened.status();
    spool_ = *std::move(opened);
  }
  std::vector<std::string> Append(std::vector<SpooledProfile> profiles) {
    auto gone = spool_->Append(profiles);
    EXPECT_TRUE(gone.ok()) << gone.status();
    std::vector<std::string> backends;
    for (const SpooledProfile& profile : *gone)
      backends.push_back(profile.backend + "/" + std::to_string(profile.time_ns));
    return backends;
  }
  std::string TakeOldest(const std::string& backend = "a") {
    const Result<bool> taken = spool_->TakeOldest(backend, &taken_);
    EXPECT_TRUE(taken.ok()) << taken.status();
    return *taken ? taken_.body : "";
  }
  std::string TakeNewest(int64_t since_ns = 0) {
    SpooledProfile newest;
    const Result<bool> taken = spool_->TakeNewest("a", since_ns, &newest);
    return *taken ? newest.body : "";
  }

  TempDir dir_;
  SpoolOptions options_{.directory = dir_.path() + "/n1", .max_bytes = 4 << 20};
  bool damaged_ = false;
  std::unique_ptr<Spool> spool_;
  SpooledProfile taken_;
};

TEST_F(SpoolTest, WhatWaitsIsThereAfterAnotherOpen) {
  Append({Named("1"), Named("2", "b")});
  Reopen();
  EXPECT_FALSE(damaged_);
  EXPECT_EQ(spool_->Profiles(), 2);
  EXPECT_THAT(spool_->Backends(), ElementsAre("a", "b"));
  ASSERT_EQ(TakeOldest("a"), "1");
  EXPECT_EQ(taken_.collection, (CollectionKey{"uid", "app", ProfileType::kMemory}));
  EXPECT_EQ(taken_.time_ns, 100);
  EXPECT_EQ(taken_.raw_bytes, 7);
  EXPECT_EQ(taken_.spread_ns, 1 << 20);
}

TEST_F(SpoolTest, WhatWasTakenIsNotTakenTwiceAndComesBackWhenReleased) {
  Append({Named("1"), Named("2")});
  EXPECT_EQ(TakeOldest(), "1");
  EXPECT_EQ(TakeOldest(), "2");
  EXPECT_EQ(TakeOldest(), "");
  taken_.errors = 1;
  ASSERT_TRUE(spool_->Release(taken_).ok());
  Append({Named("3")});
  EXPECT_EQ(TakeOldest(), "3");  // one with errors comes after the others
  EXPECT_EQ(TakeOldest(), "2");
  EXPECT_EQ(taken_.errors, 1);
  ASSERT_TRUE(spool_->Remove(taken_).ok());
  Reopen();  // what was only taken is there again
  EXPECT_EQ(spool_->Profiles(), 2);
}

TEST_F(SpoolTest, TheNewestIsTakenUnlessItIsTooOld) {
  Append({Named("1", "a", 10), Named("2", "a", 20)});
  EXPECT_EQ(TakeNewest(21), "");
  EXPECT_EQ(TakeNewest(15), "2");
  EXPECT_EQ(TakeNewest(15), "");
  EXPECT_EQ(TakeNewest(5), "1");
}

TEST_F(SpoolTest, TheOldestOfAllBackendsMakeRoom) {
  const std::string large(100'000, 'x');
  size_t gone = 0;
  for (int64_t i = 0; i < 100; ++i)
    gone += Append({Named(large, i % 2 == 0 ? "a" : "b", i)}).size();
  EXPECT_GT(gone, 55U);
  EXPECT_EQ(spool_->Profiles() + static_cast<int64_t>(gone), 100);
  EXPECT_LE(std::filesystem::file_size(options_.directory + "/" + Spool::kFileName),
            static_cast<uintmax_t>(options_.max_bytes));
  TakeOldest("a");
  EXPECT_EQ(taken_.time_ns, static_cast<int64_t>(gone + gone % 2));
}

TEST_F(SpoolTest, WhatIsBeingSentIsNotEvicted) {
  const std::string large(100'000, 'x');
  Append({Named(large, "a", 1)});
  TakeOldest();
  for (int64_t i = 2; i < 100; ++i)
    EXPECT_THAT(Append({Named(large, "a", i)}), ::testing::Not(::testing::Contains("a/1")));
  EXPECT_TRUE(spool_->Remove(taken_).ok());
}

TEST_F(SpoolTest, AProfileThatIsTooLargeByItselfIsRefused) {
  EXPECT_THAT(Append({Named(std::string(2 << 20, 'x'), "a", 1), Named("2", "a", 2)}),
              ElementsAre("a/1"));
  EXPECT_EQ(spool_->Profiles(), 1);
}

TEST_F(SpoolTest, PartsTakeThePlaceOfTheWhole) {
  Append({Named("whole")});
  TakeOldest();
  std::vector<SpooledProfile> parts = {Named("left"), Named("right")};
  ASSERT_TRUE(spool_->Replace(taken_, parts).ok());
  Reopen();
  EXPECT_EQ(TakeOldest(), "left");
  EXPECT_EQ(TakeOldest(), "right");
  EXPECT_EQ(spool_->Bytes(), 9);
}

TEST_F(SpoolTest, WhatIsTooOldGoes) {
  Append({Named("1", "a", 10), Named("2", "b", 10), Named("3", "a", 30)});
  EXPECT_EQ(spool_->BacklogOf("a").oldest_ns, 10);
  const auto old = spool_->RemoveOlder("a", 20, 10);
  ASSERT_EQ(old->size(), 1U);
  EXPECT_EQ((*old)[0].time_ns, 10);
  EXPECT_EQ(spool_->BacklogOf("a").oldest_ns, 30);
  EXPECT_EQ(spool_->BacklogOf("b").profiles, 1);
}

TEST_F(SpoolTest, PartsOfAnOldProfileHideNoFreshOneAndGoWithTheOld) {
  Append({Named("fresh", "a", 30), Named("old", "a", 10)});
  ASSERT_EQ(TakeNewest(30), "fresh");  // though "old" came last
  taken_ = {};
  Append({Named("young", "a", 40), Named("older", "a", 5)});
  const auto old = spool_->RemoveOlder("a", 20, 10);
  ASSERT_EQ(old->size(), 2U);
  EXPECT_EQ((*old)[0].time_ns, 5);
  EXPECT_EQ(spool_->BacklogOf("a").oldest_ns, 30);
}

TEST_F(SpoolTest, WhatCannotBeDeletedIsRemovedAllTheSameAndDeletedLater) {
  Append({Named("1"), Named("2")});
  ASSERT_EQ(TakeOldest(), "1");
  auto other = SqliteConnection::Open(options_.directory + "/" + Spool::kFileName,
                                      SqliteConnection::Mode::kReadWriteCreate);
  ASSERT_TRUE(other.ok());
  ASSERT_TRUE(other
                  ->Execute("CREATE TRIGGER full BEFORE DELETE ON profile BEGIN "
                            "SELECT RAISE(FAIL, 'disk full'); END")
                  .ok());
  EXPECT_FALSE(spool_->Remove(taken_).ok());
  EXPECT_EQ(spool_->Profiles(), 1);
  EXPECT_EQ(spool_->Bytes(), 1);
  EXPECT_EQ(TakeOldest(), "2");
  EXPECT_EQ(TakeOldest(), "");
  ASSERT_TRUE(other->Execute("DROP TRIGGER full").ok());
  Append({Named("3")});
  EXPECT_EQ(*other->QueryInt("SELECT count(*) FROM profile"), 2);
  EXPECT_EQ(spool_->Profiles(), 2);
}

TEST_F(SpoolTest, ASpoolThatCouldNotBeginAnewIsMadeByALaterAppend) {
  Append({Named("1"), Named("2")});
  TakeOldest();
  const std::string folder = options_.directory;
  std::filesystem::rename(folder, folder + ".away");
  int64_t lost = 0;
  EXPECT_FALSE(spool_->StartOver(&lost).ok());
  EXPECT_EQ(lost, 1);
  std::vector<SpooledProfile> profiles = {Named("3")};
  EXPECT_FALSE(spool_->Append(profiles).ok());
  std::filesystem::create_directory(folder);
  Append(profiles);
  EXPECT_EQ(TakeOldest(), "3");
}

TEST_F(SpoolTest, ASecondOpenWaitsItsTurn) {
  const auto second = Spool::Open(options_);
  EXPECT_EQ(second.status().code(), StatusCode::kAlreadyExists);
  EXPECT_THAT(ErrorMessage(second.status()), ::testing::HasSubstr("another agent"));
}

TEST_F(SpoolTest, ADamagedFileIsBegunAnew) {
  Append({Named("1")});
  spool_.reset();
  std::ofstream(options_.directory + "/" + Spool::kFileName) << std::string(8192, 'x');
  Reopen();
  EXPECT_TRUE(damaged_);
  EXPECT_EQ(spool_->Profiles(), 0);
  Append({Named("2")});
  EXPECT_EQ(TakeOldest(), "2");
}

// What a power cut leaves: the log ends in the middle of a transaction.
TEST_F(SpoolTest, ATornLogLosesItsLastTransactionAndNothingElse) {
  Append({Named(std::string(5000, '1'))});
  Append({Named(std::string(5000, '2'))});
  const std::string file = options_.directory + "/" + Spool::kFileName;
  const std::string torn = dir_.path() + "/torn";
  std::filesystem::create_directory(torn);
  const auto log = std::filesystem::file_size(file + "-wal");
  for (uintmax_t cut = 1; cut < log; cut += log / 40) {
    for (const char* suffix : {"", "-wal"}) {
      std::filesystem::copy_file(file + suffix, torn + "/" + Spool::kFileName + suffix,
                                 std::filesystem::copy_options::overwrite_existing);
    }
    std::filesystem::resize_file(torn + "/" + Spool::kFileName + "-wal", log - cut);
    const auto spool = Spool::Open({.directory = torn, .max_bytes = 4 << 20});
    ASSERT_TRUE(spool.ok()) << spool.status();
    std::string bodies;
    for (SpooledProfile profile;;) {
      const Result<bool> taken = (*spool)->TakeOldest("a", &profile);
      ASSERT_TRUE(taken.ok()) << taken.status();
      if (!*taken) break;
      ASSERT_EQ(profile.body, std::string(5000, profile.body[0]));
      bodies += profile.body[0];
    }
    EXPECT_TRUE(bodies == "" || bodies == "1" || bodies == "12") << bodies << " cut " << cut;
  }
}

TEST_F(SpoolTest, ABeginningAnewForgetsWhatWasTakenAndUsesNoIdTwice) {
  Append({Named("1")});
  TakeOldest();
  const SpooledProfile before = taken_;
  int64_t lost = 0;
  ASSERT_TRUE(spool_->StartOver(&lost).ok());
  EXPECT_EQ(lost, 0);  // it is on its way
  EXPECT_EQ(spool_->Release(before).code(), StatusCode::kNotFound);
  Append({Named("2")});
  ASSERT_EQ(TakeOldest(), "2");
  EXPECT_GT(taken_.id, before.id);
  EXPECT_TRUE(spool_->Remove(before).ok());
  EXPECT_EQ(spool_->Profiles(), 1);
}

TEST(SpoolInMemory, KeepsToItsBoundToo) {
  auto spool = Spool::Open({.max_bytes = 1 << 20});
  ASSERT_TRUE(spool.ok());
  EXPECT_FALSE((*spool)->survives());
  size_t gone = 0;
  for (int i = 0; i < 100; ++i) {
    std::vector<SpooledProfile> one = {Named(std::string(50'000, 'x'))};
    gone += (*spool)->Append(one)->size();
  }
  EXPECT_GT(gone, 70U);
}

}  // namespace
}  // namespace flamefleet::agent
