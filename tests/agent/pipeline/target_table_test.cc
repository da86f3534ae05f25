// SPDX-License-Identifier: Apache-2.0
#include "agent/pipeline/target_table.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace flamefleet::agent {
namespace {

const std::string kA(64, 'a');
const std::string kB(64, 'b');
const std::string kPodUid = "6f2c6e1c-3a3b-4a5e-9d0e-8a4c1b2d3e4f";
const std::string kPod = "/kubepods/pod" + kPodUid + "/";

CpuTarget Target(const std::string& id, const std::string& service) {
  return {.container_id = id,
          .collection = {.pod_uid = "uid", .container = service},
          .labels = {{"service_name", service}}};
}

bool Add(TargetTable& table, uint64_t cgroup, const std::string& path) {
  std::optional<uint64_t> forgotten;
  return table.Add(cgroup, path, &forgotten);
}

TEST(TargetTable, WantsTheCgroupsOfItsTargets) {
  TargetTable table(10);
  EXPECT_TRUE(table.Replace({Target(kA, "a")}).empty());
  EXPECT_TRUE(Add(table, 1, kPod + kA));
  EXPECT_TRUE(Add(table, 2, kPod + kA + "/init.scope"));
  EXPECT_FALSE(Add(table, 3, kPod + kB));
  EXPECT_FALSE(Add(table, 4, "/system.slice/sshd.service"));
  EXPECT_EQ(table.Find(2)->collection.container, "a");
  EXPECT_FALSE(table.Find(3));
  EXPECT_FALSE(table.Find(99));
}

TEST(TargetTable, TellsWhoseVerdictChanges) {
  TargetTable table(10);
  Add(table, 1, kPod + kA);
  Add(table, 2, kPod + kB);
  auto changes = table.Replace({Target(kA, "a")});
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_EQ(changes[0].cgroup_id, 1u);
  EXPECT_TRUE(changes[0].wanted);
  EXPECT_TRUE(table.Replace({Target(kA, "renamed")}).empty());
  EXPECT_EQ(table.Find(1)->collection.container, "renamed");
  changes = table.Replace({Target(kB, "b")});
  ASSERT_EQ(changes.size(), 2u);
  std::ranges::sort(changes, {}, &TargetTable::Verdict::cgroup_id);
  EXPECT_FALSE(changes[0].wanted);
  EXPECT_TRUE(changes[1].wanted);
  EXPECT_FALSE(table.Find(1));
}

TEST(TargetTable, KeepsTheObjectOfATargetThatDidNotChange) {
  TargetTable table(10);
  table.Replace({Target(kA, "a")});
  Add(table, 1, kPod + kA);
  const auto before = table.Find(1);
  table.Replace({Target(kA, "a"), Target(kB, "b")});
  EXPECT_EQ(table.Find(1), before);
}

TEST(TargetTable, InnerContainerThatNobodyKnowsBelongsToTheOuterOne) {
  TargetTable table(10);
  table.Replace({Target(kA, "outer")});
  const std::string nested = kPod + kA + "/kubepods/pod00000000-0000-0000-0000-000000000000/" + kB;
  EXPECT_TRUE(Add(table, 1, nested));
  EXPECT_EQ(table.Find(1)->collection.container, "outer");
}

TEST(TargetTable, OuterContainerWinsOverAForgedInnerOne) {
  TargetTable table(10);
  table.Replace({Target(kA, "attacker"), Target(kB, "victim")});
  const std::string forged = kPod + kA + "/kubepods/pod00000000-0000-0000-0000-000000000000/" + kB;
  EXPECT_TRUE(Add(table, 1, forged));
  EXPECT_EQ(table.Find(1)->collection.container, "attacker");
}

CpuTarget TargetOfPod(const std::string& id) {
  CpuTarget target = Target(id, "a");
  target.collection.pod_uid = kPodUid;
  return target;
}

TEST(TargetTable, HoldsAnUnknownContainerOfAKnownPod) {
  TargetTable table(10);
  table.Replace({TargetOfPod("")});
  EXPECT_TRUE(Add(table, 1, kPod + kA));
  EXPECT_TRUE(table.IsHeld(1));
  EXPECT_FALSE(table.Find(1));
  EXPECT_TRUE(table.Replace({TargetOfPod(kA)}).empty());  // it is recorded already
  EXPECT_FALSE(table.IsHeld(1));
  EXPECT_EQ(table.Find(1)->collection.container, "a");
  EXPECT_TRUE(table.EndWindow().empty());
}

TEST(TargetTable, HoldsAContainerThatWasMetBeforeItsPodWasKnown) {
  TargetTable table(10);
  EXPECT_FALSE(Add(table, 1, kPod + kA));
  const auto changes = table.Replace({TargetOfPod("")});
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_TRUE(changes[0].wanted);
  EXPECT_TRUE(table.IsHeld(1));
  table.EndWindow();
  table.EndWindow();
  EXPECT_FALSE(table.IsHeld(1));
  EXPECT_TRUE(table.Replace({TargetOfPod("")}).empty());
  EXPECT_FALSE(table.IsHeld(1));
}

TEST(TargetTable, HoldsForTwoWindowsOnly) {
  TargetTable table(10);
  table.Replace({TargetOfPod("")});
  Add(table, 1, kPod + kA);
  EXPECT_TRUE(table.EndWindow().empty());
  EXPECT_TRUE(table.IsHeld(1));
  const auto changes = table.EndWindow();
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_EQ(changes[0].cgroup_id, 1u);
  EXPECT_FALSE(changes[0].wanted);
  EXPECT_FALSE(table.IsHeld(1));
  EXPECT_EQ(table.Replace({TargetOfPod(kA)}).size(), 1u);  // late, but found
}

TEST(TargetTable, HoldsNothingOfAnotherPodOrOfThePodItself) {
  TargetTable table(10);
  table.Replace({TargetOfPod("")});
  EXPECT_FALSE(Add(table, 1, "/kubepods/pod00000000-0000-0000-0000-000000000000/" + kA));
  EXPECT_FALSE(Add(table, 2, "/kubepods/pod" + kPodUid));
  Add(table, 3, kPod + kA);
  const auto changes = table.Replace({});  // the pod has gone
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_EQ(changes[0].cgroup_id, 3u);
}

TEST(TargetTable, ForgetsTheOldestCgroupWhenFull) {
  TargetTable table(2);
  std::optional<uint64_t> forgotten;
  table.Add(1, kPod + kA, &forgotten);
  table.Add(2, kPod + kA, &forgotten);
  table.Add(2, kPod + kA, &forgotten);
  EXPECT_FALSE(forgotten);
  table.Add(3, kPod + kA, &forgotten);
  EXPECT_EQ(forgotten, 1u);
  EXPECT_EQ(table.Replace({Target(kA, "a")}).size(), 2u);
}

TEST(TargetTable, WantsTheHostOnlyWhereItIsAskedFor) {
  TargetTable table(10);
  EXPECT_FALSE(Add(table, 1, "/system.slice/kubelet.service"));
  EXPECT_FALSE(Add(table, 2, "/"));
  EXPECT_FALSE(Add(table, 3, kPod + kA));
  EXPECT_EQ(table.FindHostService(1), nullptr);
  EXPECT_EQ(table.Replace({Target(kB, "b")}, /*host_wanted=*/true).size(), 2U);
  EXPECT_EQ(*table.FindHostService(1), "kubelet.service");
  EXPECT_EQ(*table.FindHostService(2), "");
  EXPECT_EQ(table.FindHostService(3), nullptr);
  EXPECT_TRUE(Add(table, 4, "/user.slice/user-0.slice/session-1.scope"));
  EXPECT_FALSE(Add(table, 5, kPod + kA + "/kubelet.service"));
  EXPECT_EQ(table.Replace({Target(kB, "b")}, /*host_wanted=*/false).size(), 3U);
  EXPECT_EQ(table.FindHostService(1), nullptr);
}

}  // namespace
}  // namespace flamefleet::agent
