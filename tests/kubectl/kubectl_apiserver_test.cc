// SPDX-License-Identifier: Apache-2.0
// The plugin as kubectl runs it, against a real kube-apiserver. What the operator would write into
// statuses the test writes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/operator/apiserver_fixture.h"

namespace flamefleet {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kSystem = "flamefleet-system";

const char* const kObjects = R"(
apiVersion: flamefleet.dev/v1alpha1
kind: AgentPool
metadata: {name: linux}
spec: {}
---
apiVersion: flamefleet.dev/v1alpha1
kind: ProfilingBackend
metadata: {name: main}
spec: {default: true, type: Store, store: {managed: {storage: {ephemeral: true}}}}
---
apiVersion: flamefleet.dev/v1alpha1
kind: ProfilingTarget
metadata: {name: pay, namespace: shop}
spec: {selector: {matchLabels: {app: pay}}, profiles: [{type: cpu}]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: team, namespace: shop}
rules:
- {apiGroups: [""], resources: [pods, events], verbs: [get, list]}
- {apiGroups: [flamefleet.dev], resources: [profilingtargets], verbs: [get, list]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: team, namespace: shop}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: team}
subjects: [{kind: ServiceAccount, name: team, namespace: shop}]
)";

json Pod(const std::string& ns, const std::string& name, const json& metadata) {
  json pod = {
      {"apiVersion", "v1"},
      {"kind", "Pod"},
      {"metadata", metadata},
      {"spec",
       {{"nodeName", "n1"}, {"containers", {{{"name", "app"}, {"image", "example.org/x"}}}}}}};
  pod["metadata"]["name"] = name;
  pod["metadata"]["namespace"] = ns;
  return pod;
}

json OwnedBy(const std::string& kind, const std::string& name) {
  return {{{"apiVersion", "apps/v1"},
           {"kind", kind},
           {"name", name},
           {"uid", "11111111-1111-1111-1111-111111111111"},
           {"controller", true}}};
}

class KubectlTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    server_ = new ApiServer();
    folder_ = testing::TempDir() + "/kubectl-plugin";
    std::filesystem::create_directories(folder_);
    std::filesystem::create_symlink(
        std::filesystem::absolute("kubectl/kubectl_complete-flamefleet"),
        folder_ + "/kubectl_complete-flamefleet");
    std::filesystem::create_symlink(server_->kubectl(), folder_ + "/kubectl");
    for (const char* ns : {kSystem, "shop", "empty"})
      server_->MustKubectl({"create", "namespace", ns});
    for (const char* ns : {kSystem, "shop"}) {
      server_->MustKubectl({"create", "serviceaccount", "default", "-n", ns});
      server_->MustKubectl({"create", "serviceaccount", "team", "-n", ns});
    }
    server_->MustKubectl({"apply", "--server-side", "-f", "-"}, kObjects);
    RunPod(kSystem, "agent",
           {{"labels", {{"flamefleet.dev/pool", "linux"}}},
            {"ownerReferences", OwnedBy("DaemonSet", "flamefleet-agent-linux")}});
    RunPod("shop", "pay-0",
           {{"labels", {{"app", "pay"}}}, {"ownerReferences", OwnedBy("StatefulSet", "pay")}});
    RunPod("shop", "cart", {{"annotations", {{"pyroscope.io/scrape", "yes"}}}});
    RunPod("shop", "other", json::object());
    SetStatus("profilingtarget", "pay",
              {{"observedGeneration", 1}, {"pods", {{"matched", 1}, {"profiled", 1}}}});
    // The authorizer sees a binding a moment after it was made.
    ASSERT_TRUE(Eventually([] {
      return server_
                 ->Kubectl({"auth", "can-i", "list", "profilingtargets", "-n", "shop", "--as",
                            "system:serviceaccount:shop:team"})
                 .exit_code == 0;
    }));
  }
  static void TearDownTestSuite() {
    delete server_;
    std::filesystem::remove_all(folder_);
  }

  static void RunPod(const std::string& ns, const std::string& name, const json& metadata) {
    server_->MustKubectl({"create", "-f", "-"}, Pod(ns, name, metadata).dump());
    server_->MustKubectl({"patch", "pod", name, "-n", ns, "--subresource=status", "-p",
                          R"({"status": {"phase": "Running"}})"});
  }
  static void SetStatus(const std::string& kind, const std::string& name, const json& status) {
    server_->MustKubectl({"patch", kind, name, "-n", "shop", "--subresource=status", "--type=merge",
                          "-p", json({{"status", status}}).dump()});
  }

  struct Output {
    int code = 0;
    std::string out;
    std::string errors;
  };
  // A shell's command, with the plugin and kubectl in PATH.
  static Output RunShell(const std::string& line, const std::string& kubeconfig) {
    const std::string errors = folder_ + "/stderr";
    const std::string command = "export PATH=" + folder_ +
                                ":" FF_BIN ":$PATH KUBECONFIG=" + kubeconfig + "; " + line + " 2>" +
                                errors;
    FILE* const pipe = popen(command.c_str(), "r");
    Output output;
    std::array<char, 4096> buffer;
    for (size_t size = 0; (size = fread(buffer.data(), 1, buffer.size(), pipe)) > 0;)
      output.out.append(buffer.data(), size);
    const int status = pclose(pipe);
    output.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128;
    std::ifstream file(errors);
    output.errors.assign(std::istreambuf_iterator<char>(file), {});
    return output;
  }
  // `kubectl flamefleet ARGUMENTS`, as a shell reads them.
  static Output Run(const std::string& arguments, const std::string& kubeconfig) {
    return RunShell(server_->kubectl() + " flamefleet " + arguments, kubeconfig);
  }
  static Output Run(const std::string& arguments) { return Run(arguments, server_->kubeconfig()); }

  // The kubeconfig of a service account, whose context is in namespace shop.
  static std::string KubeconfigOf(const std::string& ns, const std::string& account) {
    std::string token = server_->MustKubectl({"create", "token", account, "-n", ns});
    token.erase(token.find_last_not_of('\n') + 1);
    json config = json::parse(server_->MustKubectl({"config", "view", "--raw", "-o", "json"}));
    config["users"] = {{{"name", "u"}, {"user", {{"token", token}}}}};
    for (json& context : config["contexts"]) {
      context["context"]["user"] = "u";
      context["context"]["namespace"] = "shop";
    }
    const std::string path = folder_ + "/" + ns + "-" + account;
    std::ofstream(path) << config.dump();
    return path;
  }

  static inline ApiServer* server_ = nullptr;
  static inline std::string folder_;
};

TEST_F(KubectlTest, ANamespaceIsATableAndAFailingPodMakesItOne) {
  const Output output = Run("status -n shop");
  EXPECT_EQ(output.out,
            "NAME    STATE          PROFILES   REASON              MESSAGE\n"
            "cart    Failing        <none>     InvalidAnnotation   cpu: pyroscope.io/scrape: "
            "\"yes\" is not \"true\" or \"false\"\n"
            "other   NotRequested   <none>     NotRequested        no ProfilingTarget selects it "
            "and no annotation opts it in\n"
            "pay-0   Profiled       cpu        <none>              <none>\n");
  EXPECT_EQ(output.errors, "");
  EXPECT_EQ(output.code, 1);
}

TEST_F(KubectlTest, APodAWorkloadAndAllNamespacesAreAnswered) {
  const Output pod = Run("status pay-0 -n shop");
  EXPECT_EQ(pod.code, 0) << pod.errors;
  EXPECT_THAT(pod.out, HasSubstr("State:       Profiled\n"));
  EXPECT_THAT(pod.out, HasSubstr("Node:        n1  (AgentPool linux)\n"));
  EXPECT_THAT(pod.out, HasSubstr("cpu: eBPF of container app, to main as service pay  "
                                 "[ProfilingTarget pay]\n"));
  const Output workload = Run("status sts/pay -n shop -o wide");
  EXPECT_EQ(workload.code, 0) << workload.errors;
  EXPECT_THAT(workload.out, HasSubstr("profilingtarget/pay"));
  EXPECT_THAT(workload.out, Not(HasSubstr("cart")));
  EXPECT_THAT(Run("status -A").out, testing::AllOf(HasSubstr("NAMESPACE           NAME"),
                                                   HasSubstr("flamefleet-system   agent")));
  EXPECT_EQ(Run("status other -n shop").code, 1) << "a pod that is named and not profiled";
}

TEST_F(KubectlTest, JsonAndYamlSayTheSame) {
  const json status = json::parse(Run("status pay-0 -n shop -o json").out);
  EXPECT_EQ(status["pods"][0]["state"], "Profiled");
  EXPECT_EQ(status["pods"][0]["collected"][0]["profile"], "cpu");
  EXPECT_EQ(status["notes"], json::array());
  EXPECT_THAT(Run("status pay-0 -n shop -o yaml").out, HasSubstr("state: Profiled\n"));
}

TEST_F(KubectlTest, TheOperatorsEventsOfThePodAreShown) {
  const json cart =
      json::parse(server_->MustKubectl({"get", "pod", "cart", "-n", "shop", "-o", "json"}));
  const json event = {{"apiVersion", "events.k8s.io/v1"},
                      {"kind", "Event"},
                      {"metadata", {{"name", "cart.1"}, {"namespace", "shop"}}},
                      {"eventTime", "2026-11-30T07:00:00.000000Z"},
                      {"reportingController", "flamefleet.dev/operator"},
                      {"reportingInstance", "x"},
                      {"type", "Warning"},
                      {"reason", "InvalidAnnotation"},
                      {"action", "Profile"},
                      {"note", "want true"},
                      {"regarding",
                       {{"apiVersion", "v1"},
                        {"kind", "Pod"},
                        {"name", "cart"},
                        {"namespace", "shop"},
                        {"uid", cart["metadata"]["uid"]}}}};
  server_->MustKubectl({"create", "-f", "-"}, event.dump());
  EXPECT_THAT(Run("status cart -n shop").out,
              HasSubstr("Events:\n  2026-11-30T07:00:00Z InvalidAnnotation: want true\n"));
}

// Who may do no more in a namespace than read its pods and targets.
TEST_F(KubectlTest, ATeamSeesItsPodsAndIsToldWhatIsAssumed) {
  const Output output = Run("status pay-0", KubeconfigOf("shop", "team"));
  EXPECT_EQ(output.code, 0) << output.errors;
  EXPECT_THAT(output.out, HasSubstr("State:       Profiled\n"));
  for (const char* note : {"you may not list agentpools", "you may not list profilingbackends",
                           "you may not list pods of namespace flamefleet-system"})
    EXPECT_THAT(output.errors, HasSubstr(note));
  const Output elsewhere = Run("status -A", KubeconfigOf("shop", "team"));
  EXPECT_EQ(elsewhere.code, 2);
  EXPECT_THAT(elsewhere.errors, HasSubstr("pods is forbidden"));
}

TEST_F(KubectlTest, WithoutRightsThereIsNoAnswer) {
  const Output output = Run("status", KubeconfigOf(kSystem, "team"));
  EXPECT_EQ(output.code, 2);
  EXPECT_EQ(output.out, "");
  EXPECT_THAT(output.errors,
              HasSubstr("error: get /api/v1/namespaces/shop/pods: pods is forbidden"));
}

TEST_F(KubectlTest, WhatIsNotThereIsSaid) {
  const Output pod = Run("status nobody -n shop");
  EXPECT_EQ(pod.code, 2);
  EXPECT_THAT(pod.errors, HasSubstr("pods \"nobody\" not found"));
  EXPECT_THAT(Run("status deploy/nobody -n shop").errors, HasSubstr("\"nobody\" not found"));
  const Output none = Run("status -n empty");
  EXPECT_EQ(none.code, 0);
  EXPECT_EQ(none.errors, "No pods found in namespace empty.\n");
  const Output context = Run("status --context nowhere");
  EXPECT_EQ(context.code, 2);
  EXPECT_THAT(context.errors, HasSubstr("there is no context named \"nowhere\""));
}

TEST_F(KubectlTest, WhyThereAreNoProfilesIsSaid) {
  const std::string top = "top sts/pay -n shop ";
  const Output no_store = Run(top);
  EXPECT_EQ(no_store.code, 2);
  EXPECT_THAT(no_store.errors, HasSubstr("there is no store: "));
  EXPECT_THAT(no_store.errors, HasSubstr("secrets \"flamefleet-store-main-reader\" not found"));
  EXPECT_THAT(Run(top + "--backend elsewhere").errors, HasSubstr("flamefleet-store-elsewhere"));

  // As it is while the store's pod does not run.
  server_->MustKubectl({"create", "-f", "-"}, R"(
apiVersion: v1
kind: Service
metadata: {name: flamefleet-store-idle, namespace: flamefleet-system}
spec: {ports: [{name: https, port: 4443}]}
---
apiVersion: v1
kind: Secret
metadata: {name: flamefleet-store-idle-reader, namespace: flamefleet-system}
stringData: {username: reader, password: hush}
---
apiVersion: v1
kind: Endpoints
metadata: {name: flamefleet-store-idle, namespace: flamefleet-system}
)");
  const Output no_pod = Run(top + "--backend idle");
  EXPECT_EQ(no_pod.code, 2);
  EXPECT_THAT(no_pod.errors,
              HasSubstr("the store behind Service flamefleet-system/flamefleet-store-idle "
                        "does not answer: "));

  const std::string team = KubeconfigOf("shop", "team");
  const Output no_backends = Run(top, team);
  EXPECT_EQ(no_backends.code, 2);
  EXPECT_THAT(no_backends.errors, HasSubstr("you may not list profilingbackends"));
  const Output no_right = Run(top + "--backend main", team);
  EXPECT_EQ(no_right.code, 2);
  EXPECT_THAT(no_right.errors, HasSubstr("cannot get resource \"secrets\""));
  EXPECT_THAT(no_right.errors, HasSubstr("ClusterRole flamefleet-profile-reader"));
}

TEST_F(KubectlTest, ABackendThatIsNoStoreOfOursIsNotAsked) {
  server_->MustKubectl({"apply", "--server-side", "-f", "-"}, R"(
apiVersion: flamefleet.dev/v1alpha1
kind: ProfilingBackend
metadata: {name: central}
spec: {type: Pyroscope, endpoint: "http://pyroscope.example:4040"}
---
apiVersion: flamefleet.dev/v1alpha1
kind: ProfilingTarget
metadata: {name: lot, namespace: empty}
spec: {selector: {}, backendRef: {name: central}, profiles: [{type: cpu}]}
)");
  server_->MustKubectl({"create", "serviceaccount", "default", "-n", "empty"});
  RunPod("empty", "lot", json::object());
  const Output output = Run("pprof lot -n empty -o /dev/null");
  server_->MustKubectl({"delete", "pod", "lot", "-n", "empty", "--force", "--grace-period=0"});
  EXPECT_EQ(output.code, 2);
  EXPECT_THAT(output.errors, HasSubstr("ProfilingBackend central is not a Store: ask the server at "
                                       "http://pyroscope.example:4040"));
}

TEST_F(KubectlTest, KubectlCompletesCommandsKindsAndNames) {
  const auto complete = [](const std::string& words) {
    return RunShell(server_->kubectl() + " __complete flamefleet " + words, server_->kubeconfig())
        .out;
  };
  EXPECT_EQ(complete("st"), "status\n:4\n");
  EXPECT_EQ(complete("status -n shop pa"), "pay-0\n:4\n");
  EXPECT_EQ(complete("top -n shop statefulset/"), "statefulset/pay\n:4\n");
  EXPECT_EQ(complete("status -o ''"), "json\nwide\nyaml\n:4\n");
  EXPECT_EQ(complete("nothing ''"), ":4\n");
}

TEST_F(KubectlTest, BashCompletesWithTheScript) {
  const Output output = RunShell(
      "bash -c 'source <(kubectl-flamefleet completion bash); "
      "COMP_WORDS=(kubectl-flamefleet status -n shop p); COMP_CWORD=4; "
      "_kubectl_flamefleet; echo \"${COMPREPLY[@]}\"'",
      server_->kubeconfig());
  EXPECT_EQ(output.out, "pay-0\n") << output.errors;
}

TEST_F(KubectlTest, FishCompletesWithTheScript) {
  const auto complete = [](const std::string& line) {
    return RunShell(
        "fish -c 'kubectl-flamefleet completion fish | source; complete -C \"" + line + "\"'",
        server_->kubeconfig());
  };
  const Output name = complete("kubectl-flamefleet status -n shop p");
  EXPECT_EQ(name.out, "pay-0\n") << name.errors;
  EXPECT_EQ(complete("kubectl-flamefleet status -o ").out, "json\nwide\nyaml\n");
}

// Without a terminal: what the line editor would set and call.
TEST_F(KubectlTest, ZshCompletesWithTheScript) {
  const auto complete = [](const std::string& words) {
    return RunShell(
        "zsh -fc 'autoload -Uz compinit && compinit -u -D; "
        "source <(kubectl-flamefleet completion zsh); compadd() { shift; print -l -- \"$@\" }; "
        "words=(kubectl-flamefleet " +
            words + "); CURRENT=$#words; _kubectl_flamefleet'",
        server_->kubeconfig());
  };
  const Output name = complete("status -n shop p");
  EXPECT_EQ(name.out, "pay-0\n") << name.errors;
  EXPECT_EQ(complete("status -o \"\"").out, "json\nwide\nyaml\n");
}

TEST_F(KubectlTest, OpenSaysWhyNothingIsForwarded) {
  const Output output = Run("open sts/pay -n shop --browser=false");
  EXPECT_EQ(output.code, 2);
  EXPECT_EQ(output.out, "");
  EXPECT_THAT(output.errors, HasSubstr("services \"flamefleet-store-main\" not found"));
}

TEST_F(KubectlTest, AnAnswerThatCannotBeWrittenIsNone) {
  const Output output = Run("status pay-0 -n shop >/dev/full");
  EXPECT_EQ(output.code, 2);
  EXPECT_EQ(output.errors, "error: write standard output: No space left on device\n");
}

TEST_F(KubectlTest, WrongUsageIsRefused) {
  for (const char* arguments :
       {"", "nothing", "status -o xml", "status service/x", "status -A pay-0", "top", "pprof pay-0",
        "top pay-0 --type 'a b'", "status --as someone"}) {
    const Output output = Run(arguments);
    EXPECT_EQ(output.code, 2) << arguments;
    EXPECT_EQ(output.out, "") << arguments;
  }
}

}  // namespace
}  // namespace flamefleet
