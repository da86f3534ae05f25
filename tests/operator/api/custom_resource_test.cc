// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "operator/api/agent_pool.h"
#include "operator/api/profiling_backend.h"
#include "operator/api/profiling_target.h"
#include "operator/api/secret.h"
#include "operator/api/workload.h"

namespace flamefleet::api {
namespace {

using nlohmann::json;

constexpr int64_t kNow = 1'796'000'000 * kNanosPerSecond;

TEST(DecodeProfilingTarget, ReadsTheWholeSpec) {
  const Result<ProfilingTarget> target = DecodeProfilingTarget(json::parse(R"({
    "metadata": {"name": "checkout", "namespace": "shop", "uid": "t1", "generation": 3},
    "spec": {
      "selector": {"matchLabels": {"app": "checkout"},
                   "matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["test"]}]},
      "containers": ["checkout"], "serviceName": "co", "labels": {"team": "payments"}, "podLabels": ["version"],
      "backendRef": {"name": "main"}, "paused": true,
      "profiles": [{"type": "cpu", "mode": "EBPF", "threadLabels": true},
                   {"type": "memory", "pull": {"port": "pprof", "path": "/p", "interval": "30s", "timeout": "5s",
                                               "scheme": "HTTPS", "parameters": {"gc": "1"},
                                               "tls": {"insecureSkipVerify": true, "caBundle": "pem",
                                                       "serverName": "s"}}},
                   {"type": "block", "mode": "Pull", "pull": {"port": 6060}}]
    }
  })"));
  ASSERT_TRUE(target.ok()) << target.status();
  EXPECT_EQ(target->meta.generation, 3);
  const ProfilingTargetSpec& spec = target->spec;
  EXPECT_EQ(spec.containers, std::vector<std::string>{"checkout"});
  EXPECT_EQ(spec.service_name, "co");
  EXPECT_EQ(spec.labels, (StringMap{{"team", "payments"}}));
  EXPECT_EQ(spec.pod_labels, std::vector<std::string>{"version"});
  EXPECT_EQ(spec.backend, "main");
  EXPECT_TRUE(spec.paused);
  ASSERT_EQ(spec.profiles.size(), 3U);
  EXPECT_EQ(spec.profiles[0], (ProfileSpec{ProfileType::kCpu, CollectMode::kEbpf, {}, true}));
  EXPECT_EQ(spec.profiles[1], (ProfileSpec{ProfileType::kMemory, CollectMode::kAuto,
                                           PullSpec{.port = PortRef{0, "pprof"},
                                                    .scheme = PullScheme::kHttps,
                                                    .tls = {true, "pem", "s"},
                                                    .path = "/p",
                                                    .parameters = {{"gc", "1"}},
                                                    .interval_ns = 30 * kNanosPerSecond,
                                                    .timeout_ns = 5 * kNanosPerSecond}}));
  EXPECT_EQ(spec.profiles[2].pull.port, (PortRef{6060, ""}));
  EXPECT_TRUE(spec.selector.Matches({{"app", "checkout"}}));
  EXPECT_FALSE(spec.selector.Matches({{"app", "checkout"}, {"tier", "test"}}));
}

TEST(DecodeProfilingTarget, NamesThePathOfAnUnknownEnumValue) {
  const Result<ProfilingTarget> target = DecodeProfilingTarget(
      json::parse(R"({"spec": {"profiles": [{"type": "cpu"}, {"type": "heap"}]}})"));
  EXPECT_EQ(ErrorMessage(target.status()),
            "decode ProfilingTarget.spec.profiles[1].type: want one of cpu, memory, goroutine, "
            "mutex, block");
}

TEST(DecodeProfilingTarget, NamesThePathOfABadDuration) {
  const Result<ProfilingTarget> target = DecodeProfilingTarget(
      json::parse(R"({"spec": {"profiles": [{"type": "memory", "pull": {"interval": "soon"}}]}})"));
  EXPECT_EQ(ErrorMessage(target.status()),
            "decode ProfilingTarget.spec.profiles[0].pull.interval: want duration such as 15s");
}

TEST(LabelSelector, EvaluatesEveryOperator) {
  using Operator = LabelRequirement::Operator;
  struct Row {
    LabelRequirement requirement;
    bool with_prod;      // labels {"env": "prod"}
    bool without_label;  // no labels
  };
  const Row rows[] = {
      {{"env", Operator::kIn, {"prod", "dev"}}, true, false},
      {{"env", Operator::kIn, {"dev"}}, false, false},
      {{"env", Operator::kNotIn, {"prod"}}, false, true},
      {{"env", Operator::kExists, {}}, true, false},
      {{"env", Operator::kDoesNotExist, {}}, false, true},
  };
  for (const Row& row : rows) {
    const LabelSelector selector{{}, {row.requirement}};
    EXPECT_EQ(selector.Matches({{"env", "prod"}}), row.with_prod);
    EXPECT_EQ(selector.Matches({}), row.without_label);
  }
}

TEST(LabelSelector, EmptyMatchesEverything) {
  EXPECT_TRUE(LabelSelector{}.Matches({}));
}

TEST(ProfilingTargetStatus, ComesBackFromJsonAsItWas) {
  ProfilingTargetStatus status;
  status.observed_generation = 3;
  status.conditions = {{"Ready", "False", "PodsFailing", "1 of 2 pods", 3, kNow}};
  status.pods = {2, 1, 1, 0, 3};
  status.nodes = {2, 1};
  status.stacks = ProfilingTargetStatus::Stacks{99, "no_table"};
  status.last_profile_ns = kNow;
  status.failing_pods = {
      {"", "p1", "n1", "memory", "ConnectionRefused", "connect 10.0.0.1:6060", kNow}};
  status.warnings = {{"", "p2", "UnknownAnnotation", "pyroscope.io/scrap: nobody reads this key"}};
  const Result<ProfilingTarget> back = DecodeProfilingTarget({{"status", EncodeStatus(status)}});
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->status, status);
}

TEST(ProfilingTargetStatus, ShowsZeroCountsAndLeavesOutWhatIsEmpty) {
  const json status = EncodeStatus(ProfilingTargetStatus{});
  EXPECT_EQ(status.at("pods").at("matched"), 0);
  EXPECT_FALSE(status.contains("lastProfileTime"));
  EXPECT_FALSE(status.contains("failingPods"));
}

TEST(ProfilingTargetStatus, WritesTimesInWholeSeconds) {
  ProfilingTargetStatus status;
  status.last_profile_ns = kNow + 999'000'000;
  EXPECT_EQ(EncodeStatus(status).at("lastProfileTime"), "2026-11-30T00:53:20Z");
}

TEST(DecodeProfilingBackend, ReadsManagedStoreAndDefaultsItsRetention) {
  const Result<ProfilingBackend> backend = DecodeProfilingBackend(json::parse(R"({
    "metadata": {"name": "default"},
    "spec": {"default": true, "type": "Store",
             "store": {"managed": {"storage": {"ephemeral": true}, "resources": {"limits": {"memory": "256Mi", "cpu": 1}}}}}
  })"));
  ASSERT_TRUE(backend.ok()) << backend.status();
  EXPECT_TRUE(backend->spec.is_default);
  ASSERT_TRUE(backend->spec.managed_store);
  EXPECT_EQ(backend->spec.managed_store->retention_ns, 72 * 3600 * kNanosPerSecond);
  EXPECT_EQ(backend->spec.managed_store->resources.limits,
            (StringMap{{"cpu", "1"}, {"memory", "256Mi"}}));
}

TEST(DecodeProfilingBackend, ReadsCredentialsAndVolume) {
  const Result<ProfilingBackend> backend = DecodeProfilingBackend(json::parse(R"({
    "spec": {"type": "Pyroscope", "endpoint": "https://p", "tenantID": "team-a",
             "tls": {"caSecretRef": {"name": "ca"}, "serverName": "p.example"},
             "limits": {"bytesPerSecond": "2Mi", "maxProfileSize": "4Mi"}, "ingestionWindow": "30m",
             "auth": {"bearerTokenSecretRef": {"name": "login", "key": "t"}}}})"));
  ASSERT_TRUE(backend.ok()) << backend.status();
  EXPECT_EQ(backend->spec.tenant_id, "team-a");
  EXPECT_EQ(backend->spec.tls, (BackendTls{SecretKey{"ca", "ca.crt"}, "p.example", false}));
  EXPECT_EQ(backend->spec.auth, (BackendAuth{"", SecretKey{"login", "t"}}));
  EXPECT_EQ(backend->spec.limits, (BackendLimits{2 << 20, 4 << 20}));
  EXPECT_EQ(backend->spec.ingestion_window_ns, 1800 * kNanosPerSecond);
  const Result<ProfilingBackend> store = DecodeProfilingBackend(json::parse(
      R"({"spec": {"type": "Store", "store": {"managed": {"storage": {"size": "2Gi", "storageClassName": "fast"}}},
                   "auth": {"basic": {"secretRef": {"name": "b"}}}}})"));
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_EQ(store->spec.managed_store->volume,
            (ManagedStore::Volume{"2Gi", int64_t{2} << 30, "fast"}));
  EXPECT_EQ(store->spec.auth.basic_secret, "b");
}

TEST(DecodeSecret, DecodesValuesAndNeverRepeatsABadOne) {
  const auto secret =
      DecodeSecret(json::parse(R"({"metadata": {"name": "s"}, "data": {"token": "aHVzaA=="}})"));
  ASSERT_TRUE(secret.ok()) << secret.status();
  EXPECT_EQ(secret->data, (StringMap{{"token", "hush"}}));
  const auto bad = DecodeSecret(json::parse(R"({"data": {"token": "hush!"}})"));
  EXPECT_EQ(ErrorMessage(bad.status()), "decode Secret.data.token: not base64");
}

TEST(ProfilingBackendStatus, ComesBackFromJsonAsItWas) {
  ProfilingBackendStatus status;
  status.observed_generation = 1;
  status.conditions = {{"Ready", "True", "Available", "ok", 1, kNow}};
  status.endpoint = "http://x:4040";
  status.agents = {2, 1};
  status.backlog = {3, 4096, kNow};
  const Result<ProfilingBackend> back = DecodeProfilingBackend({{"status", EncodeStatus(status)}});
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->status, status);
}

TEST(DecodeAgentPool, ReadsTheWholeSpec) {
  const Result<AgentPool> pool = DecodeAgentPool(json::parse(R"({
    "metadata": {"name": "default"},
    "spec": {"nodeSelector": {"disk": "ssd"}, "sampling": {"frequency": 97, "stackDepth": 511},
             "budget": {"cpu": "50m"}, "symbols": {"inlines": false, "debuginfodURLs": ["https://d.example"]},
             "tolerations": [{"operator": "Exists"}, {"key": "a", "value": "b", "effect": "NoExecute", "tolerationSeconds": 5}],
             "resources": {"requests": {"cpu": "50m"}}, "image": "i:1", "imagePullPolicy": "Never",
             "imagePullSecrets": [{"name": "registry"}], "priorityClassName": "high",
             "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}},
             "updateStrategy": {"maxUnavailable": 3}, "scope": "AllPods",
             "podLabels": {"l": "1"}, "podAnnotations": {"a": "2"},
             "optIn": {"annotations": ["Grafana"], "namespaceSelector": {"matchLabels": {"tier": "web"}}}}
  })"));
  ASSERT_TRUE(pool.ok()) << pool.status();
  EXPECT_EQ(pool->spec.node_selector, (StringMap{{"disk", "ssd"}}));
  EXPECT_EQ(pool->spec.tolerations, (std::vector<Toleration>{{"", "Exists", "", "", std::nullopt},
                                                             {"a", "", "b", "NoExecute", 5}}));
  EXPECT_EQ(pool->spec.sampling_frequency_hz, 97);
  EXPECT_EQ(pool->spec.stack_depth, 511);
  EXPECT_EQ(pool->spec.cpu_budget_millicores, 50);
  EXPECT_FALSE(pool->spec.inlines);
  EXPECT_EQ(pool->spec.debuginfod_urls, std::vector<std::string>{"https://d.example"});
  EXPECT_EQ(pool->spec.resources.requests, (StringMap{{"cpu", "50m"}}));
  EXPECT_EQ(pool->spec.image, "i:1");
  EXPECT_EQ(pool->spec.image_pull_policy, "Never");
  EXPECT_EQ(pool->spec.image_pull_secrets, std::vector<std::string>{"registry"});
  EXPECT_EQ(pool->spec.priority_class, "high");
  EXPECT_EQ(
      json::parse(pool->spec.node_affinity),
      json::parse(
          R"({"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}})"));
  EXPECT_EQ(pool->spec.max_unavailable, "3");
  EXPECT_EQ(pool->spec.pod_labels, (StringMap{{"l", "1"}}));
  EXPECT_EQ(pool->spec.pod_annotations, (StringMap{{"a", "2"}}));
  EXPECT_EQ(pool->spec.scope, PoolScope::kAllPods);
  EXPECT_EQ(pool->spec.opt_in.families, (AnnotationFamilies{.pyroscope = false, .grafana = true}));
  EXPECT_TRUE(pool->spec.opt_in.namespaces.Matches({{"tier", "web"}}));
  EXPECT_FALSE(pool->spec.opt_in.namespaces.Matches({}));
}

TEST(DecodeAgentPool, ReadsTheCpuBudgetInEachWayToWriteIt) {
  const auto read = [](const json& cpu) {
    return DecodeAgentPool({{"spec", {{"budget", {{"cpu", cpu}}}}}});
  };
  EXPECT_EQ(read("20m")->spec.cpu_budget_millicores, 20);
  EXPECT_EQ(read("0.25")->spec.cpu_budget_millicores, 250);
  EXPECT_EQ(read(2)->spec.cpu_budget_millicores, 2000);
  for (const json& wrong : {json(0), json("m"), json("4m"), json("1e3"), json("nan"), json("-1"),
                            json("50Mi"), json(nlohmann::json::object())}) {
    EXPECT_THAT(ErrorMessage(read(wrong).status()), ::testing::HasSubstr("budget.cpu")) << wrong;
  }
}

TEST(DecodeAgentPool, LetsBothFamiliesOptInByDefaultAndNoneWhenTheListIsEmpty) {
  EXPECT_EQ(DecodeAgentPool(json::parse(R"({"spec": {}})"))->spec.opt_in.families,
            (AnnotationFamilies{true, true}));
  EXPECT_EQ(DecodeAgentPool(json::parse(R"({"spec": {"optIn": {"annotations": []}}})"))
                ->spec.opt_in.families,
            (AnnotationFamilies{false, false}));
}

TEST(AgentPoolStatus, ComesBackFromJsonAsItWas) {
  AgentPoolStatus status;
  status.observed_generation = 2;
  status.conditions = {{"Ready", "True", "AllNodesReady", "2 of 2 nodes", 2, kNow}};
  status.nodes = {2, 2, 1, 1};
  status.annotated_pods = {3, 1, 1, 1};
  status.failing_pods = {{"shop", "p1", "n1", "", "NoBackend", "m", kNow}};
  status.warnings = {{"shop", "p2", "UnknownAnnotation", "m"}};
  status.problem_nodes = {{"n2", "MissingCapability", "CAP_BPF"}};
  const Result<AgentPool> back = DecodeAgentPool({{"status", EncodeStatus(status)}});
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->status, status);
}

TEST(DecodeWorkload, ReadsTheCountsOfBothKinds) {
  const Result<Workload> daemon_set = DecodeDaemonSet(json::parse(R"({
    "metadata": {"name": "a", "generation": 2, "labels": {"flamefleet.dev/pool": "default"}},
    "status": {"observedGeneration": 2, "desiredNumberScheduled": 3, "updatedNumberScheduled": 2, "numberReady": 1}})"));
  ASSERT_TRUE(daemon_set.ok()) << daemon_set.status();
  EXPECT_EQ(daemon_set->desired, 3);
  EXPECT_EQ(daemon_set->updated, 2);
  EXPECT_EQ(daemon_set->ready, 1);
  EXPECT_EQ(daemon_set->labels.at(std::string(kPoolLabel)), "default");
  const Result<Workload> deployment = DecodeReplicas(json::parse(
      R"({"spec": {"replicas": 1}, "status": {"updatedReplicas": 1, "availableReplicas": 1}})"));
  ASSERT_TRUE(deployment.ok()) << deployment.status();
  EXPECT_EQ(deployment->desired, 1);
  EXPECT_EQ(deployment->ready, 1);
}

}  // namespace
}  // namespace flamefleet::api
