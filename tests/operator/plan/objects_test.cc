// SPDX-License-Identifier: Apache-2.0
// The objects the operator makes, against golden files that a kube-apiserver accepts
// (tests/config/config_test.py). `make golden-update` writes the files anew; read the diff before
// you commit it.
#include "operator/plan/objects.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/operator/plan/builders.h"

namespace flamefleet::plan {
namespace {

constexpr const char* kFolder =
    "tests/golden/operator/";  // tests run in the root of the repository

void ExpectGolden(const std::string& name, const nlohmann::json& object) {
  const std::string path = kFolder + name;
  const std::string text = object.dump(2) + "\n";
  if (std::getenv("FF_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(path) << text;
    return;
  }
  std::ifstream file(path);
  ASSERT_TRUE(file) << path << " is missing; run make golden-update";
  std::stringstream golden;
  golden << file.rdbuf();
  EXPECT_EQ(text, golden.str()) << path << " differs; if that is wanted run make golden-update";
}

ObjectSettings Settings() {
  return {
      .ns = "flamefleet-system", .image = "flamefleet:0.1.0", .image_pull_policy = "IfNotPresent"};
}

api::AgentPool Pool() {
  api::AgentPool pool;
  pool.meta.name = "default";
  pool.meta.uid = "b6a8c1d2-0000-4000-8000-000000000001";
  pool.spec.tolerations = {{.op = "Exists"}};
  pool.spec.resources = {.requests = {{"cpu", "50m"}, {"memory", "64Mi"}},
                         .limits = {{"memory", "256Mi"}}};
  return pool;
}

TEST(AgentDaemonSet, OfAPoolWithDefaultsIsTheGoldenFile) {
  ExpectGolden("agent_daemonset_defaults.json", AgentDaemonSet(Pool(), Settings()));
}

TEST(AgentDaemonSet, OfAPoolThatSaysEverythingIsTheGoldenFile) {
  api::AgentPool pool = Pool();
  pool.meta.name = "gpu";
  pool.spec.node_selector = {{"accelerator", "nvidia"}};
  pool.spec.tolerations = {{"gpu", "Equal", "yes", "NoExecute", 60},
                           {.key = "spot", .op = "Exists"}};
  pool.spec.resources = {.requests = {{"cpu", "1"}}, .limits = {{"cpu", "2"}, {"memory", "1Gi"}}};
  pool.spec.spool_size = "2Gi";
  pool.spec.image = "registry.example/flamefleet:0.2.0";
  pool.spec.image_pull_policy = "Always";
  pool.spec.image_pull_secrets = {"registry", "mirror"};
  pool.spec.node_affinity =
      R"({"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[
          {"matchExpressions":[{"key":"zone","operator":"In","values":["a"]}]}]}})";
  pool.spec.priority_class = "system-node-critical";
  pool.spec.max_unavailable = "3";
  // The operator's own labels win.
  pool.spec.pod_labels = {{"example.com/team", "profiling"},
                          {"app.kubernetes.io/component", "mine"}};
  pool.spec.pod_annotations = {{"example.com/note", "agents"}};
  ExpectGolden("agent_daemonset_all_fields.json", AgentDaemonSet(pool, Settings()));
}

TEST(AgentDaemonSet, ChangedResourcesChangeNothingElse) {
  api::AgentPool pool = Pool();
  nlohmann::json before = AgentDaemonSet(pool, Settings());
  pool.spec.resources.limits["memory"] = "512Mi";
  nlohmann::json after = AgentDaemonSet(pool, Settings());
  nlohmann::json& container = after["spec"]["template"]["spec"]["containers"][0];
  EXPECT_EQ(container["resources"]["limits"]["memory"], "512Mi");
  container["resources"]["limits"]["memory"] = "256Mi";
  EXPECT_EQ(after, before);
}

TEST(AgentDaemonSet, DoesNotPutTheOperatorsPullPolicyOnAnotherImage) {
  api::AgentPool pool = Pool();
  pool.spec.image = "other:1";
  EXPECT_FALSE(
      AgentDaemonSet(pool, Settings())["spec"]["template"]["spec"]["containers"][0].contains(
          "imagePullPolicy"));
}

TEST(StoreObjects, OfAManagedBackendAreTheGoldenFiles) {
  api::ProfilingBackend backend = DefaultBackend();
  backend.meta.uid = "b6a8c1d2-0000-4000-8000-000000000002";
  backend.spec.managed_store->resources = {.requests = {{"cpu", "50m"}, {"memory", "64Mi"}},
                                           .limits = {{"memory", "512Mi"}}};
  ExpectGolden("store_deployment.json", StoreWorkload(backend, Settings()));
  ExpectGolden("store_service.json", StoreService(backend, Settings()));
  backend.spec.managed_store->volume = {"10Gi", int64_t{10} << 30, "fast"};
  ExpectGolden("store_statefulset.json", StoreWorkload(backend, Settings()));
}

}  // namespace
}  // namespace flamefleet::plan
