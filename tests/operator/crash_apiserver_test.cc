// SPDX-License-Identifier: Apache-2.0
// The operator's binary is killed after each of its writes in turn, before it learns that the write
// was done, and started again: what is there in the end is what an uninterrupted run makes.
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/operator/apiserver_fixture.h"
#include "tests/operator/operator_process.h"
#include "tests/operator/write_relay.h"

namespace flamefleet {
namespace {

using nlohmann::json;

json Object(const std::string& kind, const std::string& ns, const std::string& name,
            const json& spec) {
  json object = {{"apiVersion", "flamefleet.dev/v1alpha1"},
                 {"kind", kind},
                 {"metadata", {{"name", name}}},
                 {"spec", spec}};
  if (!ns.empty()) object["metadata"]["namespace"] = ns;
  return object;
}

// Without what differs between any two runs.
json Normal(json list) {
  json objects = json::array();
  for (json& object : list["items"]) {
    const json& metadata = object["metadata"];
    json kept = {{"name", metadata["name"]}, {"labels", metadata.value("labels", json::object())}};
    for (const json& owner : metadata.value("ownerReferences", json::array()))
      kept["owners"].push_back(owner["kind"].get<std::string>() + "/" +
                               owner["name"].get<std::string>());
    object["metadata"] = kept;
    if (object["kind"] == "Service") {
      for (const char* given : {"clusterIP", "clusterIPs"})
        object["spec"].erase(given);
    }
    if (object.contains("status") && object["status"].contains("conditions")) {
      for (json& condition : object["status"]["conditions"])
        condition.erase("lastTransitionTime");
    }
    objects.push_back(object);
  }
  return objects;
}

class CrashTest : public testing::Test {
 protected:
  CrashTest() {
    server_.MustKubectl({"create", "namespace", kOperatorNamespace});
    server_.MustKubectl({"create", "namespace", "shop"});
    // Plain HTTP, so that the relay sees what is written.
    const std::string port = "--port=" + std::to_string(proxy_port_);
    const std::string kubeconfig = "--kubeconfig=" + server_.kubeconfig();
    const std::string kubectl = server_.kubectl();
    std::vector<const char*> argv = {kubectl.c_str(), kubeconfig.c_str(), "proxy", port.c_str(),
                                     nullptr};
    FF_CHECK(posix_spawn(&proxy_, argv[0], nullptr, nullptr, const_cast<char**>(argv.data()),
                         environ) == 0);
    std::ofstream(kubeconfig_) << "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
                               << "clusters: [{name: k, cluster: {server: 'http://127.0.0.1:"
                               << relay_.port() << "'}}]\n"
                               << "users: [{name: u, user: {}}]\n"
                               << "contexts: [{name: c, context: {cluster: k, user: u}}]\n";
  }
  ~CrashTest() override {
    operator_.reset();
    kill(proxy_, SIGTERM);
    waitpid(proxy_, nullptr, 0);
  }

  void Apply(const json& object) const {
    server_.MustKubectl({"apply", "--server-side", "--force-conflicts", "-f", "-"}, object.dump());
  }
  void Begin() const {
    Apply(Object("AgentPool", "", "default", json::object()));
    Apply(Object("ProfilingBackend", "", "main",
                 {{"default", true},
                  {"type", "Store"},
                  {"store", {{"managed", {{"storage", {{"ephemeral", true}}}}}}}}));
    Apply(Object("ProfilingTarget", "shop", "checkout",
                 {{"selector", {{"matchLabels", {{"app", "checkout"}}}}},
                  {"profiles", {{{"type", "cpu"}}}}}));
  }
  void Change() const {
    Apply(Object("AgentPool", "", "default", {{"resources", {{"limits", {{"memory", "300Mi"}}}}}}));
    server_.MustKubectl({"patch", "pb", "main", "--type=merge", "-p",
                         R"({"spec": {"type": "Pyroscope", "endpoint": "http://p:4040",)"
                         R"("store": null}})"});
  }
  void Clear() const {
    server_.MustKubectl({"delete", "pt,pb,ap", "--all", "-A"});
    server_.MustKubectl({"delete", "daemonset,deployment,statefulset,service,secret", "--all", "-n",
                         kOperatorNamespace});
    FreeLease();
  }
  // As if the dead leader's time were over.
  void FreeLease() const {
    server_.MustKubectl({"delete", "lease", "--all", "-n", kOperatorNamespace});
  }
  json State() const {
    const auto get = [this](const std::string& kinds, const std::string& ns) {
      return Normal(json::parse(server_.MustKubectl({"get", kinds, "-n", ns, "-o", "json"})));
    };
    return {get("pb,ap", "shop"), get("pt", "shop"),
            get("daemonset,deployment,statefulset,service", kOperatorNamespace)};
  }

  void Start() {
    if (operator_ == nullptr) {
      operator_ = std::make_unique<OperatorProcess>(kubeconfig_);
    } else {
      operator_->Start();
    }
  }
  void Stop() { EXPECT_EQ(operator_->End(SIGTERM), 0); }
  // Until a look at everything writes nothing.
  void Settle() {
    ASSERT_TRUE(Eventually([&] { return operator_->Leads(); }));
    ASSERT_TRUE(Eventually([&] {
      const int writes = relay_.writes();
      return operator_->Settles(server_) && relay_.writes() == writes;
    }));
  }

  // Runs the operator over what `prepare` made, killed after its k-th write; 0: never. What is
  // there in the end.
  json Run(const std::function<void()>& prepare, int k) {
    prepare();
    relay_.Arm(k, [this] { operator_->Signal(SIGKILL); });
    Start();
    if (k > 0) {
      const int status = operator_->Wait();
      EXPECT_TRUE(WIFSIGNALED(status)) << status;
      FreeLease();
      Start();
    }
    Settle();
    return State();
  }
  void TestEachWrite(const std::function<void()>& prepare, int at_least) {
    const json expected = Run(prepare, 0);
    const int writes = relay_.writes();
    EXPECT_GE(writes, at_least);
    Stop();
    for (int k = 1; k <= writes; ++k) {
      SCOPED_TRACE("killed after write " + std::to_string(k));
      const json state = Run(prepare, k);
      EXPECT_EQ(state, expected) << json::diff(expected, state).dump(1);
      Stop();
    }
  }

  const ApiServer server_;
  const uint16_t proxy_port_ = FreePort();
  pid_t proxy_ = -1;
  WriteRelay relay_{proxy_port_};
  const std::string kubeconfig_ = testing::TempDir() + "/ff-crash-" + std::to_string(getpid());
  std::unique_ptr<OperatorProcess> operator_;
};

// DaemonSet, Deployment, Service, three statuses.
TEST_F(CrashTest, ARollOutThatDiesAfterAnyWriteEndsAsOneThatDoesNot) {
  TestEachWrite(
      [this] {
        Clear();
        Begin();
      },
      6);
}

// DaemonSet changed, Deployment and Service deleted.
TEST_F(CrashTest, AChangeThatDiesAfterAnyWriteEndsAsOneThatDoesNot) {
  TestEachWrite(
      [this] {
        Clear();
        Begin();
        Start();
        Settle();
        Stop();
        Change();
      },
      3);
}

}  // namespace
}  // namespace flamefleet
