// SPDX-License-Identifier: Apache-2.0
// Objects of our kinds that change by chance, drawn from their schemas, through a real
// kube-apiserver, which decides what is a valid change, and the operator's binary. What the
// operator makes of an object depends on what it says, not on what it said; and no field that the
// API server takes is ignored.
//
// One walk, always the same; FF_WALK_SEED and FF_WALK_STEPS make others and longer ones, as
// `make soak` does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>

#include "base/reasons.h"
#include "operator/plan/assignment.h"
#include "operator/render/offline_plan.h"
#include "operator/render/print.h"
#include "tests/operator/apiserver_fixture.h"
#include "tests/operator/fake_agent.h"
#include "tests/operator/operator_process.h"
#include "tests/operator/schema_walk.h"

namespace flamefleet {
namespace {

using nlohmann::json;

constexpr const char* kNamespace = kOperatorNamespace;
// So many changes are tried unless FF_WALK_STEPS says otherwise.
constexpr int kSteps = 60;

int FromEnvironment(const char* name, int otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : std::atoi(value);
}

struct Subject {
  Resource resource;
  std::string ns;
  std::string name;
  json start;
};

std::vector<Subject> Subjects() {
  // Not empty: the API server makes null of a map from which an apply takes all fields.
  return {{kAgentPools, "", "default", {{"scope", "OptIn"}}},
          {kProfilingBackends, "", "main",
           R"({"default": true, "type": "Store",
               "store": {"managed": {"storage": {"ephemeral": true}}}})"_json},
          {kProfilingTargets, "shop", "web",
           R"({"selector": {"matchLabels": {"app": "web"}}, "podLabels": ["team"],
               "profiles": [{"type": "cpu"}, {"type": "memory", "pull": {"port": 6060}}]})"_json}};
}

// What a spec that the API server has stored says, in one form: defaults are filled in, so a map or
// list without entries says what its absence does.
json Meaning(const json& value) {
  if (!value.is_structured()) return value;
  json meaning = value.is_object() ? json::object() : json::array();
  for (const auto& [key, part] : value.items()) {
    json of_part = Meaning(part);
    if (value.is_array()) {
      meaning.push_back(std::move(of_part));
    } else if (!of_part.is_structured() || !of_part.empty()) {
      meaning[key] = std::move(of_part);
    }
  }
  return meaning;
}

// A pod in which most fields can matter; annotated, so that fields of the pool can too.
json Pod(const std::string& name, const json& annotations, const char* app = "web") {
  return {{"apiVersion", "v1"},
          {"kind", "Pod"},
          {"metadata",
           {{"name", name},
            {"namespace", "shop"},
            {"labels", {{"app", app}, {"team", "red"}}},
            {"annotations", annotations}}},
          {"spec",
           {{"nodeName", "n1"},
            {"containers",
             {{{"name", "app"},
               {"image", "x"},
               {"ports", {{{"name", "pprof-a"}, {"containerPort", 6060}}}}},
              {{"name", "side"}, {"image", "x"}}}}}}};
}

std::vector<json> Pods() {
  return {Pod("web-1", json::object()),
          Pod("noted", {{"pyroscope.io/scrape", "true"},
                        {"profiles.grafana.com/memory.scrape", "true"},
                        {"profiles.grafana.com/memory.port", "6060"}}),
          // That nobody asks for at first: a wider selector or scope shows in it.
          Pod("plain", json::object(), "other")};
}

class WalkTest : public testing::Test {
 protected:
  WalkTest() : admin_(server_.NewClient(metrics_)) {
    server_.MustKubectl({"create", "namespace", kNamespace});
    server_.MustKubectl({"create", "namespace", "shop"});
    server_.MustKubectl({"create", "serviceaccount", "flamefleet-agent", "-n", kNamespace});
    operator_ = std::make_unique<OperatorProcess>(server_.kubeconfig());
    EXPECT_TRUE(Eventually([&] { return operator_->Leads(); }));
    for (const Subject& subject : subjects_)
      specs_.push_back(*Write(subject, subject.start));
    for (const json& pod : Pods())
      Run(pod);
    RunAgent();
  }

  // The spec as it is stored; nullopt when the API server does not take it.
  std::optional<json> Write(const Subject& subject, const json& spec) {
    json object = {{"apiVersion", subject.resource.api_version},
                   {"kind", subject.resource.kind},
                   {"metadata", {{"name", subject.name}}},
                   {"spec", spec}};
    if (!subject.ns.empty()) object["metadata"]["namespace"] = subject.ns;
    const auto stored =
        admin_->Apply({subject.resource, subject.ns, subject.name, "walk", object.dump(), false});
    if (stored.ok()) return json::parse(*stored)["spec"];
    EXPECT_EQ(stored.status().code(), StatusCode::kInvalidArgument) << stored.status();
    refusal_ = ErrorMessage(stored.status());
    return std::nullopt;
  }

  void Run(const json& pod) {
    server_.MustKubectl({"apply", "--server-side", "-f", "-"}, pod.dump());
    json status = {{"phase", "Running"},
                   {"podIP", "10.1.2.3"},
                   {"conditions", {{{"type", "Ready"}, {"status", "True"}}}},
                   {"containerStatuses", json::array()}};
    for (const json& container : pod["spec"]["containers"]) {
      const std::string id =
          pod["metadata"]["name"].get<std::string>() + "-" + container["name"].get<std::string>();
      status["containerStatuses"].push_back(
          {{"name", container["name"]},
           {"containerID", "containerd://" + id},
           {"image", "x"},
           {"imageID", "x"},
           {"ready", true},
           {"restartCount", 0},
           {"state", {{"running", {{"startedAt", "2026-01-01T00:00:00Z"}}}}}});
    }
    server_.MustKubectl({"patch", "pod", pod["metadata"]["name"], "-n",
                         pod["metadata"]["namespace"], "--subresource=status", "-p",
                         json{{"status", status}}.dump()});
  }

  void RunAgent() {
    json daemon_set;
    ASSERT_TRUE(Eventually([&] {
      daemon_set = Get("daemonset", "flamefleet-agent-default", kNamespace);
      return !daemon_set.is_null();
    }));
    json pod = Pod("agent", json::object());
    pod["metadata"]["namespace"] = kNamespace;
    pod["metadata"]["labels"] = {{"flamefleet.dev/pool", "default"}};
    pod["metadata"]["ownerReferences"] = {{{"apiVersion", "apps/v1"},
                                           {"kind", "DaemonSet"},
                                           {"name", "flamefleet-agent-default"},
                                           {"uid", daemon_set["metadata"]["uid"]},
                                           {"controller", true}}};
    pod["spec"]["serviceAccountName"] = "flamefleet-agent";
    Run(pod);
    const json trust = Get("configmap", "flamefleet-operator-trust", kNamespace);
    std::string token = server_.MustKubectl(
        {"create", "token", "flamefleet-agent", "-n", kNamespace, "--audience=flamefleet-operator",
         "--bound-object-kind=Pod", "--bound-object-name=agent"});
    token.erase(token.find_last_not_of('\n') + 1);
    agent_ = std::make_unique<FakeAgent>(
        FakeAgent::Access{operator_->agents_address(), "flamefleet-operator.flamefleet-system.svc",
                          trust["data"]["ca.crt"], token},
        "n1", "default");
    agent_->ReportAllDelivering();
    EXPECT_TRUE(Eventually([&] { return agent_->Has("web-1") && agent_->Has("noted"); }));
  }

  json Get(const std::string& kind, const std::string& name, const std::string& ns) {
    const auto output =
        server_.Kubectl({"get", kind, name, "-n", ns, "-o", "json", "--ignore-not-found"});
    return output.text.empty() ? json() : json::parse(output.text);
  }

  // What the operator has made of the objects: others, what agents are told, what users are told.
  json State() {
    json state;
    for (const auto& [pod, assigned] : agent_->Assigned())
      state["assigned"][pod] = std::hash<std::string>()(assigned);
    state["config"] = std::hash<std::string>()(agent_->Config().SerializeAsString());
    const json list = json::parse(server_.MustKubectl(
        {"get", "daemonset,deployment,statefulset,service,ap,pb,pt", "-A", "-o", "json"}));
    for (json object : list["items"]) {
      json& out = state[object["kind"].get<std::string>()];
      const std::string name = object["metadata"]["name"];
      if (object["kind"] == "Service" && name == "kubernetes") continue;
      out[name]["spec"] = Meaning(object["spec"]);
      json status = object.value("status", json::object());
      // How often and when, not what.
      for (const char* moving : {"observedGeneration", "lastProfileTime"})
        status.erase(moving);
      for (json& condition : status.value("conditions", json::array())) {
        for (const char* part : {"status", "reason", "message"})
          out[name]["conditions"][condition["type"].get<std::string>()][part] = condition[part];
      }
      status.erase("conditions");
      for (json& pod : status.value("failingPods", json::array()))
        out[name]["failing"].push_back(pod["name"].dump() + pod["reason"].dump());
      status.erase("failingPods");
      out[name]["status"] = std::move(status);
    }
    return state;
  }

  // What the pure plan makes of these specs: the objects, what is done with each pod and why not,
  // what agents are told of backends.
  struct Effect {
    json printed;
    plan::AgentConfig config;
    bool reason = false;   // something says what is not done
    bool no_pods = false;  // the target selects none, which is the reason in its status

    friend bool operator==(const Effect& a, const Effect& b) {
      return a.printed == b.printed && a.config == b.config;
    }
  };
  Effect EffectOf(const std::vector<json>& specs) {
    std::vector<render::Manifest> manifests;
    for (size_t i = 0; i < subjects_.size(); ++i) {
      manifests.push_back(
          {{.file = subjects_[i].name},
           {{"apiVersion", subjects_[i].resource.api_version},
            {"kind", subjects_[i].resource.kind},
            {"metadata", {{"name", subjects_[i].name}, {"namespace", subjects_[i].ns}}},
            {"spec", specs[i]}}});
    }
    for (const json& pod : Pods())
      manifests.push_back({{.file = pod["metadata"]["name"]}, pod});
    std::vector<render::Finding> findings;
    const render::OfflineFleet fleet = render::DecodeManifests(manifests, schemas_, findings);
    // What the API server takes is valid offline too.
    for (const render::Finding& finding : findings)
      ADD_FAILURE() << render::FindingText(finding);
    Effect effect;
    if (fleet.pools.empty() || fleet.backends.empty()) return effect;
    effect.printed = render::PlanJson(render::PlanOffline(fleet, {kNamespace, "i", ""}), findings);
    const plan::BackendTable backends({&fleet.backends[0]}, kNamespace);
    effect.config = plan::ConfigOf(fleet.pools[0], backends);
    effect.reason = backends.ProblemOf("main") != nullptr;
    effect.no_pods = std::ranges::none_of(fleet.pods, [&](const render::OfflinePod& pod) {
      return plan::Matches(fleet.targets.at(0), pod.pod);
    });
    for (const json& pod : effect.printed["pods"]) {
      const std::string reason = pod.value("reason", "");
      effect.reason = effect.reason || (!reason.empty() && reason != reasons::kNotRequested) ||
                      pod.contains("assumed") || !pod["notCollected"].empty() ||
                      !pod["warnings"].empty();
    }
    return effect;
  }

  // What one of the objects says. A reference to the default backend says what its absence does.
  json MeaningOf(size_t at) const {
    json meaning = Meaning(specs_[at]);
    const json& backend = specs_[1];
    const json to_default = {{"name", subjects_[1].name}};
    if (backend.value("default", false) && meaning.value("backendRef", json()) == to_default)
      meaning.erase("backendRef");
    return meaning;
  }

  // One change of one of the objects, if the API server takes it.
  void Step(SchemaWalk& walk) {
    const size_t at = walk.Pick(subjects_.size());
    // From time to time back to where it began, from where most fields matter.
    const json& from = walk.Pick(4) == 0 ? subjects_[at].start : specs_[at];
    const json next = walk.Step(std::string(subjects_[at].resource.kind), from);
    const std::optional<json> stored = Write(subjects_[at], next);
    ++(stored ? taken_ : refused_);
    if (!stored) return;
    const json before = MeaningOf(at);
    const Effect effect_before = EffectOf(specs_);
    specs_[at] = *stored;
    const json after = MeaningOf(at);
    if (before == after) return;
    const Effect effect = EffectOf(specs_);
    const bool no_pods = subjects_[at].resource.kind == kProfilingTargets.kind && effect.no_pods;
    if (effect == effect_before && !effect.reason && !no_pods)
      ignored_.push_back(json::diff(before, after).dump() + " of " + json(specs_).dump());
  }

  Metrics metrics_;
  ApiServer server_;
  const render::Schemas schemas_;
  const std::vector<Subject> subjects_ = Subjects();
  std::vector<json> specs_;  // as they are stored, in the order of subjects_
  std::unique_ptr<RestClient> admin_;
  std::unique_ptr<OperatorProcess> operator_;
  std::unique_ptr<FakeAgent> agent_;
  int taken_ = 0;
  int refused_ = 0;
  std::string refusal_;  // the last one
  std::vector<std::string> ignored_;
};

TEST_F(WalkTest, TheStateAfterAWalkAndBackIsThatOfTheStart) {
  const int seed = FromEnvironment("FF_WALK_SEED", 4);
  SCOPED_TRACE("FF_WALK_SEED=" + std::to_string(seed));
  json start;
  const auto count = [&](const char* pointer) {
    return start.value(json::json_pointer(pointer), 0);
  };
  ASSERT_TRUE(Eventually([&] {
    start = State();
    return count("/ProfilingTarget/web/status/pods/profiled") == 2 &&
           count("/AgentPool/default/status/annotatedPods/profiled") == 1 &&
           count("/ProfilingBackend/main/status/agents/delivering") == 1;
  })) << start.dump(2);
  SchemaWalk walk(static_cast<uint32_t>(seed));
  const int steps = FromEnvironment("FF_WALK_STEPS", kSteps);
  for (int i = 0; i < steps; ++i)
    Step(walk);
  EXPECT_GT(taken_, steps / 5) << "of " << taken_ + refused_;
  for (const Subject& subject : subjects_)
    ASSERT_TRUE(Write(subject, subject.start)) << refusal_;
  ASSERT_TRUE(operator_->Settles(server_));
  json end;
  EXPECT_TRUE(Eventually([&] {
    end = State();
    return end == start;
  })) << json::diff(start, end).dump(2);
  EXPECT_THAT(ignored_, testing::IsEmpty());
  std::printf("seed %d: %d changes taken, %d refused\n", seed, taken_, refused_);
}

}  // namespace
}  // namespace flamefleet
