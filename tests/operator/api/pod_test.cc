// SPDX-License-Identifier: Apache-2.0
#include "operator/api/pod.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/fakes/wire_writer.h"

namespace flamefleet::api {
namespace {

using nlohmann::json;

json CheckoutPod() {
  return json::parse(R"({
    "apiVersion": "v1", "kind": "Pod",
    "metadata": {
      "name": "checkout-7d9f-x2", "namespace": "shop", "uid": "u1", "resourceVersion": "42",
      "creationTimestamp": "2026-11-29T17:05:00Z",
      "labels": {"app": "checkout", "pod-template-hash": "7d9f"},
      "annotations": {"pyroscope.io/scrape": "true", "profiles.grafana.com/cpu.scrape": "true",
                      "resource.opentelemetry.io/service.name": "co", "kubectl.kubernetes.io/x": "big"},
      "ownerReferences": [{"kind": "Other", "name": "o"},
                          {"kind": "ReplicaSet", "name": "checkout-7d9f", "controller": true}]
    },
    "spec": {
      "nodeName": "n3",
      "initContainers": [{"name": "prepare"}, {"name": "mesh", "restartPolicy": "Always"}],
      "containers": [{"name": "checkout", "ports": [{"name": "pprof", "containerPort": 6060}, {"containerPort": 80}]}]
    },
    "status": {
      "phase": "Running", "podIP": "10.244.1.7",
      "conditions": [{"type": "Ready", "status": "True"}],
      "containerStatuses": [{"name": "checkout", "containerID": "containerd://abc", "state": {"running": {}}}],
      "initContainerStatuses": [{"name": "prepare", "containerID": "containerd://def", "state": {"terminated": {}}}]
    }
  })");
}

Pod Decode(const json& object) {
  Result<Pod> pod = DecodePod(object);
  EXPECT_TRUE(pod.ok()) << pod.status();
  return pod.ok() ? *pod : Pod{};
}

TEST(DecodePod, ReadsWhatDecidesAboutProfiling) {
  const Pod pod = Decode(CheckoutPod());
  EXPECT_EQ(pod.meta.ns, "shop");
  EXPECT_EQ(pod.meta.name, "checkout-7d9f-x2");
  EXPECT_EQ(pod.meta.uid, "u1");
  EXPECT_EQ(pod.meta.resource_version, "42");
  EXPECT_FALSE(pod.meta.deleting);
  EXPECT_EQ(pod.node, "n3");
  EXPECT_EQ(pod.ip, "10.244.1.7");
  EXPECT_TRUE(pod.ready);
  EXPECT_EQ(pod.phase, PodPhase::kRunning);
  EXPECT_EQ(pod.labels.at("app"), "checkout");
}

TEST(DecodePod, KeepsOnlyAnnotationsOfTheFamilies) {
  EXPECT_THAT(Decode(CheckoutPod()).annotations,
              testing::ElementsAre(testing::Key("profiles.grafana.com/cpu.scrape"),
                                   testing::Key("pyroscope.io/scrape"),
                                   testing::Key("resource.opentelemetry.io/service.name")));
}

TEST(DecodePod, TellsInitContainersFromSidecars) {
  const Pod pod = Decode(CheckoutPod());
  ASSERT_EQ(pod.containers.size(), 3U);
  EXPECT_EQ(
      pod.containers[0],
      (Container{"checkout", ContainerKind::kMain, "abc", true, {{"pprof", 6060}, {"", 80}}}));
  EXPECT_EQ(pod.containers[1], (Container{"prepare", ContainerKind::kInit, "def", false, {}}));
  EXPECT_EQ(pod.containers[2], (Container{"mesh", ContainerKind::kSidecar, "", false, {}}));
}

TEST(DecodePod, NamesTheDeploymentBehindItsReplicaSet) {
  const Pod pod = Decode(CheckoutPod());
  EXPECT_EQ(pod.workload_kind, "Deployment");
  EXPECT_EQ(pod.workload_name, "checkout");
}

TEST(DecodePod, KeepsTheNameOfAReplicaSetWithoutTemplateHash) {
  json object = CheckoutPod();
  object["metadata"]["labels"].erase("pod-template-hash");
  EXPECT_EQ(Decode(object).workload_kind, "ReplicaSet");
  EXPECT_EQ(Decode(object).workload_name, "checkout-7d9f");
}

TEST(DecodePod, SeesDeletionAndUnknownFieldsAreIgnored) {
  json object = CheckoutPod();
  object["metadata"]["deletionTimestamp"] = "2026-11-29T17:06:00Z";
  object["spec"]["fromTheFuture"] = {1, 2};
  EXPECT_TRUE(Decode(object).meta.deleting);
}

TEST(DecodePod, TakesNullForAbsent) {
  json object = CheckoutPod();
  object["metadata"]["annotations"] = nullptr;
  object["status"]["containerStatuses"] = nullptr;
  EXPECT_TRUE(Decode(object).annotations.empty());
}

TEST(DecodePod, NamesThePathOfAFieldOfTheWrongType) {
  struct Row {
    const char* pointer;
    json value;
    const char* message;
  };
  const Row rows[] = {
      {"/metadata", 1, "decode Pod.metadata: want object"},
      {"/metadata/labels/app", 1,
       "decode Pod.metadata.labels[app]: want string, got number: put it in quotes"},
      {"/metadata/generation", "x", "decode Pod.metadata.generation: want integer"},
      {"/metadata/creationTimestamp", "x",
       "decode Pod.metadata.creationTimestamp: want RFC 3339 time"},
      {"/spec/containers", json::object(), "decode Pod.spec.containers: want list"},
      {"/spec/containers/0/name", 1, "decode Pod.spec.containers[0].name: want string"},
      {"/spec/containers/0/ports/1/containerPort", 1LL << 40,
       "decode Pod.spec.containers[0].ports[1].containerPort: want integer in range"},
      {"/status/conditions/0", "x", "decode Pod.status.conditions: want list of objects"},
  };
  for (const Row& row : rows) {
    json object = CheckoutPod();
    object[json::json_pointer(row.pointer)] = row.value;
    const Result<Pod> pod = DecodePod(object);
    ASSERT_FALSE(pod.ok()) << row.pointer;
    EXPECT_EQ(ErrorMessage(pod.status()), row.message);
  }
}

TEST(DecodePod, RefusesWhatIsNoObject) {
  EXPECT_EQ(ErrorMessage(DecodePod(json::array()).status()), "decode Pod: want object");
}

// CheckoutPod as the API server writes it in protobuf, with fields that nobody reads.
std::string CheckoutMessage() {
  using W = WireWriter;
  const auto entry = [](const char* key, const char* value) {
    return W().Bytes(1, key).Bytes(2, value).text();
  };
  const auto owner = [](const char* kind, const char* name, bool controller) {
    W out;
    out.Bytes(1, kind).Bytes(3, name).Bytes(5, "apps/v1");
    if (controller) out.Number(6, 1);
    return out.text();
  };
  W metadata;
  metadata.Bytes(1, "checkout-7d9f-x2").Bytes(3, "shop").Bytes(5, "u1").Bytes(6, "42");
  metadata.Bytes(8, W().Number(1, 1795971900).Number(2, 0).text());  // 2026-11-29T17:05:00Z
  metadata.Bytes(11, entry("app", "checkout")).Bytes(11, entry("pod-template-hash", "7d9f"));
  metadata.Bytes(12, entry("pyroscope.io/scrape", "true"));
  metadata.Bytes(12, entry("profiles.grafana.com/cpu.scrape", "true"));
  metadata.Bytes(12, entry("resource.opentelemetry.io/service.name", "co"));
  metadata.Bytes(12, entry("kubectl.kubernetes.io/x", "big"));
  metadata.Bytes(13, owner("Other", "o", false));
  metadata.Bytes(13, owner("ReplicaSet", "checkout-7d9f", true));
  metadata.Bytes(17, std::string(2000, 'm'));
  W spec;
  spec.Bytes(1, "a volume");
  spec.Bytes(2, W().Bytes(1, "checkout")
                    .Bytes(2, "image")
                    .Bytes(6, W().Bytes(1, "pprof").Number(2, 0).Number(3, 6060).text())
                    .Bytes(6, W().Bytes(1, "").Number(3, 80).text())
                    .text());
  spec.Bytes(10, "n3");
  spec.Bytes(20, W().Bytes(1, "prepare").text());
  spec.Bytes(20, W().Bytes(1, "mesh").Bytes(24, "Always").text());
  W status;
  status.Bytes(1, "Running").Bytes(6, "10.244.1.7");
  status.Bytes(2, W().Bytes(1, "Initialized").Bytes(2, "True").text());
  status.Bytes(2, W().Bytes(1, "Ready").Bytes(2, "True").text());
  status.Bytes(8, W().Bytes(1, "checkout")
                      .Bytes(2, W().Bytes(2, "").text())  // state.running
                      .Bytes(8, "containerd://abc")
                      .text());
  status.Bytes(10, W().Bytes(1, "prepare")
                       .Bytes(2, W().Bytes(3, "").text())
                       .Bytes(8, "containerd://def")
                       .text());
  return W().Bytes(1, metadata.text()).Bytes(2, spec.text()).Bytes(3, status.text()).text();
}

TEST(DecodePodMessage, ReadsTheSameAsJson) {
  const Result<Pod> pod = DecodePodMessage(CheckoutMessage());
  ASSERT_TRUE(pod.ok()) << pod.status();
  EXPECT_EQ(*pod, Decode(CheckoutPod()));
}

TEST(DecodePodMessage, SeesDeletion) {
  const std::string metadata = WireWriter().Bytes(9, WireWriter().Number(1, 1).text()).text();
  const Result<Pod> pod = DecodePodMessage(WireWriter().Bytes(1, metadata).text());
  ASSERT_TRUE(pod.ok()) << pod.status();
  EXPECT_TRUE(pod->meta.deleting);
}

TEST(DecodePodMessage, NamesThePathOfWhatIsWrong) {
  using W = WireWriter;
  const auto container = [](const W& in) {
    return W().Bytes(2, W().Bytes(2, "").Bytes(2, in.text()).text()).text();
  };
  const std::pair<std::string, const char*> rows[] = {
      {"\x0f", "decode Pod: want a protobuf message"},
      {W().Number(1, 1).text(), "decode Pod.metadata: want message"},
      {W().Bytes(1, "\x0a\x05").text(), "decode Pod.metadata: want a protobuf message"},
      {W().Bytes(1, W().Bytes(1, "\xff").text()).text(),
       "decode Pod.metadata.name: want UTF-8 text"},
      {W().Bytes(1, W().Bytes(8, W().Number(1, UINT64_MAX).text()).text()).text(),
       "decode Pod.metadata.creationTimestamp: want time in range"},
      {container(W().Number(1, 1)), "decode Pod.spec.containers[1].name: want string"},
      {container(W().Number(6, 1)), "decode Pod.spec.containers[1].ports: want list of messages"},
      {container(W().Bytes(6, W().Number(3, 1ULL << 40).text())),
       "decode Pod.spec.containers[1].ports[0].containerPort: want integer in range"},
  };
  for (const auto& [message, error] : rows)
    EXPECT_EQ(ErrorMessage(DecodePodMessage(message).status()), error);
}

TEST(DecodePodMessage, NoPrefixOfAPodIsReadBeyondItsEnd) {
  const std::string message = CheckoutMessage();
  for (size_t size = 1; size < message.size(); ++size) {
    // A copy of its own, so that the address sanitizer sees a read beyond it.
    const std::string prefix = message.substr(0, size);
    (void)DecodePodMessage(prefix).ok();
  }
}

}  // namespace
}  // namespace flamefleet::api
