// SPDX-License-Identifier: Apache-2.0
// No field of a ProfilingTarget is accepted and ignored: each of its schema, given another value
// that the schema allows, changes the plan or a reason.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "operator/render/offline_plan.h"
#include "operator/render/print.h"
#include "operator/render/schema.h"
#include "operator/render/yaml_reader.h"

namespace flamefleet::render {
namespace {

using nlohmann::json;

// The leaves of a spec's schema as JSON pointers, "/profiles/0/pull/port".
void CollectLeaves(const json& schema, const std::string& path, std::set<std::string>& leaves) {
  if (schema.contains("properties")) {
    for (const auto& [name, property] : schema["properties"].items())
      CollectLeaves(property, path + "/" + name, leaves);
  } else if (schema.contains("items")) {
    CollectLeaves(schema["items"], path + "/0", leaves);
  } else if (schema.contains("additionalProperties")) {
    CollectLeaves(schema["additionalProperties"], path + "/team", leaves);
  } else {
    leaves.insert(path);
  }
}

std::set<std::string> LeavesOfTheSchema() {
  std::set<std::string> leaves;
  for (const std::string_view text : CrdTexts()) {
    ReadYaml(std::string(text), [&](int /*number*/, Result<json> crd) {
      if (crd->at("spec").at("names").at("kind") != "ProfilingTarget") return;
      const json& root = crd->at("spec").at("versions").at(0).at("schema").at("openAPIV3Schema");
      CollectLeaves(root.at("properties").at("spec"), "", leaves);
    });
  }
  return leaves;
}

// Two values of one field, in a spec in which it matters; null: the field is not set.
struct Change {
  const char* field;
  json spec;
  json one;
  json other;
};

std::vector<Change> Changes() {
  const json cpu = R"({"selector": {}, "profiles": [{"type": "cpu"}]})"_json;
  const json memory =
      R"({"selector": {}, "profiles": [{"type": "memory", "pull": {"port": 6060}}]})"_json;
  const json secured = R"({"selector": {}, "profiles": [{"type": "memory", "pull":
                           {"port": 6060, "scheme": "HTTPS"}}]})"_json;
  const json expression = R"({"selector": {"matchExpressions": [
      {"key": "app", "operator": "In", "values": ["web"]}]}, "profiles": [{"type": "cpu"}]})"_json;
  return {{"/selector/matchLabels/team", cpu, "red", nullptr},
          {"/selector/matchExpressions/0/key", expression, "app", "nope"},
          {"/selector/matchExpressions/0/operator", expression, "In", "NotIn"},
          {"/selector/matchExpressions/0/values/0", expression, "web", "other"},
          {"/containers/0", cpu, "app", "side"},
          {"/serviceName", cpu, "a", nullptr},
          {"/labels/team", cpu, "a", "b"},
          {"/podLabels/0", cpu, "app", nullptr},
          {"/backendRef/name", cpu, "second", nullptr},
          {"/paused", cpu, true, false},
          {"/profiles/0/type", memory, "memory", "block"},
          {"/profiles/0/mode", memory, "Auto", "EBPF"},
          {"/profiles/0/threadLabels", cpu, true, false},
          {"/profiles/0/pull/port", memory, 6060, "pprof-b"},
          {"/profiles/0/pull/scheme", memory, "HTTPS", "HTTP"},
          {"/profiles/0/pull/tls/insecureSkipVerify", secured, true, false},
          {"/profiles/0/pull/tls/caBundle", secured, "-----BEGIN CERTIFICATE-----", nullptr},
          {"/profiles/0/pull/tls/serverName", secured, "pprof", nullptr},
          {"/profiles/0/pull/parameters/team", memory, "1", "2"},
          {"/profiles/0/pull/path", memory, "/p", nullptr},
          {"/profiles/0/pull/interval", memory, "20s", "30s"},
          {"/profiles/0/pull/timeout", memory, "5s", "6s"}};
}

// A pod in which each of these fields can matter.
constexpr const char* kManifests = R"(
apiVersion: flamefleet.dev/v1alpha1
kind: AgentPool
metadata: {name: default}
spec: {}
---
apiVersion: flamefleet.dev/v1alpha1
kind: ProfilingBackend
metadata: {name: first}
spec: {default: true, type: Pyroscope, endpoint: "http://first:4040"}
---
apiVersion: flamefleet.dev/v1alpha1
kind: ProfilingBackend
metadata: {name: second}
spec: {type: Pyroscope, endpoint: "http://second:4040"}
---
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec:
  containers:
  - {name: app, ports: [{name: pprof-a, containerPort: 6060}]}
  - {name: side, ports: [{name: pprof-b, containerPort: 7070}]}
)";

class FieldEffects : public testing::Test {
 protected:
  // What is printed of the cluster with this target; `valid` when its schema allows it.
  json Plan(const json& spec, bool* valid = nullptr) {
    std::vector<Manifest> manifests;
    ReadYaml(kManifests, [&](int number, Result<json> object) {
      manifests.push_back({{.file = "m", .document = number}, *std::move(object)});
    });
    manifests.push_back({{.file = "t"},
                         {{"apiVersion", "flamefleet.dev/v1alpha1"},
                          {"kind", "ProfilingTarget"},
                          {"metadata", {{"name", "t"}}},
                          {"spec", spec}}});
    std::vector<Finding> findings;
    const OfflineFleet fleet = DecodeManifests(manifests, schemas_, findings);
    for (const Finding& finding : findings)
      EXPECT_NE(finding.source.file, "m") << FindingText(finding);
    if (valid != nullptr) *valid = findings.empty();
    return PlanJson(PlanOffline(fleet, {.ns = "ff", .image = "i"}), findings);
  }

  const Schemas schemas_;
};

json With(json spec, const std::string& field, const json& value) {
  if (!value.is_null()) spec[json::json_pointer(field)] = value;
  return spec;
}

TEST_F(FieldEffects, EveryFieldChangesThePlanOrAReason) {
  std::set<std::string> leaves = LeavesOfTheSchema();
  EXPECT_GT(leaves.size(), 15U);
  for (const Change& change : Changes()) {
    EXPECT_EQ(leaves.erase(change.field), 1U) << change.field << " is not in the schema";
    bool one_valid = false;
    bool other_valid = false;
    const json one = Plan(With(change.spec, change.field, change.one), &one_valid);
    const json other = Plan(With(change.spec, change.field, change.other), &other_valid);
    EXPECT_TRUE(one_valid && other_valid) << change.field << one["invalid"] << other["invalid"];
    EXPECT_NE(one["pods"], other["pods"]) << change.field;
  }
  for (const std::string& leaf : leaves)
    ADD_FAILURE() << leaf << " is in the schema and nothing shows its effect";
}

// A random walk over the fields: what is planned depends on what the spec says, not on what it
// said.
TEST_F(FieldEffects, ThePlanAfterAWalkAndBackIsThatOfTheStart) {
  std::mt19937 random(4);  // fixed: a failure can be repeated
  const std::vector<Change> changes = Changes();
  const auto step = [&](json spec) {
    const Change& change = changes[random() % changes.size()];
    const json& value = random() % 2 == 0 ? change.one : change.other;
    json next = With(std::move(spec), change.field, value);
    bool valid = false;
    Plan(next, &valid);
    return valid ? next : change.spec;
  };
  json spec = changes[0].spec;
  for (int i = 0; i < 60; ++i) {
    const json before = Plan(spec);
    const json next = step(spec);
    Plan(next);
    EXPECT_EQ(Plan(spec), before) << spec;
    spec = next;
    // Whatever the schema allows is collected, or there is a reason.
    const json pod = Plan(spec)["pods"][0];
    EXPECT_TRUE(!pod["collected"].empty() || !pod["notCollected"].empty() || pod.contains("reason"))
        << spec;
  }
}

}  // namespace
}  // namespace flamefleet::render
