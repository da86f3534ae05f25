// SPDX-License-Identifier: Apache-2.0
// The operator's binary against a real kube-apiserver and a real gRPC client in the place of an
// agent. Pods are objects without a kubelet: the test says that they run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/base64.h"
#include "tests/operator/apiserver_fixture.h"
#include "tests/operator/fake_agent.h"
#include "tests/operator/operator_process.h"

namespace flamefleet {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr const char* kNamespace = kOperatorNamespace;
constexpr const char* kOperatorAccount =
    "system:serviceaccount:flamefleet-system:flamefleet-operator";

class OperatorTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    // All that the operator's own account asks of the API server.
    audit_ = testing::TempDir() + "/ff-audit-" + std::to_string(getpid());
    std::ofstream(audit_ + ".yaml")
        << json{{"apiVersion", "audit.k8s.io/v1"},
                {"kind", "Policy"},
                {"rules",
                 {{{"level", "Metadata"}, {"users", json::array({kOperatorAccount})}},
                  {{"level", "None"}}}}};
    server_ = new ApiServer(
        {"--audit-policy-file=" + audit_ + ".yaml", "--audit-log-path=" + audit_ + ".log"});
    server_->MustKubectl({"create", "namespace", kNamespace});
    server_->MustKubectl({"create", "namespace", "shop"});
    server_->MustKubectl({"create", "serviceaccount", "flamefleet-agent", "-n", kNamespace});
  }
  static void TearDownTestSuite() {
    delete server_;
    for (const char* ending : {".yaml", ".log", ".kubeconfig"})
      std::filesystem::remove(audit_ + ending);
  }

  void SetUp() override { Start(); }
  void TearDown() override {
    operator_.reset();
    server_->MustKubectl({"delete", "pt,pb,ap", "--all", "-A"});
    server_->MustKubectl({"delete", "pods", "--all", "-A", "--force", "--grace-period=0"});
    // Nobody collects the garbage here.
    server_->MustKubectl(
        {"delete", "daemonset,deployment,statefulset,service", "--all", "-n", kNamespace});
  }

  void Start() {
    operator_ = std::make_unique<OperatorProcess>(server_->kubeconfig());
    ASSERT_TRUE(Eventually([&] { return operator_->Leads(); }));
  }

  static void Apply(const json& object) {
    server_->MustKubectl({"apply", "--server-side", "-f", "-"}, object.dump());
  }
  // Empty when it is not there.
  static json Get(const std::string& kind, const std::string& name, const std::string& ns) {
    const auto output = server_->Kubectl(
        {"get", kind, name, "-n", ns, "-o", "json", "--show-managed-fields", "--ignore-not-found"});
    return output.text.empty() ? json() : json::parse(output.text);
  }
  static bool Exists(const std::string& kind, const std::string& name, const std::string& ns) {
    return !Get(kind, name, ns).is_null();
  }
  static std::string Version(const json& object) {
    return object.is_null() ? "" : object["metadata"]["resourceVersion"];
  }
  static json Pool(const json& spec = json::object()) {
    return {{"apiVersion", "flamefleet.dev/v1alpha1"},
            {"kind", "AgentPool"},
            {"metadata", {{"name", "default"}}},
            {"spec", spec}};
  }
  static json StoreBackend() {
    return {{"apiVersion", "flamefleet.dev/v1alpha1"},
            {"kind", "ProfilingBackend"},
            {"metadata", {{"name", "main"}}},
            {"spec",
             {{"default", true},
              {"type", "Store"},
              {"store", {{"managed", {{"storage", {{"ephemeral", true}}}}}}}}}};
  }
  static json Target() {
    return {{"apiVersion", "flamefleet.dev/v1alpha1"},
            {"kind", "ProfilingTarget"},
            {"metadata", {{"name", "checkout"}, {"namespace", "shop"}}},
            {"spec",
             {{"selector", {{"matchLabels", {{"app", "checkout"}}}}},
              {"profiles", {{{"type", "cpu"}}}}}}};
  }
  static json DaemonSet() { return Get("daemonset", "flamefleet-agent-default", kNamespace); }

  // A pod that runs on node n1.
  static void RunPod(const std::string& ns, const std::string& name, const json& metadata) {
    json pod = {{"apiVersion", "v1"},
                {"kind", "Pod"},
                {"metadata", metadata},
                {"spec",
                 {{"nodeName", "n1"},
                  {"serviceAccountName", ns == kNamespace ? "flamefleet-agent" : "default"},
                  {"containers", {{{"name", "main"}, {"image", "example.org/x"}}}}}}};
    pod["metadata"]["name"] = name;
    pod["metadata"]["namespace"] = ns;
    Apply(pod);
    const json status = {
        {"status",
         {{"phase", "Running"},
          {"podIP", "10.1.2.3"},
          {"conditions", {{{"type", "Ready"}, {"status", "True"}}}},
          {"containerStatuses",
           {{{"name", "main"},
             {"containerID", "containerd://" + name},
             {"image", "example.org/x"},
             {"imageID", "x"},
             {"ready", true},
             {"restartCount", 0},
             {"state", {{"running", {{"startedAt", "2026-01-01T00:00:00Z"}}}}}}}}}}};
    server_->MustKubectl(
        {"patch", "pod", name, "-n", ns, "--subresource=status", "-p", status.dump()});
  }
  static void RunCheckout(const std::string& name) {
    RunPod("shop", name, {{"labels", {{"app", "checkout"}}}});
  }
  // The pod that the DaemonSet controller would make.
  static void RunAgentPod(const std::string& pool = "default") {
    const std::string name = "flamefleet-agent-" + pool;
    ASSERT_TRUE(Eventually([&] { return Exists("daemonset", name, kNamespace); }));
    const json daemon_set = Get("daemonset", name, kNamespace);
    RunPod(kNamespace, "agent-" + pool + "-n1",
           {{"labels", daemon_set["spec"]["template"]["metadata"]["labels"]},
            {"ownerReferences",
             {{{"apiVersion", "apps/v1"},
               {"kind", "DaemonSet"},
               {"name", name},
               {"uid", daemon_set["metadata"]["uid"]},
               {"controller", true}}}}});
  }
  // What the kubelet would give the agent's pod.
  FakeAgent::Access AccessOfAgent(const std::string& pool = "default") const {
    const json trust = Get("configmap", "flamefleet-operator-trust", kNamespace);
    std::string token = server_->MustKubectl(
        {"create", "token", "flamefleet-agent", "-n", kNamespace, "--audience=flamefleet-operator",
         "--bound-object-kind=Pod", "--bound-object-name=agent-" + pool + "-n1"});
    token.erase(token.find_last_not_of('\n') + 1);
    return {operator_->agents_address(), "flamefleet-operator.flamefleet-system.svc",
            trust.is_null() ? "" : trust["data"]["ca.crt"].get<std::string>(), token};
  }
  // A cluster with a pool, a store, a target, and one pod of it whose agent is connected.
  std::unique_ptr<FakeAgent> StartFleet() {
    Apply(Pool());
    Apply(StoreBackend());
    Apply(Target());
    EXPECT_TRUE(Eventually([] { return !DaemonSet().is_null(); }));
    RunAgentPod();
    RunCheckout("checkout-1");
    auto agent = std::make_unique<FakeAgent>(AccessOfAgent(), "n1", "default");
    EXPECT_TRUE(Eventually([&] { return agent->Has("checkout-1"); }));
    return agent;
  }
  static json Condition(const json& object, const std::string& type) {
    if (object.is_null() || !object.contains("status")) return json::object();
    for (const json& condition : object["status"].value("conditions", json::array())) {
      if (condition["type"] == type) return condition;
    }
    return json::object();
  }
  static bool TargetIs(const std::string& ready) {
    return Condition(Get("pt", "checkout", "shop"), "Ready").value("status", "") == ready;
  }
  double Metric(const std::string& series) const { return operator_->Metric(series); }
  // Has the pool reconciled and waits for it.
  void ReconcilePool() {
    const std::string series =
        "controller_runtime_reconcile_time_seconds_count{controller=\"pool\"}";
    const double before = Metric(series);
    server_->MustKubectl({"annotate", "ap", "default", "--overwrite",
                          "test=" + std::to_string(static_cast<int>(before))});
    ASSERT_TRUE(Eventually([&] { return Metric(series) > before; }));
  }

  static ApiServer* server_;
  static std::string audit_;  // path of its log and of its policy, without their endings
  std::unique_ptr<OperatorProcess> operator_;
};

ApiServer* OperatorTest::server_ = nullptr;
std::string OperatorTest::audit_;

TEST_F(OperatorTest, APoolBecomesADaemonSetWithItsResources) {
  Apply(Pool({{"resources", {{"limits", {{"memory", "200Mi"}}}}}}));
  ASSERT_TRUE(Eventually([] { return !DaemonSet().is_null(); }));
  const json daemon_set = DaemonSet();
  const json container = daemon_set["spec"]["template"]["spec"]["containers"][0];
  EXPECT_EQ(container["resources"]["limits"]["memory"], "200Mi");
  EXPECT_EQ(container["image"], "example.org/flamefleet:test");
  const json owner = daemon_set["metadata"]["ownerReferences"][0];
  EXPECT_EQ(owner["kind"], "AgentPool");
  EXPECT_EQ(owner["uid"], Get("ap", "default", "")["metadata"]["uid"]);
}

TEST_F(OperatorTest, ChangedResourcesChangeTheLimitsAndNothingElse) {
  Apply(Pool({{"resources", {{"limits", {{"memory", "200Mi"}}}}}}));
  ASSERT_TRUE(Eventually([] { return !DaemonSet().is_null(); }));
  json before = DaemonSet();
  Apply(Pool({{"resources", {{"limits", {{"memory", "300Mi"}}}}}}));
  const json::json_pointer limit("/spec/template/spec/containers/0/resources/limits/memory");
  ASSERT_TRUE(Eventually([&] { return DaemonSet()[limit] == "300Mi"; }));
  json after = DaemonSet();
  before[limit] = after[limit];
  EXPECT_EQ(before["spec"], after["spec"]);
  for (json* object : {&before, &after}) {
    // The server's own book-keeping; the annotation repeats the generation.
    for (const char* moving : {"resourceVersion", "generation", "managedFields", "annotations"}) {
      (*object)["metadata"].erase(moving);
    }
  }
  EXPECT_EQ(before["metadata"], after["metadata"]);
}

TEST_F(OperatorTest, ASecondReconcileWritesNothing) {
  Apply(Pool());
  ASSERT_TRUE(Eventually([] { return !DaemonSet().is_null(); }));
  ReconcilePool();
  const std::string version = Version(DaemonSet());
  ReconcilePool();
  ReconcilePool();
  EXPECT_EQ(Version(DaemonSet()), version);
}

TEST_F(OperatorTest, WhatSomeoneChangesInOurObjectsIsRepaired) {
  Apply(Pool());
  ASSERT_TRUE(Eventually([] { return !DaemonSet().is_null(); }));
  server_->MustKubectl({"set", "image", "daemonset/flamefleet-agent-default", "-n", kNamespace,
                        "agent=example.org/other"});
  const json::json_pointer image("/spec/template/spec/containers/0/image");
  EXPECT_TRUE(Eventually([&] { return DaemonSet()[image] == "example.org/flamefleet:test"; }));
  server_->MustKubectl({"delete", "daemonset", "flamefleet-agent-default", "-n", kNamespace});
  EXPECT_TRUE(Eventually([] { return !DaemonSet().is_null(); }));
}

TEST_F(OperatorTest, AManagedStoreComesAndGoesWithItsField) {
  Apply(StoreBackend());
  const auto there = [](const char* kind) {
    return Exists(kind, "flamefleet-store-main", kNamespace);
  };
  ASSERT_TRUE(Eventually([&] { return there("deployment") && there("service"); }));
  EXPECT_TRUE(Eventually([] {
    return Get("pb", "main", "").value("/status/endpoint"_json_pointer, "") ==
           "https://flamefleet-store-main.flamefleet-system.svc:4443";
  }));
  Apply({{"apiVersion", "flamefleet.dev/v1alpha1"},
         {"kind", "ProfilingBackend"},
         {"metadata", {{"name", "main"}}},
         {"spec", {{"default", true}, {"type", "Pyroscope"}, {"endpoint", "http://p:4040"}}}});
  EXPECT_TRUE(Eventually([&] { return !there("deployment") && !there("service"); }));
}

TEST_F(OperatorTest, AManagedStoreHasKeysThatAgentsGetAndAPasswordForPeople) {
  const auto agent = StartFleet();
  const auto value = [](const std::string& secret, const std::string& key) {
    const json object = Get("secret", secret, kNamespace);
    if (object.is_null()) return std::string();
    return *DecodeBase64(object.value(json::json_pointer("/data/" + key), ""));
  };
  const auto authorization = [&] { return agent->Config().backends(0).authorization(); };
  ASSERT_TRUE(Eventually([&] { return !authorization().empty(); }));
  const std::string token = value("flamefleet-stores", "main.token");
  EXPECT_EQ(authorization(), "Bearer " + token);
  EXPECT_FALSE(agent->Config().backends(0).hold());
  EXPECT_EQ(agent->Config().backends(0).ca_pem(), value("flamefleet-stores", "trust"));
  const std::string reader = "flamefleet-store-main-reader";
  EXPECT_EQ(value(reader, "username"), "reader");
  const auto auth = [&] { return value("flamefleet-stores", "main.auth"); };
  EXPECT_EQ(auth(),
            "write bearer " + token + "\nread basic reader:" + value(reader, "password") + "\n");
  EXPECT_EQ(Get("secret", reader, kNamespace)["metadata"]["ownerReferences"][0]["name"], "main");

  // Another password, one that is none, and none at all.
  const auto put = [&](const std::string& password) {
    server_->MustKubectl({"patch", "secret", reader, "-n", kNamespace, "-p",
                          json{{"stringData", {{"password", password}}}}.dump()});
  };
  put("other");
  EXPECT_TRUE(Eventually([&] { return auth().ends_with("read basic reader:other\n"); }));
  put("two words");
  EXPECT_TRUE(Eventually([&] {
    return Condition(Get("pb", "main", ""), "Ready")
               .value("message", "")
               .find("want username and password") != std::string::npos;
  }));
  EXPECT_EQ(auth(), "write bearer " + token + "\n");
  server_->MustKubectl({"delete", "secret", reader, "-n", kNamespace});
  EXPECT_TRUE(Eventually([&] { return auth().find("read basic reader:") != std::string::npos; }));
  EXPECT_EQ(authorization(), "Bearer " + token);

  server_->MustKubectl({"delete", "secret", "flamefleet-stores", "-n", kNamespace});
  EXPECT_TRUE(
      Eventually([&] { return !authorization().empty() && authorization() != "Bearer " + token; }));
}

TEST_F(OperatorTest, AStoreThatGetsAVolumeLosesItsDeployment) {
  Apply(StoreBackend());
  const auto there = [](const char* kind) {
    return Exists(kind, "flamefleet-store-main", kNamespace);
  };
  ASSERT_TRUE(Eventually([&] { return there("deployment"); }));
  json backend = StoreBackend();
  backend["spec"]["store"]["managed"]["storage"] = {{"size", "1Gi"}};
  server_->MustKubectl({"replace", "-f", "-"}, backend.dump());
  ASSERT_TRUE(Eventually([&] { return there("statefulset") && !there("deployment"); }));
  server_->MustKubectl({"replace", "-f", "-"}, StoreBackend().dump());
  EXPECT_TRUE(Eventually([&] { return there("deployment") && !there("statefulset"); }));
  EXPECT_TRUE(there("service"));
}

TEST_F(OperatorTest, CredentialsGoToTheAgentsAndNowhereElse) {
  const auto agent = StartFleet();
  json backend = StoreBackend();
  backend["spec"] = {{"default", true},
                     {"type", "Pyroscope"},
                     {"endpoint", "https://pyroscope.example"},
                     {"tenantID", "team-a"},
                     {"tls", {{"serverName", "p.internal"}}},
                     {"auth", {{"bearerTokenSecretRef", {{"name", "login"}}}}}};
  server_->MustKubectl({"replace", "-f", "-"}, backend.dump());
  const auto condition = [](const std::string& type) {
    return Condition(Get("pb", "main", ""), type);
  };
  // Missing: said on the backend and on the target, with names; the agent keeps what it has.
  ASSERT_TRUE(Eventually([&] { return condition("Stalled").value("status", "") == "True"; }));
  EXPECT_EQ(condition("Ready")["message"],
            "Secret \"login\" of namespace flamefleet-system does not exist");
  EXPECT_TRUE(Eventually([&] {
    return Condition(Get("pt", "checkout", "shop"), "Ready").value("reason", "") ==
           "SecretNotFound";
  }));
  EXPECT_TRUE(Eventually([&] { return agent->Config().backends(0).hold(); }));

  const auto put = [](const std::string& token) {
    Apply({{"apiVersion", "v1"},
           {"kind", "Secret"},
           {"metadata", {{"name", "login"}, {"namespace", kNamespace}}},
           {"stringData", {{"token", token}}}});
  };
  put("hush-1");
  ASSERT_TRUE(
      Eventually([&] { return agent->Config().backends(0).authorization() == "Bearer hush-1"; }));
  EXPECT_FALSE(agent->Config().backends(0).hold());
  EXPECT_EQ(agent->Config().backends(0).tenant_id(), "team-a");
  EXPECT_EQ(agent->Config().backends(0).server_name(), "p.internal");
  EXPECT_TRUE(Eventually([&] { return agent->Has("checkout-1"); }));
  put("hush-2");
  EXPECT_TRUE(
      Eventually([&] { return agent->Config().backends(0).authorization() == "Bearer hush-2"; }));
  EXPECT_EQ(agent->snapshots(), 1);
  EXPECT_TRUE(Eventually([&] { return condition("Stalled").value("status", "") == "False"; }));
  EXPECT_THAT(Get("pb", "main", "").dump(), Not(HasSubstr("hush")));
  server_->MustKubectl({"delete", "secret", "login", "-n", kNamespace});
  EXPECT_TRUE(Eventually([&] { return agent->Config().backends(0).hold(); }));
  EXPECT_EQ(agent->Config().backends(0).authorization(), "");
}

TEST_F(OperatorTest, AnAgentGetsASnapshotAndThenWhatChanges) {
  const auto agent = StartFleet();
  EXPECT_EQ(agent->Config().sampling_frequency_hz(), 19U);
  ASSERT_EQ(agent->Config().backends_size(), 1);
  EXPECT_EQ(agent->Config().backends(0).endpoint(),
            "https://flamefleet-store-main.flamefleet-system.svc:4443");
  const auto pod = agent->Pod("checkout-1");
  ASSERT_EQ(pod.containers_size(), 1);
  EXPECT_EQ(pod.containers(0).id(), "checkout-1");
  EXPECT_EQ(pod.containers(0).backend(), "main");
  EXPECT_EQ(pod.containers(0).labels().at("namespace"), "shop");

  RunCheckout("checkout-2");
  EXPECT_TRUE(Eventually([&] { return agent->Pod("checkout-2").containers_size() == 1; }));
  RunPod("shop", "annotated",
         {{"annotations",
           {{"pyroscope.io/scrape", "true"}, {"pyroscope.io/profile-cpu-enabled", "true"}}}});
  EXPECT_TRUE(Eventually([&] { return agent->Has("annotated"); }));
  server_->MustKubectl({"annotate", "pod", "annotated", "-n", "shop", "pyroscope.io/scrape-"});
  EXPECT_TRUE(Eventually([&] { return !agent->Has("annotated"); }));
  server_->MustKubectl({"delete", "pt", "checkout", "-n", "shop"});
  EXPECT_TRUE(Eventually([&] { return agent->Assigned().empty(); }));
  Apply(Pool({{"sampling", {{"frequency", 97}}}}));
  EXPECT_TRUE(Eventually([&] { return agent->Config().sampling_frequency_hz() == 97U; }));
  EXPECT_EQ(agent->snapshots(), 1);
}

TEST_F(OperatorTest, ATargetIsReadyWhenItsPodsAreReportedAsDelivered) {
  const auto agent = StartFleet();
  ASSERT_TRUE(Eventually([] { return TargetIs("False"); }));
  agent->ReportAllDelivering();
  ASSERT_TRUE(Eventually([] { return TargetIs("True"); }));
  const json status = Get("pt", "checkout", "shop")["status"];
  EXPECT_EQ(status["pods"]["matched"], 1);
  EXPECT_EQ(status["pods"]["profiled"], 1);
  server_->MustKubectl(
      {"wait", "--for=condition=Ready", "--timeout=5s", "pt/checkout", "-n", "shop"});
}

TEST_F(OperatorTest, AFailingPodIsNamedWithItsReason) {
  const auto agent = StartFleet();
  agent->ReportAllDelivering("checkout-1", "ConnectionRefused");
  ASSERT_TRUE(Eventually([] {
    return !Get("pt", "checkout", "shop")
                .value("/status/failingPods"_json_pointer, json::array())
                .empty();
  }));
  const json pod = Get("pt", "checkout", "shop")["status"]["failingPods"][0];
  EXPECT_EQ(pod["name"], "checkout-1");
  EXPECT_EQ(pod["node"], "n1");
  EXPECT_EQ(pod["reason"], "ConnectionRefused");
  EXPECT_TRUE(TargetIs("False"));
}

TEST_F(OperatorTest, APodWhoseAnnotationsAreWrongSaysSoItself) {
  const auto agent = StartFleet();
  RunPod("shop", "wrong", {{"annotations", {{"pyroscope.io/scrape", "perhaps"}}}});
  const auto events = [] {
    return server_
        ->Kubectl({"get", "events", "-n", "shop", "--field-selector",
                   "involvedObject.name=wrong,type=Warning"})
        .text;
  };
  EXPECT_TRUE(Eventually([&] { return events().find("InvalidAnnotation") != std::string::npos; }))
      << events();
}

TEST_F(OperatorTest, AKilledOperatorComesBackWithoutMovingAnything) {
  const auto agent = StartFleet();
  agent->ReportAllDelivering();
  const auto versions = [] {
    return std::vector<std::string>{
        Version(DaemonSet()),
        Version(Get("deployment", "flamefleet-store-main", kNamespace)),
        Version(Get("service", "flamefleet-store-main", kNamespace)),
        Version(Get("pt", "checkout", "shop")),
        Version(Get("pb", "main", "")),
        Version(Get("ap", "default", "")),
    };
  };
  ASSERT_TRUE(Eventually([] { return TargetIs("True"); }));
  ASSERT_TRUE(operator_->Settles(*server_));
  std::vector<std::string> before = versions();
  const auto assigned = agent->Assigned();

  operator_->End(SIGKILL);
  server_->MustKubectl({"delete", "lease", "flamefleet-operator", "-n", kNamespace});  // at once
  operator_->Start();
  ASSERT_TRUE(Eventually([&] { return agent->snapshots() == 2; }));
  EXPECT_EQ(agent->Assigned(), assigned);
  ReconcilePool();
  before.back() = Version(Get("ap", "default", ""));  // the test annotated it
  EXPECT_EQ(versions(), before);
  EXPECT_TRUE(TargetIs("True"));
}

TEST_F(OperatorTest, TwoPoolsOnANodeAreAConflictOfTheYoungerOne) {
  const auto agent = StartFleet();
  json younger = Pool();
  younger["metadata"]["name"] = "younger";
  Apply(younger);
  RunAgentPod("younger");
  FakeAgent idle(AccessOfAgent("younger"), "n1", "younger");
  server_->MustKubectl({"wait", "--for=condition=Conflict", "--timeout=60s", "ap/younger"});
  EXPECT_THAT(std::string(Condition(Get("ap", "younger", ""), "Conflict")["message"]),
              HasSubstr("1 node belongs to an older AgentPool: n1;"));
  EXPECT_EQ(Condition(Get("ap", "default", ""), "Conflict"), json::object());
  ASSERT_TRUE(Eventually([&] { return idle.snapshots() > 0; }));
  EXPECT_TRUE(idle.Assigned().empty());
  EXPECT_TRUE(agent->Has("checkout-1"));
  EXPECT_EQ(agent->snapshots(), 1);
  // Without the older one the node is the younger one's.
  server_->MustKubectl({"delete", "ap", "default"});
  EXPECT_TRUE(Eventually([&] { return idle.Has("checkout-1") && !agent->Has("checkout-1"); }));
  EXPECT_EQ(idle.snapshots(), 1);
}

TEST_F(OperatorTest, APoolProfilesAllPodsOfTheNamespacesThatItSelects) {
  Apply(StoreBackend());
  Apply(Pool({{"scope", "AllPods"},
              {"optIn", {{"namespaceSelector", {{"matchLabels", {{"profiled", "yes"}}}}}}}}));
  RunAgentPod();
  RunPod("shop", "plain", json::object());
  RunPod("shop", "vetoed", {{"annotations", {{"pyroscope.io/scrape", "false"}}}});
  const FakeAgent agent(AccessOfAgent(), "n1", "default");
  ASSERT_TRUE(Eventually([&] { return agent.snapshots() > 0; }));
  EXPECT_TRUE(agent.Assigned().empty());
  server_->MustKubectl({"label", "namespace", "shop", "profiled=yes"});
  EXPECT_TRUE(Eventually([&] { return agent.Has("plain"); }));
  EXPECT_FALSE(agent.Has("vetoed"));
  server_->MustKubectl({"label", "namespace", "shop", "profiled-"});
  EXPECT_TRUE(Eventually([&] { return agent.Assigned().empty(); }));
}

TEST_F(OperatorTest, ThePoolOfANodeSaysWhetherItsOwnProcessesAreProfiled) {
  Apply(Pool({{"scope", "Node"}}));
  RunAgentPod();
  FakeAgent agent(AccessOfAgent(), "n1", "default");
  agent.ReportAllDelivering();  // else statuses wait for it
  EXPECT_TRUE(Eventually([] {
    return Condition(Get("ap", "default", ""), "Degraded").value("reason", "") == "NoBackend";
  }));
  EXPECT_FALSE(agent.Has(""));
  Apply(StoreBackend());
  ASSERT_TRUE(Eventually([&] { return agent.Has(""); }));
  const auto host = agent.Pod("");
  ASSERT_EQ(host.containers_size(), 1);
  EXPECT_EQ(host.containers(0).backend(), "main");
  EXPECT_EQ(host.containers(0).labels().at("node"), "n1");
  Apply(Pool({{"scope", "AllPods"}}));
  EXPECT_TRUE(Eventually([&] { return !agent.Has(""); }));
  EXPECT_TRUE(Eventually(
      [] { return Condition(Get("ap", "default", ""), "Degraded").value("status", "").empty(); }));
}

TEST_F(OperatorTest, ADaemonSetThatIsRefusedIsSaidInTheConditions) {
  const json toleration = {
      {"key", "a"}, {"operator", "Exists"}, {"effect", "NoSchedule"}, {"tolerationSeconds", 5}};
  Apply(Pool({{"tolerations", json::array({toleration})}}));
  server_->MustKubectl({"wait", "--for=condition=Accepted=False", "--timeout=60s", "ap/default"});
  const json stalled = Condition(Get("ap", "default", ""), "Stalled");
  EXPECT_EQ(stalled["reason"], "DaemonSetRefused");
  EXPECT_THAT(std::string(stalled["message"]), HasSubstr("tolerations[0].effect"));
  Apply(Pool());
  server_->MustKubectl({"wait", "--for=condition=Accepted", "--timeout=60s", "ap/default"});
}

TEST_F(OperatorTest, PodsThatCannotBeCreatedAreSaidInTheConditions) {
  Apply(Pool());
  ASSERT_TRUE(Eventually([] { return !DaemonSet().is_null(); }));
  const json daemon_set = DaemonSet();
  const json counts = {{"status",
                        {{"observedGeneration", 1},
                         {"desiredNumberScheduled", 1},
                         {"currentNumberScheduled", 0},
                         {"numberMisscheduled", 0},
                         {"numberReady", 0}}}};
  server_->MustKubectl({"patch", "daemonset", "flamefleet-agent-default", "-n", kNamespace,
                        "--subresource=status", "-p", counts.dump()});
  Apply({{"apiVersion", "v1"},
         {"kind", "Event"},
         {"metadata", {{"name", "refused"}, {"namespace", kNamespace}}},
         {"involvedObject",
          {{"apiVersion", "apps/v1"},
           {"kind", "DaemonSet"},
           {"namespace", kNamespace},
           {"name", "flamefleet-agent-default"},
           {"uid", daemon_set["metadata"]["uid"]}}},
         {"type", "Warning"},
         {"reason", "FailedCreate"},
         {"message", "Error creating: pods is forbidden: violates PodSecurity \"baseline\""},
         {"lastTimestamp", "2026-11-29T17:00:00Z"}});
  EXPECT_TRUE(Eventually([] {
    return Condition(Get("ap", "default", ""), "Ready").value("reason", "") == "PodsNotCreated";
  }));
  EXPECT_THAT(std::string(Condition(Get("ap", "default", ""), "Stalled")["message"]),
              HasSubstr("pod-security.kubernetes.io/enforce=privileged"));
}

TEST_F(OperatorTest, AStopIsCleanAndQuick) {
  const auto agent = StartFleet();
  const int status = operator_->End(SIGTERM);
  operator_.reset();
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST_F(OperatorTest, ItsStateCanBeLookedAtFromThisHostOnly) {
  const auto agent = StartFleet();
  EXPECT_EQ(operator_->Http("/debug/state").status, 404);
  json state;
  EXPECT_TRUE(Eventually([&] {
    state = json::parse(operator_->Debug("/debug/state").body, nullptr, false);
    return state.value("/streams/items/0/connected"_json_pointer, false);
  })) << state.dump(1);
  EXPECT_EQ(state["leading"], true);
  EXPECT_EQ(state["targets"]["items"][0]["namespace"], "shop");
  EXPECT_EQ(state["pools"]["items"][0]["name"], "default");
  EXPECT_TRUE(state["queue"]["items"].is_array());
  // On an address that others can reach it does not start.
  OperatorProcess open(server_->kubeconfig(), {"--debug-listen=0.0.0.0:0"});
  const int status = open.Wait();
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 1) << status;
}

TEST_F(OperatorTest, ItsMetricsPassPromtool) {
  const std::string file = testing::TempDir() + "/operator_metrics.txt";
  const std::string text = operator_->Http("/metrics").body;
  EXPECT_THAT(text, HasSubstr("workqueue_depth"));
  FF_CHECK(WriteFileAtomically(file, text, 0600).ok());
  EXPECT_EQ(std::system(("promtool check metrics < " + file).c_str()), 0);
}

TEST_F(OperatorTest, CreateMissingLeavesWhatIsThereAsItIs) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "starter";
  std::filesystem::remove_all(folder);  // of an earlier run
  std::filesystem::create_directories(folder);
  for (const char* file : {"agentpool.yaml", "profilingbackend.yaml"}) {
    std::filesystem::copy_file(std::filesystem::path("config/starter") / file, folder / file,
                               std::filesystem::copy_options::overwrite_existing);
  }
  const std::string command = std::string(FF_OPERATOR_BINARY) +
                              " create-missing --kubeconfig=" + server_->kubeconfig() +
                              " --from=" + folder.string();
  Apply(Pool({{"sampling", {{"frequency", 97}}}}));
  EXPECT_EQ(std::system(command.c_str()), 0);
  EXPECT_EQ(Get("ap", "default", "")["spec"]["sampling"]["frequency"], 97);
  EXPECT_EQ(Get("pb", "default", "")["spec"]["type"], "Store");
  EXPECT_EQ(std::system(command.c_str()), 0);  // again: all is there
  // Nothing but our kinds.
  std::filesystem::copy_file("config/starter/job.yaml", folder / "job.yaml",
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_NE(std::system(command.c_str()), 0);
}

// With the rights of the component `namespaced` and of one namespace beside its own, and no others.
class NamespacedOperatorTest : public OperatorTest {
 protected:
  void SetUp() override {
    const std::string overlay = testing::TempDir() + "/ff-namespaced-" + std::to_string(getpid());
    std::filesystem::create_directory(overlay);
    const auto from_overlay = [&](const char* path) {
      return std::filesystem::relative(path, std::filesystem::canonical(overlay)).string();
    };
    std::ofstream(overlay + "/kustomization.yaml")
        << json{{"resources", json::array({from_overlay("config/operator")})},
                {"components", json::array({from_overlay("config/namespaced")})}};
    server_->MustKubectl({"apply", "--server-side", "--force-conflicts", "-k", overlay});
    server_->MustKubectl({"apply", "-f", "config/samples/watched_namespace.yaml"});
    std::filesystem::remove_all(overlay);
    // One of each kind of role and binding: the authorizer sees them a moment later.
    ASSERT_TRUE(Eventually([&] {
      return May("list", "pods", "shop") && May("list", "daemonsets.apps", kNamespace) &&
             May("create", "events.events.k8s.io", "default") &&
             May("create", "tokenreviews.authentication.k8s.io", "default");
    }));
    operator_ = std::make_unique<OperatorProcess>(
        OwnKubeconfig(), std::vector<std::string>{"--watch-namespace=shop"});
    ASSERT_TRUE(Eventually([&] { return operator_->Leads(); }));
  }

  static bool May(const char* verb, const char* resource, const char* ns) {
    return server_
               ->Kubectl({"auth", "can-i", verb, resource, "-n", ns,
                          "--as=" + std::string(kOperatorAccount)})
               .exit_code == 0;
  }

  static std::string OwnKubeconfig() {
    json config = json::parse(server_->MustKubectl({"config", "view", "--raw", "-o", "json"}));
    std::string token =
        server_->MustKubectl({"create", "token", "flamefleet-operator", "-n", kNamespace});
    token.erase(token.find_last_not_of('\n') + 1);
    config["users"][0]["user"] = {{"token", token}};
    const std::string path = audit_ + ".kubeconfig";
    std::ofstream(path) << config;
    return path;
  }

  // The requests of the operator, as "<verb> <URI>", by the code of the answer.
  static std::map<int, std::set<std::string>> Requests() {
    std::map<int, std::set<std::string>> requests;
    std::ifstream log(audit_ + ".log");
    for (std::string line; std::getline(log, line);) {
      const json event = json::parse(line, nullptr, false);
      if (!event.is_object() || !event.contains("responseStatus")) continue;  // its last is half
      requests[event["responseStatus"].value("code", 0)].insert(
          event["verb"].get<std::string>() + " " + event["requestURI"].get<std::string>());
    }
    return requests;
  }
};

TEST_F(NamespacedOperatorTest, ItWorksWithItsRightsAndAsksForNothingElse) {
  const auto agent = StartFleet();
  agent->ReportAllDelivering();
  EXPECT_TRUE(Eventually([&] { return TargetIs("True"); }));
  RunPod("shop", "wrong", {{"annotations", {{"pyroscope.io/scrape", "perhaps"}}}});
  EXPECT_TRUE(Eventually([&] {
    return server_->Kubectl({"get", "events", "-n", "shop"}).text.find("InvalidAnnotation") !=
           std::string::npos;
  }));
  server_->MustKubectl({"delete", "pod", "checkout-1", "-n", "shop", "--force"});
  EXPECT_TRUE(Eventually([&] { return !agent->Has("checkout-1"); }));
  // An event about a cluster's object: a DaemonSet that the API server refuses.
  const json toleration = {
      {"key", "a"}, {"operator", "Exists"}, {"effect", "NoSchedule"}, {"tolerationSeconds", 5}};
  Apply(Pool({{"tolerations", json::array({toleration})}}));
  EXPECT_TRUE(Eventually([&] {
    return server_->Kubectl({"get", "events", "-n", "default"}).text.find("ApplyRefused") !=
           std::string::npos;
  }));
  const auto requests = Requests();
  EXPECT_THAT(requests.contains(403) ? requests.at(403) : std::set<std::string>(), IsEmpty());
  EXPECT_TRUE(requests.contains(200));
}

TEST_F(NamespacedOperatorTest, ATargetElsewhereIsToldThatNobodySeesItsPods) {
  json target = Target();
  target["metadata"]["namespace"] = "default";
  Apply(target);
  EXPECT_TRUE(Eventually([&] {
    return Condition(Get("pt", "checkout", "default"), "Ready").value("reason", "") ==
           "NamespaceNotWatched";
  }));
  EXPECT_THAT(Condition(Get("pt", "checkout", "default"), "Accepted")["message"].get<std::string>(),
              HasSubstr("flamefleet-system, shop"));
}

TEST_F(NamespacedOperatorTest, APoolIsToldThatItsSelectorOfNamespacesSelectsNothing) {
  Apply(Pool({{"optIn", {{"namespaceSelector", {{"matchLabels", {{"team", "a"}}}}}}}}));
  EXPECT_TRUE(Eventually([&] {
    return Condition(Get("ap", "default", ""), "Degraded").value("reason", "") ==
           "NamespacesNotRead";
  }));
}

}  // namespace
}  // namespace flamefleet
