// SPDX-License-Identifier: Apache-2.0
// OperatorTest: the operator's binary against a real kube-apiserver and a real gRPC client in the
// place of an agent. Pods are objects without a kubelet: the test says that they run.
//
// Thread: one. Errors: a step that fails fails the test.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/operator/apiserver_fixture.h"
#include "tests/operator/fake_agent.h"
#include "tests/operator/operator_process.h"

namespace flamefleet {

class OperatorTest : public testing::Test {
 protected:
  using json = nlohmann::json;
  static constexpr const char* kNamespace = kOperatorNamespace;
  static constexpr const char* kOperatorAccount =
      "system:serviceaccount:flamefleet-system:flamefleet-operator";

  static void SetUpTestSuite();
  static void TearDownTestSuite();
  void SetUp() override { Start(); }
  void TearDown() override;

  void Start();

  static void Apply(const json& object);
  // Empty when it is not there.
  static json Get(const std::string& kind, const std::string& name, const std::string& ns);
  static bool Exists(const std::string& kind, const std::string& name, const std::string& ns) {
    return !Get(kind, name, ns).is_null();
  }
  static std::string Version(const json& object) {
    return object.is_null() ? "" : object["metadata"]["resourceVersion"];
  }
  static json Pool(const json& spec = json::object());
  static json StoreBackend();
  static json Target();
  static json DaemonSet() { return Get("daemonset", "flamefleet-agent-default", kNamespace); }

  // A pod that runs on node n1.
  static void RunPod(const std::string& ns, const std::string& name, const json& metadata);
  static void RunCheckout(const std::string& name) {
    RunPod("shop", name, {{"labels", {{"app", "checkout"}}}});
  }
  // The pod that the DaemonSet controller would make.
  static void RunAgentPod(const std::string& pool = "default");
  // What the kubelet would give the agent's pod.
  FakeAgent::Access AccessOfAgent(const std::string& pool = "default") const;
  // A cluster with a pool, a store, a target, and one pod of it whose agent is connected.
  std::unique_ptr<FakeAgent> StartFleet();

  static json Condition(const json& object, const std::string& type);
  static bool TargetIs(const std::string& ready) {
    return Condition(Get("pt", "checkout", "shop"), "Ready").value("status", "") == ready;
  }
  double Metric(const std::string& series) const { return operator_->Metric(series); }
  // Has the pool reconciled and waits for it.
  void ReconcilePool();

  static ApiServer* server_;
  static std::string audit_;  // path of its log and of its policy, without their endings
  std::unique_ptr<OperatorProcess> operator_;
};

}  // namespace flamefleet
