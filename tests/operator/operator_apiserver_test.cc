// SPDX-License-Identifier: Apache-2.0
// What the operator makes of pools, targets and pods.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/operator/operator_fixture.h"

namespace flamefleet {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

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

}  // namespace
}  // namespace flamefleet
