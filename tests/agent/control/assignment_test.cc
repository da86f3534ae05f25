// SPDX-License-Identifier: Apache-2.0
#include "agent/control/assignment.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

namespace flamefleet::agent {
namespace {

using fleet::v1alpha1::OperatorMessage;
using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

OperatorMessage Message(const std::string& text) {
  OperatorMessage message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &message));
  return message;
}

// Pod "a" with a sampled container, pod "b" that is pulled.
const char* const kSnapshot = R"(
  snapshot {
    version: 7
    config { sampling_frequency_hz: 19 backends { name: "main" endpoint: "http://store:4040" } }
    pods {
      uid: "a" name: "a-0" ip: "10.0.0.1"
      containers { name: "app" id: "0123" backend: "main" labels { key: "service_name" value: "a" }
                   thread_labels: true }
    }
    pods {
      uid: "b" ip: "fd00::2"
      pulls {
        type: PROFILE_TYPE_MEMORY port: 6060 path: "/allocs" interval_ms: 15000 timeout_ms: 10000
        container: "srv" backend: "main" parameters { key: "gc" value: "1" }
        labels { key: "service_name" value: "b" }
      }
    }
  })";

class AssignmentTest : public ::testing::Test {
 protected:
  Status Apply(const std::string& text) { return assignment_.Apply(Message(text)); }
  Work BuildWork() const { return assignment_.BuildWork(milliseconds(10'000)); }
  std::vector<std::string> PodsOfCollections() const {
    std::vector<std::string> uids;
    for (const CollectionSpec& spec : BuildWork().collections)
      uids.push_back(spec.key.pod_uid);
    return uids;
  }
  Assignment assignment_;
};

TEST_F(AssignmentTest, ASnapshotIsWorkForEachPart) {
  ASSERT_TRUE(Apply(kSnapshot).ok());
  EXPECT_EQ(assignment_.version(), 7U);
  const Work work = BuildWork();
  EXPECT_EQ(work.cpu.frequency_hz, 19U);
  EXPECT_THAT(work.backends, ElementsAre(BackendConfig{"main", "http://store:4040"}));
  ASSERT_EQ(work.cpu_targets.size(), 1U);
  EXPECT_EQ(work.cpu_targets[0].container_id, "0123");
  EXPECT_EQ(work.cpu_targets[0].collection, (CollectionKey{"a", "app", ProfileType::kCpu}));
  EXPECT_EQ(work.cpu_targets[0].labels.at("service_name"), "a");
  EXPECT_TRUE(work.cpu_targets[0].thread_labels);
  const ScrapeJob job = {.key = {"b", "srv", ProfileType::kMemory},
                         .address = "fd00::2",
                         .port = 6060,
                         .path = "/allocs",
                         .parameters = {{"gc", "1"}},
                         .interval = milliseconds(15'000),
                         .timeout = milliseconds(10'000),
                         .backend = "main",
                         .labels = {{"service_name", "b"}}};
  EXPECT_THAT(work.scrape_jobs, ElementsAre(job));
  ASSERT_EQ(work.collections.size(), 2U);
  EXPECT_TRUE(work.collections[0].ebpf);
  EXPECT_EQ(work.collections[0].window, milliseconds(10'000));
  EXPECT_FALSE(work.collections[1].ebpf);
  EXPECT_EQ(work.collections[1].window, milliseconds(15'000));
}

TEST_F(AssignmentTest, ADeltaReplacesAddsAndRemovesPods) {
  ASSERT_TRUE(Apply(kSnapshot).ok());
  ASSERT_TRUE(Apply(R"(delta { version: 8 removed_pod_uids: "a" removed_pod_uids: "gone"
      upserted_pods { uid: "c" containers { name: "x" id: "9" } }
      upserted_pods { uid: "b" containers { name: "y" id: "8" } } })")
                  .ok());
  EXPECT_THAT(PodsOfCollections(), ElementsAre("b", "c"));
  EXPECT_THAT(BuildWork().scrape_jobs, IsEmpty());
  EXPECT_EQ(BuildWork().cpu.frequency_hz, 19U);
}

TEST_F(AssignmentTest, AConfigInADeltaReplacesTheConfig) {
  ASSERT_TRUE(Apply(kSnapshot).ok());
  EXPECT_TRUE(BuildWork().inlines);
  ASSERT_TRUE(Apply("delta { version: 8 config { sampling_frequency_hz: 97 without_inlines: true "
                    "debuginfod_urls: 'https://d.example' "
                    "stack_depth: 300 cpu_budget_millicores: 20 } }")
                  .ok());
  EXPECT_EQ(BuildWork().cpu.frequency_hz, 97U);
  EXPECT_EQ(BuildWork().cpu.millicores, 20);
  EXPECT_FALSE(BuildWork().inlines);
  EXPECT_EQ(BuildWork().debuginfod_urls, std::vector<std::string>{"https://d.example"});
  EXPECT_EQ(BuildWork().stack_depth, 300U);
  EXPECT_THAT(BuildWork().backends, IsEmpty());
  EXPECT_THAT(PodsOfCollections(), ElementsAre("a", "b"));
}

TEST_F(AssignmentTest, AGapInTheVersionsIsRefusedAndChangesNothing) {
  EXPECT_EQ(Apply("delta { version: 1 }").code(), StatusCode::kDataLoss);
  ASSERT_TRUE(Apply(kSnapshot).ok());
  for (const char* version : {"7", "9", "6"}) {
    const std::string delta =
        std::string("delta { version: ") + version + " removed_pod_uids: \"a\" }";
    EXPECT_EQ(Apply(delta).code(), StatusCode::kDataLoss) << version;
  }
  EXPECT_THAT(PodsOfCollections(), ElementsAre("a", "b"));
  EXPECT_EQ(assignment_.version(), 7U);
}

TEST_F(AssignmentTest, ASnapshotReplacesEverythingWhateverItsVersion) {
  ASSERT_TRUE(Apply(kSnapshot).ok());
  ASSERT_TRUE(Apply("snapshot { version: 1 pods { uid: \"z\" containers { name: \"q\" } } }").ok());
  EXPECT_THAT(PodsOfCollections(), ElementsAre("z"));
  EXPECT_TRUE(Apply("delta { version: 2 }").ok());
}

TEST_F(AssignmentTest, WhatCannotStartYetIsWantedAllTheSame) {
  ASSERT_TRUE(Apply(R"(snapshot { version: 1
      pods { uid: "a" containers { name: "app" } pulls { type: PROFILE_TYPE_BLOCK port: 1 } } })")
                  .ok());
  ASSERT_EQ(BuildWork().cpu_targets.size(), 1U);
  EXPECT_EQ(BuildWork().cpu_targets[0].container_id, "");
  EXPECT_THAT(BuildWork().scrape_jobs, IsEmpty());
  EXPECT_EQ(BuildWork().collections.size(), 2U);
}

TEST_F(AssignmentTest, APodWithoutANameIsTheNodeItself) {
  ASSERT_TRUE(Apply(R"(snapshot { version: 1 pods { containers {
      backend: "main" labels { key: "node" value: "n1" } } } })")
                  .ok());
  const Work work = BuildWork();
  EXPECT_THAT(work.cpu_targets, IsEmpty());
  EXPECT_EQ(work.host, (HostSeries{.backend = "main", .labels = {{"node", "n1"}}}));
  ASSERT_EQ(work.collections.size(), 1U);
  EXPECT_EQ(work.collections[0].key, CollectionKey());
  EXPECT_TRUE(work.collections[0].can_run);
  ASSERT_TRUE(Apply(R"(delta { version: 2 removed_pod_uids: "" })").ok());
  EXPECT_FALSE(BuildWork().host);
}

TEST_F(AssignmentTest, AProfileTypeOfANewerOperatorIsLeftOut) {
  ASSERT_TRUE(Apply(R"(snapshot { version: 1 pods { uid: "a" ip: "1.2.3.4"
      pulls { type: PROFILE_TYPE_UNSPECIFIED port: 1 } } })")
                  .ok());
  EXPECT_THAT(BuildWork().collections, IsEmpty());
}

TEST_F(AssignmentTest, AnEmptyMessageIsInvalid) {
  EXPECT_EQ(Apply("").code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace flamefleet::agent
