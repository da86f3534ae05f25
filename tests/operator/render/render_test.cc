// SPDX-License-Identifier: Apache-2.0
// Manifests in, printed plan out.
#include "operator/render/render.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "operator/render/print.h"
#include "operator/render/yaml_reader.h"

namespace flamefleet::render {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kCluster = R"(
apiVersion: flamefleet.dev/v1alpha1
kind: AgentPool
metadata: {name: default}
spec: {}
---
apiVersion: flamefleet.dev/v1alpha1
kind: ProfilingBackend
metadata: {name: default}
spec: {default: true, type: Store, store: {managed: {storage: {ephemeral: true}}}}
)";

std::string Deployment(const std::string& name, const std::string& annotations) {
  return "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: " + name +
         ", namespace: shop}\nspec:\n  template:\n    metadata:\n      labels: {app: " + name +
         "}\n      annotations: " + annotations +
         "\n    spec:\n      containers:\n      - name: app\n        ports: [{name: pprof, "
         "containerPort: 6060}]\n";
}

class RenderTest : public testing::Test {
 protected:
  RenderTest() {
    std::string name = testing::TempDir() + "render_XXXXXX";
    folder_ = mkdtemp(name.data());
  }
  ~RenderTest() override { std::filesystem::remove_all(folder_); }

  std::string Write(const std::string& name, const std::string& text) {
    const std::filesystem::path path = folder_ + "/" + name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
    return path;
  }

  // What was written, rendered.
  bool Run(OutputForm form = OutputForm::kText) {
    std::ostringstream out;
    std::ostringstream errors;
    const bool valid = Render({.paths = {folder_},
                               .form = form,
                               .settings = {.ns = "flamefleet-system", .image = "ff:1"},
                               .strict = strict_},
                              out, errors);
    out_ = out.str();
    errors_ = errors.str();
    return valid;
  }
  json RunJson() {
    Run(OutputForm::kJson);
    return json::parse(out_);
  }

  std::string folder_;
  bool strict_ = false;
  std::string out_;
  std::string errors_;
};

TEST_F(RenderTest, SaysWhatWouldBeMadeAndCollected) {
  Write("cluster.yaml", kCluster);
  Write("apps/pay.yml",
        Deployment("pay", R"({pyroscope.io/scrape: "true", pyroscope.io/port: "6060"})"));
  EXPECT_TRUE(Run()) << errors_;
  EXPECT_THAT(out_, HasSubstr("DaemonSet flamefleet-system/flamefleet-agent-default"));
  EXPECT_THAT(out_, HasSubstr("Deployment flamefleet-system/flamefleet-store-default"));
  EXPECT_THAT(out_, HasSubstr("It would profile 1 of 1 pod:"));
  EXPECT_THAT(out_, HasSubstr("cpu: pulled from port 6060/debug/pprof/profile"));
  EXPECT_THAT(out_, HasSubstr("to default as service pay"));
}

TEST_F(RenderTest, EveryPodThatIsNotProfiledHasItsReason) {
  Write("cluster.yaml", kCluster);
  Write("apps.yaml", Deployment("veto", R"({pyroscope.io/scrape: "false"})") +
                         Deployment("nobody", "{}") +
                         Deployment("bad", R"({pyroscope.io/scrape: "yes"})") +
                         Deployment("noport", R"({profiles.grafana.com/memory.scrape: "true"})"));
  EXPECT_TRUE(Run()) << errors_;
  EXPECT_THAT(out_, HasSubstr("It would profile 0 of 4 pods:"));
  for (const char* reason : {"OptedOut", "NotRequested", "InvalidAnnotation", "PortRequired"})
    EXPECT_THAT(out_, HasSubstr(reason));
}

TEST_F(RenderTest, SaysWhatBecomesOfProcessesOfTheNodes) {
  const std::string pool =
      "apiVersion: flamefleet.dev/v1alpha1\nkind: AgentPool\nmetadata: {name: whole}\n"
      "spec: {scope: Node}\n---\n";
  Write("pool.yaml", pool);
  ASSERT_TRUE(Run());
  EXPECT_THAT(out_, HasSubstr("Processes of the nodes of AgentPool whole: not profiled: NoBackend: "
                              "no ProfilingBackend says default: true\n"));
  Write("pool.yaml", pool + kCluster);
  ASSERT_TRUE(Run());
  EXPECT_THAT(out_, HasSubstr("Processes of the nodes of AgentPool whole: cpu: by eBPF, to "
                              "default\n"));
  EXPECT_EQ(RunJson()["hosts"], json({{{"agentPool", "whole"}, {"backend", "default"}}}));
}

TEST_F(RenderTest, WithoutPoolOrBackendNothingIsProfiledAndTheReasonSaysSo) {
  Write("apps.yaml", Deployment("pay", R"({pyroscope.io/scrape: "true"})"));
  EXPECT_TRUE(Run());
  EXPECT_THAT(out_, HasSubstr("NoBackend"));
  EXPECT_THAT(out_, HasSubstr("NoAgentPool"));
}

TEST_F(RenderTest, EveryKindWithATemplateIsAPod) {
  Write("cluster.yaml", kCluster);
  const std::string body = R"({metadata: {annotations: {pyroscope.io/scrape: "true"}}, spec: )"
                           R"({containers: [{name: a}]}})";
  std::string text;
  for (const char* kind : {"StatefulSet", "DaemonSet", "ReplicaSet"}) {
    text += std::string("---\napiVersion: apps/v1\nkind: ") + kind +
            "\nmetadata: {name: x}\nspec: {template: " + body + "}\n";
  }
  text += "---\napiVersion: batch/v1\nkind: Job\nmetadata: {name: x}\nspec: {template: " + body +
          "}\n---\napiVersion: batch/v1\nkind: CronJob\nmetadata: {name: x}\n"
          "spec: {jobTemplate: {spec: {template: " +
          body + "}}}\n---\napiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Pod\n" +
          "  metadata: {generateName: x-, annotations: {pyroscope.io/scrape: \"true\"}}\n" +
          "  spec: {containers: [{name: a}]}\n" +
          "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n";
  Write("all.yaml", text);
  const json plan = RunJson();
  EXPECT_EQ(plan["invalid"], json::array());
  ASSERT_EQ(plan["pods"].size(), 6U);
  for (const json& pod : plan["pods"])
    EXPECT_EQ(pod["collected"].size(), 1U) << pod;
}

TEST_F(RenderTest, TargetsOfTheNamespaceChoose) {
  Write("cluster.yaml", kCluster);
  Write("apps.yaml", Deployment("pay", "{}") + R"(---
apiVersion: flamefleet.dev/v1alpha1
kind: ProfilingTarget
metadata: {name: pay, namespace: shop}
spec: {selector: {matchLabels: {app: pay}}, profiles: [{type: memory, pull: {port: pprof}}]}
---
apiVersion: flamefleet.dev/v1alpha1
kind: ProfilingTarget
metadata: {name: other}
spec: {selector: {}, profiles: [{type: cpu}]}
)");
  const json plan = RunJson();
  ASSERT_EQ(plan["pods"].size(), 1U);
  const json& collected = plan["pods"][0]["collected"];
  ASSERT_EQ(collected.size(), 1U);
  EXPECT_EQ(collected[0]["profile"], "memory");
  EXPECT_EQ(collected[0]["pull"]["port"], 6060);
  EXPECT_EQ(collected[0]["askedBy"]["targets"], json::array({"pay"}));
}

// As when an overlay changes the labels of pods and not the selector.
TEST_F(RenderTest, ATargetThatSelectsNoPodIsToldAndWithStrictAnError) {
  Write("cluster.yaml", kCluster);
  Write("pay.yaml", Deployment("pay", "{}"));
  Write("target.yaml", R"(
apiVersion: flamefleet.dev/v1alpha1
kind: ProfilingTarget
metadata: {name: pay, namespace: shop}
spec: {selector: {matchLabels: {app: pay}}, profiles: [{type: cpu}]}
)");
  strict_ = true;
  EXPECT_TRUE(Run()) << errors_;
  EXPECT_THAT(out_, Not(HasSubstr("selects no pod")));
  Write("pay.yaml", Deployment("pay-v2", "{}"));
  EXPECT_FALSE(Run());
  EXPECT_THAT(out_, HasSubstr("ProfilingTarget shop/pay selects no pod of the manifests\n"));
  EXPECT_EQ(RunJson()["targetsWithoutPods"],
            json::parse(R"([{"namespace": "shop", "name": "pay"}])"));
  strict_ = false;
  EXPECT_TRUE(Run()) << errors_;
}

TEST_F(RenderTest, WhatIsInvalidHasFileDocumentObjectFieldAndCauseAndCostsTheRestNothing) {
  Write("cluster.yaml", kCluster);
  const std::string path =
      Write("apps.yaml", Deployment("a", "{pyroscope.io/scrape: true}") + "---\nkind: [\n" +
                             Deployment("b", R"({pyroscope.io/scrape: "true"})") + R"(---
apiVersion: flamefleet.dev/v1alpha1
kind: ProfilingTarget
metadata: {name: t, namespace: shop}
spec: {selector: {}, profiles: [{type: cpu, mode: Fast}], port: 1}
---
just text
)");
  EXPECT_FALSE(Run());
  EXPECT_THAT(errors_, HasSubstr(path + ", document 1: Deployment shop/a: "
                                        "spec.template.metadata.annotations[pyroscope.io/scrape]: "
                                        "want string, got boolean: put it in quotes\n"));
  EXPECT_THAT(errors_, HasSubstr(path + ", document 2: line "));
  EXPECT_THAT(errors_,
              HasSubstr(path + ", document 4: ProfilingTarget shop/t: spec.profiles[0].mode: "
                               "want one of Auto, EBPF, Pull\n"));
  EXPECT_THAT(errors_, HasSubstr("spec.port: no such field\n"));
  EXPECT_THAT(errors_, HasSubstr("document 5: not an object of Kubernetes"));
  EXPECT_THAT(out_, HasSubstr("shop/b"));
  EXPECT_THAT(out_, HasSubstr("It would profile 1 of 1 pod:"));
}

TEST_F(RenderTest, TheSameObjectTwiceIsInvalid) {
  Write("a.yaml", kCluster);
  Write("b.yaml", kCluster);
  EXPECT_FALSE(Run());
  EXPECT_THAT(errors_, HasSubstr("b.yaml, document 1: AgentPool default: metadata.name: the same "
                                 "object is in"));
}

// The file of which a real API server takes every object: see tests/config.
TEST_F(RenderTest, WhatTheApiServerTakesIsTaken) {
  std::ifstream accepted("tests/config/accepted.yaml");  // tests run in the root of the repository
  std::stringstream text;
  text << accepted.rdbuf();
  Write("accepted.yaml", text.str());
  EXPECT_TRUE(Run()) << errors_;
  EXPECT_THAT(out_, HasSubstr("The operator would make"));
}

TEST_F(RenderTest, AMissingFileIsInvalid) {
  folder_ += "/none.yaml";
  EXPECT_FALSE(Run());
  EXPECT_THAT(errors_, HasSubstr("none.yaml: "));
}

TEST_F(RenderTest, KustomizationsAndOtherFilesAreNoObjects) {
  Write("kustomization.yaml", "resources: [a.yaml]\n");
  Write("README.md", "# not yaml: [\n");
  Write("cluster.yaml", kCluster);
  EXPECT_TRUE(Run()) << errors_;
}

// As what a command that failed has written, or a folder that was renamed.
TEST_F(RenderTest, APathWithoutAnyManifestIsInvalid) {
  EXPECT_FALSE(Run());
  EXPECT_EQ(errors_, folder_ + ": there is no manifest in it\n");
  const std::string folder = folder_;
  for (const char* text : {"", "# none\n", "---\n---\n"}) {
    folder_ = Write("a.yaml", text);
    EXPECT_FALSE(Run()) << text;
    folder_ = folder;
  }
  Write("a.yaml", "{apiVersion: v1, kind: List, items: []}");  // of a kubectl that found nothing
  EXPECT_TRUE(Run()) << errors_;
}

TEST_F(RenderTest, APoolWhoseNodesThePodCannotRunOnHasNoSay) {
  Write("cluster.yaml", kCluster);
  Write("gpu.yaml",
        "apiVersion: flamefleet.dev/v1alpha1\nkind: AgentPool\nmetadata: {name: gpu}\n"
        "spec: {nodeSelector: {gpu: \"yes\"}, optIn: {annotations: []}}\n");
  Write("pod.yaml",
        "apiVersion: v1\nkind: Pod\n"
        "metadata: {name: p, annotations: {pyroscope.io/scrape: \"true\"}}\n"
        "spec: {nodeSelector: {gpu: \"no\"}, containers: [{name: a}]}\n");
  const json plan = RunJson();
  ASSERT_EQ(plan["pods"].size(), 1U);
  EXPECT_EQ(plan["pods"][0]["agentPools"], json::array({"default"}));
}

TEST_F(RenderTest, PoolsThatDisagreeAreToldApart) {
  Write("cluster.yaml", kCluster);
  Write("gpu.yaml",
        "apiVersion: flamefleet.dev/v1alpha1\nkind: AgentPool\nmetadata: {name: gpu}\n"
        "spec: {optIn: {annotations: []}}\n");
  Write("apps.yaml", Deployment("pay", R"({pyroscope.io/scrape: "true"})"));
  const json plan = RunJson();
  ASSERT_EQ(plan["pods"].size(), 2U);
  EXPECT_EQ(plan["pods"][0]["collected"].size(), 1U);
  EXPECT_EQ(plan["pods"][1]["agentPools"], json::array({"gpu"}));
  EXPECT_EQ(plan["pods"][1]["collected"].size(), 0U);
}

TEST_F(RenderTest, PoolsThatAgreeAreToldOfTogether) {
  Write("cluster.yaml", kCluster);
  Write("gpu.yaml",
        "apiVersion: flamefleet.dev/v1alpha1\nkind: AgentPool\nmetadata: {name: gpu}\n"
        "spec: {optIn: {annotations: []}}\n");
  Write("apps.yaml", Deployment("pay", "{}"));
  EXPECT_TRUE(Run());
  EXPECT_THAT(out_, HasSubstr("It would profile 0 of 1 pod:"));
  EXPECT_THAT(out_, HasSubstr("on nodes of AgentPool default, gpu"));
}

class RenderNamespaces : public RenderTest {
 protected:
  // A pod of namespace shop that opts in, where only some namespaces may.
  json Pod(const std::string& selector, const std::string& manifests = "") {
    Write("cluster.yaml",
          "apiVersion: flamefleet.dev/v1alpha1\nkind: AgentPool\nmetadata: {name: default}\n"
          "spec: {optIn: {namespaceSelector: " +
              selector +
              "}}\n---\napiVersion: flamefleet.dev/v1alpha1\nkind: ProfilingBackend\nmetadata: "
              "{name: main}\nspec: {default: true, type: Pyroscope, endpoint: \"http://p\"}\n" +
              manifests);
    Write("apps.yaml", Deployment("pay", R"({pyroscope.io/scrape: "true"})"));
    const json plan = RunJson();
    EXPECT_EQ(plan["invalid"], json::array());
    return plan["pods"][0];
  }
};

constexpr const char* kShop = R"(---
apiVersion: v1
kind: Namespace
metadata: {name: shop, labels: {team: red}}
)";

TEST_F(RenderNamespaces, TheLabelsOfAManifestDecide) {
  const json selected = Pod("{matchLabels: {team: red}}", kShop);
  EXPECT_EQ(selected["collected"].size(), 1U);
  const json other = Pod("{matchLabels: {team: blue}}", kShop);
  EXPECT_EQ(other["collected"].size(), 0U);
  EXPECT_EQ(other["reason"], "AnnotationsNotEnabled");
  EXPECT_FALSE(selected.contains("assumed") || other.contains("assumed"));
}

TEST_F(RenderNamespaces, WithoutAManifestThePlanSaysWhatItAssumes) {
  const json pod = Pod("{matchLabels: {team: red}}");
  EXPECT_EQ(pod["collected"].size(), 1U);
  EXPECT_THAT(pod["assumed"], HasSubstr("namespace shop has labels that optIn.namespaceSelector"));
  Run();
  EXPECT_THAT(out_, HasSubstr("    assumed: namespace shop"));
}

TEST_F(RenderNamespaces, ByItsNameANamespaceIsKnownWithoutAManifest) {
  const json selected = Pod("{matchLabels: {kubernetes.io/metadata.name: shop}}");
  EXPECT_EQ(selected["collected"].size(), 1U);
  const json other = Pod(
      "{matchExpressions: [{key: kubernetes.io/metadata.name, operator: NotIn, values: [shop]}]}");
  EXPECT_EQ(other["collected"].size(), 0U);
  EXPECT_FALSE(selected.contains("assumed") || other.contains("assumed"));
}

TEST_F(RenderNamespaces, NothingIsAssumedWhereItDoesNotMatter) {
  EXPECT_FALSE(Pod("{}").contains("assumed"));
  Write("target.yaml",
        "apiVersion: flamefleet.dev/v1alpha1\nkind: ProfilingTarget\n"
        "metadata: {name: t, namespace: shop}\n"
        "spec: {selector: {}, paused: true, profiles: [{type: cpu}]}\n");
  EXPECT_FALSE(Pod("{matchLabels: {team: red}}").contains("assumed"));
}

TEST_F(RenderTest, DefaultsAreThoseOfTheDefinitions) {
  Write("cluster.yaml", kCluster);
  const std::string objects = RunJson()["objects"].dump();
  EXPECT_THAT(objects, HasSubstr("--retention=259200s"));
  EXPECT_THAT(objects, HasSubstr(R"("operator":"Exists")"));
}

TEST_F(RenderTest, YamlOutputIsTheSameAsJson) {
  Write("cluster.yaml", kCluster);
  Write("apps.yaml",
        Deployment("pay", R"({pyroscope.io/scrape: "true", pyroscope.io/no: "a: #b\n\"c\" é"})"));
  const json plan = RunJson();
  Run(OutputForm::kYaml);
  std::vector<json> read;
  ReadYaml(out_, [&](int /*number*/, Result<json> document) {
    ASSERT_TRUE(document.ok()) << ErrorMessage(document.status());
    read.push_back(*std::move(document));
  });
  ASSERT_EQ(read.size(), 1U);
  EXPECT_EQ(read[0], plan);
}

TEST(ToYaml, TextThatLooksLikeSomethingElseIsQuoted) {
  const json value = {{"a", "true"},         {"b", "010"},   {"c", ""},     {"d", "- x"},
                      {"e", "x\ny: z"},      {"f", nullptr}, {"g", 1.5},    {"h", json::array()},
                      {"i", json::object()}, {"yes", "no"},  {"j", "0x1F"}, {"k", "\x01\xc3\xa9"}};
  ReadYaml(ToYaml(value), [&](int /*number*/, const Result<json>& document) {
    ASSERT_TRUE(document.ok()) << ToYaml(value);
    EXPECT_EQ(*document, value) << ToYaml(value);
  });
}

}  // namespace
}  // namespace flamefleet::render
