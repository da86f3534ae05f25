// SPDX-License-Identifier: Apache-2.0
#include "tests/operator/operator_fixture.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace flamefleet {

ApiServer* OperatorTest::server_ = nullptr;
std::string OperatorTest::audit_;

void OperatorTest::SetUpTestSuite() {
  // All that the operator's own account asks of the API server.
  audit_ = testing::TempDir() + "/ff-audit-" + std::to_string(getpid());
  std::ofstream(audit_ + ".yaml") << json{
      {"apiVersion", "audit.k8s.io/v1"},
      {"kind", "Policy"},
      {"rules",
       {{{"level", "Metadata"}, {"users", json::array({kOperatorAccount})}}, {{"level", "None"}}}}};
  server_ = new ApiServer(
      {"--audit-policy-file=" + audit_ + ".yaml", "--audit-log-path=" + audit_ + ".log"});
  server_->MustKubectl({"create", "namespace", kNamespace});
  server_->MustKubectl({"create", "namespace", "shop"});
  server_->MustKubectl({"create", "serviceaccount", "flamefleet-agent", "-n", kNamespace});
}

void OperatorTest::TearDownTestSuite() {
  delete server_;
  for (const char* ending : {".yaml", ".log", ".kubeconfig"})
    std::filesystem::remove(audit_ + ending);
}

void OperatorTest::TearDown() {
  operator_.reset();
  server_->MustKubectl({"delete", "pt,pb,ap", "--all", "-A"});
  server_->MustKubectl({"delete", "pods", "--all", "-A", "--force", "--grace-period=0"});
  // Nobody collects the garbage here.
  server_->MustKubectl(
      {"delete", "daemonset,deployment,statefulset,service", "--all", "-n", kNamespace});
}

void OperatorTest::Start() {
  operator_ = std::make_unique<OperatorProcess>(server_->kubeconfig());
  ASSERT_TRUE(Eventually([&] { return operator_->Leads(); }));
}

void OperatorTest::Apply(const json& object) {
  server_->MustKubectl({"apply", "--server-side", "-f", "-"}, object.dump());
}

OperatorTest::json OperatorTest::Get(const std::string& kind, const std::string& name,
                                     const std::string& ns) {
  const auto output = server_->Kubectl(
      {"get", kind, name, "-n", ns, "-o", "json", "--show-managed-fields", "--ignore-not-found"});
  return output.text.empty() ? json() : json::parse(output.text);
}

OperatorTest::json OperatorTest::Pool(const json& spec) {
  return {{"apiVersion", "flamefleet.dev/v1alpha1"},
          {"kind", "AgentPool"},
          {"metadata", {{"name", "default"}}},
          {"spec", spec}};
}

OperatorTest::json OperatorTest::StoreBackend() {
  return {{"apiVersion", "flamefleet.dev/v1alpha1"},
          {"kind", "ProfilingBackend"},
          {"metadata", {{"name", "main"}}},
          {"spec",
           {{"default", true},
            {"type", "Store"},
            {"store", {{"managed", {{"storage", {{"ephemeral", true}}}}}}}}}};
}

OperatorTest::json OperatorTest::Target() {
  return {{"apiVersion", "flamefleet.dev/v1alpha1"},
          {"kind", "ProfilingTarget"},
          {"metadata", {{"name", "checkout"}, {"namespace", "shop"}}},
          {"spec",
           {{"selector", {{"matchLabels", {{"app", "checkout"}}}}},
            {"profiles", {{{"type", "cpu"}}}}}}};
}

void OperatorTest::RunPod(const std::string& ns, const std::string& name, const json& metadata) {
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
  const json status = {{"status",
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

void OperatorTest::RunAgentPod(const std::string& pool) {
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

FakeAgent::Access OperatorTest::AccessOfAgent(const std::string& pool) const {
  const json trust = Get("configmap", "flamefleet-operator-trust", kNamespace);
  std::string token = server_->MustKubectl(
      {"create", "token", "flamefleet-agent", "-n", kNamespace, "--audience=flamefleet-operator",
       "--bound-object-kind=Pod", "--bound-object-name=agent-" + pool + "-n1"});
  token.erase(token.find_last_not_of('\n') + 1);
  return {operator_->agents_address(), "flamefleet-operator.flamefleet-system.svc",
          trust.is_null() ? "" : trust["data"]["ca.crt"].get<std::string>(), token};
}

std::unique_ptr<FakeAgent> OperatorTest::StartFleet() {
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

OperatorTest::json OperatorTest::Condition(const json& object, const std::string& type) {
  if (object.is_null() || !object.contains("status")) return json::object();
  for (const json& condition : object["status"].value("conditions", json::array())) {
    if (condition["type"] == type) return condition;
  }
  return json::object();
}

void OperatorTest::ReconcilePool() {
  const std::string series = "controller_runtime_reconcile_time_seconds_count{controller=\"pool\"}";
  const double before = Metric(series);
  server_->MustKubectl({"annotate", "ap", "default", "--overwrite",
                        "test=" + std::to_string(static_cast<int>(before))});
  ASSERT_TRUE(Eventually([&] { return Metric(series) > before; }));
}

}  // namespace flamefleet
