// SPDX-License-Identifier: Apache-2.0
#include "operator/cache/pod_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace flamefleet {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::IsEmpty;

json PodJson(const std::string& ns, const std::string& name, const std::string& node,
             const std::string& version = "1") {
  return {{"metadata", {{"namespace", ns}, {"name", name}, {"resourceVersion", version}}},
          {"spec", {{"nodeName", node}}}};
}

// Its spec.nodeName has the wrong type.
json Unreadable(const std::string& ns, const std::string& name) {
  return {{"metadata", {{"namespace", ns}, {"name", name}}}, {"spec", {{"nodeName", 7}}}};
}

std::vector<std::string> Names(const std::vector<PodStore::Pointer>& pods) {
  std::vector<std::string> names;
  for (const auto& pod : pods)
    names.push_back(pod->meta.ns + "/" + pod->meta.name);
  return names;
}

class PodStoreTest : public testing::Test {
 protected:
  PodStoreTest() {
    store_.Listen([this](const api::Pod* before, const api::Pod* after) {
      const std::string what = !before ? "added " : (after ? "changed " : "deleted ");
      changes_.push_back(what + (after ? after : before)->meta.name);
    });
  }
  std::vector<std::string> TakeChanges() { return std::exchange(changes_, {}); }
  void List(const std::vector<json>& objects) {
    store_.BeginList();
    for (const json& object : objects)
      (void)store_.Upsert(object).ok();
    store_.EndList();
  }
  std::vector<std::string> All() const {
    std::vector<std::string> names = Names(store_.ListNamespace("a"));
    std::ranges::copy(Names(store_.ListNamespace("b")), std::back_inserter(names));
    return names;
  }

  Mutex mutex_;
  Metrics metrics_;
  GaugeMetric count_ = metrics_.Gauge("objects", "Objects.");
  PodStore store_{mutex_, count_};
  std::vector<std::string> changes_;
};

TEST_F(PodStoreTest, AListTellsOnlyWhatIsDifferent) {
  List({PodJson("a", "p1", "n1"), PodJson("a", "p2", "n1")});
  EXPECT_THAT(TakeChanges(), ElementsAre("added p1", "added p2"));
  List({PodJson("a", "p2", "n1"), PodJson("a", "p3", "n1")});
  EXPECT_THAT(TakeChanges(), ElementsAre("added p3", "deleted p1"));
  EXPECT_THAT(All(), ElementsAre("a/p2", "a/p3"));
  EXPECT_EQ(count_.Value(), 2);
}

TEST_F(PodStoreTest, AListThatBreaksOffDeletesNothing) {
  List({PodJson("a", "p1", "n1"), PodJson("a", "p2", "n1")});
  TakeChanges();
  store_.BeginList();
  ASSERT_TRUE(store_.Upsert(PodJson("a", "p2", "n1")).ok());
  EXPECT_THAT(TakeChanges(), IsEmpty());
  List({PodJson("a", "p1", "n1")});
  EXPECT_THAT(TakeChanges(), ElementsAre("deleted p2"));
  EXPECT_THAT(All(), ElementsAre("a/p1"));
}

TEST_F(PodStoreTest, AnUpdateOfWhatNobodyReadsIsNoChange) {
  List({PodJson("a", "p1", "n1", "1")});
  TakeChanges();
  ASSERT_TRUE(store_.Upsert(PodJson("a", "p1", "n1", "2")).ok());
  EXPECT_THAT(TakeChanges(), IsEmpty());
}

TEST_F(PodStoreTest, APodIsFoundByItsNodeAndItsNamespace) {
  List({PodJson("a", "p1", "n1"), PodJson("b", "p2", "n1"), PodJson("b", "p3", "n2"),
        PodJson("ba", "p4", "")});
  EXPECT_THAT(Names(store_.ListNode("n1")), ElementsAre("a/p1", "b/p2"));
  EXPECT_THAT(Names(store_.ListNode("")), IsEmpty());
  EXPECT_THAT(Names(store_.ListNamespace("b")), ElementsAre("b/p2", "b/p3"));
  EXPECT_THAT(store_.Nodes(), ElementsAre("n1", "n2"));
}

TEST_F(PodStoreTest, TheIndexFollowsSchedulingAndDeletion) {
  List({PodJson("a", "p1", "")});
  ASSERT_TRUE(store_.Upsert(PodJson("a", "p1", "n1")).ok());
  EXPECT_THAT(Names(store_.ListNode("n1")), ElementsAre("a/p1"));
  store_.Delete("a", "p1");
  EXPECT_THAT(store_.Nodes(), IsEmpty());
  EXPECT_EQ(store_.Get({"a", "p1"}), nullptr);
}

TEST_F(PodStoreTest, AnUnreadableObjectIsNotADeletion) {
  List({PodJson("a", "p1", "n1"), PodJson("a", "p2", "n1")});
  TakeChanges();
  EXPECT_FALSE(store_.Upsert(Unreadable("a", "p1")).ok());
  List({Unreadable("a", "p1"), PodJson("a", "p2", "n1"), json("rubbish")});
  EXPECT_THAT(TakeChanges(), IsEmpty());
  EXPECT_THAT(All(), ElementsAre("a/p1", "a/p2"));
}

TEST_F(PodStoreTest, WhatIsHandedOutStaysAfterItsDeletion) {
  List({PodJson("a", "p1", "n1")});
  const PodStore::Pointer pod = store_.Get({"a", "p1"});
  store_.Delete("a", "p1");
  EXPECT_EQ(pod->meta.name, "p1");
}

TEST_F(PodStoreTest, ANodesPodsAreFoundByTheirNamespace) {
  List({PodJson("a", "1", "n1"), PodJson("b", "1", "n1"), PodJson("b", "2", "n1"),
        PodJson("b", "3", "n2"), PodJson("c", "1", "n1")});
  EXPECT_THAT(Names(store_.ListNode("n1", "b")), ElementsAre("b/1", "b/2"));
  EXPECT_THAT(store_.ListNode("n1", "bb"), IsEmpty());
  EXPECT_THAT(store_.ListNode("n3", "b"), IsEmpty());
}

TEST_F(PodStoreTest, AListOfANamespaceSaysNothingOfOthers) {
  const auto a = store_.SinkOf("a");
  const auto b = store_.SinkOf("b");
  const auto put = [](ObjectSink& sink, const std::string& ns, const std::string& name) {
    EXPECT_TRUE(sink.Upsert(PodJson(ns, name, "n1")).ok());
  };
  a->BeginList();
  put(*a, "a", "1");
  b->BeginList();  // they overlap
  put(*b, "b", "1");
  put(*b, "b", "2");
  a->EndList();
  b->EndList();
  EXPECT_THAT(All(), ElementsAre("a/1", "b/1", "b/2"));
  b->BeginList();
  put(*a, "a", "2");  // by the watch
  put(*b, "b", "2");
  b->EndList();
  EXPECT_THAT(All(), ElementsAre("a/1", "a/2", "b/2"));
  a->BeginList();
  a->EndList();
  EXPECT_THAT(All(), ElementsAre("b/2"));
}

}  // namespace
}  // namespace flamefleet
