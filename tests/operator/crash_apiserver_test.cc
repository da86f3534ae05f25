// SPDX-License-Identifier: Apache-2.0
// The operator's binary is killed after each of its writes in turn, before it learns that the write
// was done, and started again: what is there in the end is what an uninterrupted run makes.
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include <array>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/operator/apiserver_fixture.h"
#include "tests/operator/operator_process.h"
#include "tests/operator/write_relay.h"

namespace flamefleet {
namespace {

using nlohmann::json;

// What users write, and what the operator makes of it.
constexpr std::array kCompared = {kAgentPools,  kProfilingBackends, kProfilingTargets, kDaemonSets,
                                  kDeployments, kStatefulSets,      kServices};
// And what is cleared besides between two runs.
constexpr std::array kKeys = {kSecrets, kConfigMaps, kLeases};

// After so many the operator has nothing left to do.
constexpr int kRestarts = 5;

json Object(const Resource& kind, const std::string& name, const json& spec) {
  return {{"apiVersion", kind.api_version},
          {"kind", kind.kind},
          {"metadata", {{"name", name}}},
          {"spec", spec}};
}

// Without what differs between any two runs.
json Normal(json object) {
  const json& metadata = object["metadata"];
  json kept = {{"name", metadata["name"]}, {"labels", metadata.value("labels", json::object())}};
  for (const json& owner : metadata.value("ownerReferences", json::array()))
    kept["owners"].push_back(owner["kind"].get<std::string>() + "/" +
                             owner["name"].get<std::string>());
  object["metadata"] = kept;
  for (const char* given : {"clusterIP", "clusterIPs"})
    object["spec"].erase(given);
  if (object.contains("status") && object["status"].contains("conditions")) {
    for (json& condition : object["status"]["conditions"])
      condition.erase("lastTransitionTime");
  }
  return object;
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

  // Only the operator goes through the relay.
  json List(const Resource& kind) const {
    const std::string ns = kind.plural == kProfilingTargets.plural ? "shop" : kOperatorNamespace;
    std::string body;
    // Right after its start the server has not opened the storage of every kind.
    EXPECT_TRUE(Eventually([&] {
      body.clear();
      return client_
          ->Stream(
              {.verb = "list", .path_and_query = CollectionPath(kind, ns)}, [](Encoding) {},
              [&body](std::string_view piece) {
                body += piece;
                return OkStatus();
              },
              {})
          .status.ok();
    }));
    return json::parse(body)["items"];
  }
  void Apply(const Resource& kind, const json& object) const {
    const auto applied = client_->Apply(
        {kind, "shop", object["metadata"]["name"].get<std::string>(), "user", object.dump()});
    EXPECT_TRUE(applied.ok()) << applied.status();
  }
  void DeleteAll(const Resource& kind) const {
    for (const json& object : List(kind)) {
      const json& metadata = object["metadata"];
      const Status deleted =
          client_->Delete(kind, metadata.value("namespace", ""), metadata["name"]);
      EXPECT_TRUE(deleted.ok()) << deleted;
    }
  }
  json State() const {
    json state = json::object();
    for (const Resource& kind : kCompared) {
      json& objects = state[std::string(kind.plural)] = json::array();
      for (const json& object : List(kind))
        objects.push_back(Normal(object));
    }
    return state;
  }

  void Clear() const {
    for (const Resource& kind : kCompared)
      DeleteAll(kind);
    for (const Resource& kind : kKeys)
      DeleteAll(kind);
  }
  void Begin() const {
    Apply(kAgentPools, Object(kAgentPools, "default", json::object()));
    Apply(kProfilingBackends,
          Object(kProfilingBackends, "main",
                 {{"default", true},
                  {"type", "Store"},
                  {"store", {{"managed", {{"storage", {{"ephemeral", true}}}}}}}}));
    Apply(kProfilingTargets, Object(kProfilingTargets, "checkout",
                                    {{"selector", {{"matchLabels", {{"app", "checkout"}}}}},
                                     {"profiles", {{{"type", "cpu"}}}}}));
  }
  void Change() const {
    Apply(kAgentPools,
          Object(kAgentPools, "default", {{"resources", {{"limits", {{"memory", "300Mi"}}}}}}));
    Apply(kProfilingBackends,
          Object(kProfilingBackends, "main",
                 {{"default", true}, {"type", "Pyroscope"}, {"endpoint", "http://p:4040"}}));
  }

  void Start() {
    if (operator_ == nullptr) {
      operator_ = std::make_unique<OperatorProcess>(kubeconfig_);
    } else {
      operator_->Start();
    }
  }
  void Stop() { EXPECT_EQ(operator_->End(SIGTERM), 0); }
  // The process has looked at each object, and so has written all that it found wrong.
  bool LookedAtAll() const {
    for (const char* controller : {"pool", "backend", "target"}) {
      const std::string series =
          "controller_runtime_reconcile_total{controller=\"" + std::string(controller);
      if (operator_->Metric(series + "\",result=\"success\"}") < 1 &&
          operator_->Metric(series + "\",result=\"requeue_after\"}") < 1) {
        return false;
      }
    }
    return true;
  }
  void StartAndStop() {
    Start();
    EXPECT_TRUE(Eventually([this] { return LookedAtAll(); }));
    Stop();
  }

  // What an operator that is started once more leaves as it is.
  json FixedPoint() {
    json before;
    for (int i = 0; i < kRestarts; ++i) {
      StartAndStop();
      json after = State();
      if (after == before) return after;
      before = std::move(after);
    }
    ADD_FAILURE() << "the operator always finds something to do: " << before.dump(1);
    return before;
  }
  // False: it had nothing more to do before its k-th write.
  bool KillAfterWrite(int k) {
    relay_.Arm(k, [this] { operator_->Signal(SIGKILL); });
    Start();
    EXPECT_TRUE(Eventually([this] { return relay_.fired() || LookedAtAll(); }));
    if (!relay_.Disarm()) {
      Stop();
      return false;
    }
    const int status = operator_->Wait();
    EXPECT_TRUE(WIFSIGNALED(status)) << status;
    DeleteAll(kLeases);  // as if the dead leader's time were over
    return true;
  }
  void TestEachWrite(const std::function<void()>& prepare, int at_least) {
    prepare();
    const json expected = FixedPoint();
    int k = 1;
    for (bool killed = true; killed; ++k) {
      SCOPED_TRACE("killed after write " + std::to_string(k));
      prepare();
      killed = KillAfterWrite(k);
      // A status may wait for its interval; who is started anew does not know of one.
      json state;
      for (int i = 0; i < kRestarts && state != expected; ++i) {
        StartAndStop();
        state = State();
      }
      EXPECT_EQ(state, expected) << json::diff(expected, state).dump(1);
      if (HasFailure()) return;
    }
    EXPECT_GE(k - 2, at_least) << "kills";
  }

  const ApiServer server_;
  Metrics metrics_;
  const std::unique_ptr<RestClient> client_ = server_.NewClient(metrics_);
  const uint16_t proxy_port_ = FreePort();
  pid_t proxy_ = -1;
  WriteRelay relay_{proxy_port_};
  const std::string kubeconfig_ = testing::TempDir() + "/ff-crash-" + std::to_string(getpid());
  std::unique_ptr<OperatorProcess> operator_;
};

// Keys, trust, DaemonSet, Deployment, Service, three statuses.
TEST_F(CrashTest, ARollOutThatDiesAfterAnyWriteEndsAsOneThatDoesNot) {
  TestEachWrite(
      [this] {
        Clear();
        Begin();
      },
      7);
}

// DaemonSet changed, Deployment and Service deleted, two statuses.
TEST_F(CrashTest, AChangeThatDiesAfterAnyWriteEndsAsOneThatDoesNot) {
  TestEachWrite(
      [this] {
        Clear();
        Begin();
        StartAndStop();
        Change();
      },
      4);
}

}  // namespace
}  // namespace flamefleet
