// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/client_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

namespace flamefleet {
namespace {

using testing::HasSubstr;

class ClientConfigTest : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string Write(const std::string& name, const std::string& content) {
    const std::string path = folder_ / name;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path) << content;
    return path;
  }

  ConfigSources Sources(std::map<std::string, std::string> environment) {
    ConfigSources sources;
    sources.service_account_directory = folder_ / "serviceaccount";
    sources.environment = [environment](const std::string& name) -> std::optional<std::string> {
      const auto found = environment.find(name);
      if (found == environment.end()) return std::nullopt;
      return found->second;
    };
    return sources;
  }

  // A kubeconfig whose only user has `user` as its body.
  std::string WithUser(const std::string& user) {
    return Write("user.yaml",
                 "current-context: c\ncontexts: [{name: c, context: {cluster: k, user: u}}]\n"
                 "clusters: [{name: k, cluster: {server: 'https://h:6443'}}]\n"
                 "users: [{name: u, user: " +
                     user + "}]\n");
  }

  Status ErrorOf(const std::string& content) {
    return LoadKubeconfig({Write("bad.yaml", content)}).status();
  }

  const std::filesystem::path folder_ =
      std::filesystem::path(testing::TempDir()) / "client_config_test";
};

TEST_F(ClientConfigTest, TheContextThatIsNamedWinsOverTheCurrentOne) {
  ConfigSources sources = Sources({{"KUBERNETES_SERVICE_HOST", "10.0.0.1"},
                                   {"KUBERNETES_SERVICE_PORT", "443"},
                                   {"HOME", folder_}});
  Write(".kube/config", R"(
current-context: a
contexts:
- {name: a, context: {cluster: k, namespace: one}}
- {name: b, context: {cluster: k, namespace: two}}
clusters: [{name: k, cluster: {server: 'https://h:6443'}}]
)");
  sources.context = "b";
  const Result<ClientConfig> config = FindClientConfig(sources);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->ns, "two");
  sources.context = "c";
  EXPECT_THAT(ErrorMessage(FindClientConfig(sources).status()),
              HasSubstr("there is no context named \"c\""));
}

TEST_F(ClientConfigTest, EmbeddedDataIsDecoded) {
  const Result<ClientConfig> config = LoadKubeconfig({Write("config", R"(
apiVersion: v1
kind: Config
current-context: b
contexts:
- {name: a, context: {cluster: other, user: other}}
- {name: b, context: {cluster: k, user: u, namespace: shop}}
clusters:
- name: k
  cluster:
    server: https://10.0.0.1:6443/prefix/
    tls-server-name: kubernetes
    certificate-authority-data: UEVNIENB
users:
- name: u
  user: {client-certificate-data: Y2VydA==, client-key-data: a2V5MQ==, token: t}
)")});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->base_url, "https://10.0.0.1:6443");
  EXPECT_EQ(config->path_prefix, "/prefix");
  EXPECT_EQ(config->ns, "shop");
  EXPECT_EQ(config->tls.server_name, "kubernetes");
  EXPECT_FALSE(config->tls.insecure_skip_verify);
  EXPECT_EQ(config->tls.ca_pem, "PEM CA");
  EXPECT_EQ(config->tls.client_cert_pem, "cert");
  EXPECT_EQ(config->tls.client_key_pem, "key1");
  EXPECT_EQ(config->token, "t");
}

TEST_F(ClientConfigTest, RelativePathsStartAtTheFileThatNamesThem) {
  Write("pki/ca.pem", "the CA");
  const Result<ClientConfig> config = LoadKubeconfig(
      {Write("config",
             "current-context: c\ncontexts: [{name: c, context: {cluster: k, user: u}}]\n"
             "clusters: [{name: k, cluster: {server: 'https://h', "
             "certificate-authority: pki/ca.pem}}]\n"
             "users: [{name: u, user: {tokenFile: token}}]\n")});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->tls.ca_pem, "the CA");
  EXPECT_EQ(config->token_file, folder_ / "token");
}

TEST_F(ClientConfigTest, InAListOfFilesTheFirstMentionWins) {
  const std::string first =
      Write("first", "clusters: [{name: k, cluster: {server: 'https://one'}}]");
  const std::string second =
      Write("second",
            "current-context: c\ncontexts: [{name: c, context: {cluster: k}}]\n"
            "clusters: [{name: k, cluster: {server: 'https://two'}}]\n");
  const Result<ClientConfig> config =
      FindClientConfig(Sources({{"KUBECONFIG", first + ":" + second}}));
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->base_url, "https://one");
}

TEST_F(ClientConfigTest, TheFlagWinsOverTheEnvironmentAndThatOverThePod) {
  Write("serviceaccount/ca.crt", "in-cluster CA");
  Write("serviceaccount/namespace", "flamefleet-system");
  const std::string file = WithUser("{token: t}");
  std::map<std::string, std::string> environment = {{"KUBERNETES_SERVICE_HOST", "fd00::1"},
                                                    {"KUBERNETES_SERVICE_PORT", "443"}};
  Result<ClientConfig> config = FindClientConfig(Sources(environment));
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->base_url, "https://kubernetes.default.svc:443");
  EXPECT_EQ(config->token_file, folder_ / "serviceaccount/token");
  EXPECT_EQ(config->tls.ca_pem, "in-cluster CA");
  EXPECT_EQ(config->ns, "flamefleet-system");

  environment["KUBECONFIG"] = file;
  EXPECT_EQ(FindClientConfig(Sources(environment))->token, "t");

  ConfigSources sources = Sources(environment);
  sources.kubeconfig_flag = folder_ / "missing";
  EXPECT_EQ(FindClientConfig(sources).status().code(), StatusCode::kNotFound);
}

TEST_F(ClientConfigTest, WithoutAnyConfigurationTheErrorSaysWhereWeLooked) {
  const Status status = FindClientConfig(Sources({{"HOME", folder_}})).status();
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_THAT(ErrorMessage(status), HasSubstr("KUBECONFIG"));
}

TEST_F(ClientConfigTest, WhatWeDoNotServeIsRefusedByName) {
  for (const char* key : {"auth-provider", "as", "as-uid", "as-groups", "as-user-extra"}) {
    const Status status = LoadKubeconfig({WithUser("{" + std::string(key) + ": x}")}).status();
    EXPECT_EQ(status.code(), StatusCode::kUnimplemented) << key;
    EXPECT_THAT(ErrorMessage(status), HasSubstr(key));
  }
}

TEST_F(ClientConfigTest, AMissingFileOfTheListIsSkipped) {
  const std::string file = WithUser("{token: t}");
  const std::string missing = folder_ / "missing";
  EXPECT_EQ(FindClientConfig(Sources({{"KUBECONFIG", missing + ":" + file}}))->token, "t");
  const Status status = FindClientConfig(Sources({{"KUBECONFIG", missing}})).status();
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_THAT(ErrorMessage(status), HasSubstr(missing));
}

TEST_F(ClientConfigTest, FilesOfCredentialsAreRememberedToBeReadAgain) {
  const std::string cert = Write("cert.pem", "cert");
  const std::string key = Write("key.pem", "key");
  const auto config =
      LoadKubeconfig({WithUser("{client-certificate: cert.pem, client-key: " + key + "}")});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->tls.client_cert_pem, "cert");
  EXPECT_EQ(config->client_cert_file, cert);
  EXPECT_EQ(config->client_key_file, key);
  EXPECT_EQ(config->ca_file, "");
}

TEST_F(ClientConfigTest, NameAndPasswordAreBasicAuthentication) {
  const auto config = LoadKubeconfig({WithUser("{username: me, password: '0'}")});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->username, "me");
  EXPECT_EQ(config->password, "0");
}

TEST_F(ClientConfigTest, APluginIsToldOfTheClusterWhenItAsks) {
  const auto config = LoadKubeconfig({Write("config", R"(
current-context: c
contexts: [{name: c, context: {cluster: k, user: u}}]
clusters: [{name: k, cluster: {server: 'https://h:6443/p', certificate-authority-data: UEVNIENB}}]
users:
- name: u
  user:
    exec:
      apiVersion: client.authentication.k8s.io/v1
      command: bin/plugin
      args: [get-token, --cluster, "7"]
      env: [{name: PROFILE, value: me}]
      installHint: get it
      interactiveMode: IfAvailable
      provideClusterInfo: true
)")});
  ASSERT_TRUE(config.ok()) << config.status();
  ASSERT_TRUE(config->exec.has_value());
  EXPECT_EQ(config->exec->command, folder_ / "bin/plugin");
  EXPECT_THAT(config->exec->arguments, testing::ElementsAre("get-token", "--cluster", "7"));
  EXPECT_THAT(config->exec->environment, testing::ElementsAre(testing::Pair("PROFILE", "me")));
  EXPECT_EQ(config->exec->install_hint, "get it");
  EXPECT_EQ(nlohmann::json::parse(config->exec->info), nlohmann::json::parse(R"(
      {"kind": "ExecCredential", "apiVersion": "client.authentication.k8s.io/v1",
       "spec": {"interactive": false, "cluster": {"server": "https://h:6443/p",
                "certificate-authority-data": "UEVNIENB"}}})"));
}

TEST_F(ClientConfigTest, APluginThatCannotWorkIsRefused) {
  const std::pair<const char*, const char*> rows[] = {
      {"{exec: x}", "not a map"},
      {"{exec: {apiVersion: client.authentication.k8s.io/v1}}", "no command"},
      {"{exec: {command: x, apiVersion: client.authentication.k8s.io/v1alpha1}}", "v1alpha1"},
      {"{exec: {command: x, apiVersion: client.authentication.k8s.io/v1, interactiveMode: Always}}",
       "terminal"},
      {"{exec: {command: x, apiVersion: client.authentication.k8s.io/v1, args: [[]]}}",
       "read kubeconfig"},
  };
  for (const auto& [user, error] : rows)
    EXPECT_THAT(ErrorMessage(LoadKubeconfig({WithUser(user)}).status()), HasSubstr(error));
}

TEST_F(ClientConfigTest, OnlyAPlainProxyIsTaken) {
  const auto load = [this](const std::string& proxy) {
    return LoadKubeconfig({Write("config",
                                 "current-context: c\ncontexts: [{name: c, context: {cluster: "
                                 "k}}]\nclusters: [{name: k, cluster: {server: 'https://h', "
                                 "proxy-url: '" +
                                     proxy + "'}}]\n")});
  };
  EXPECT_EQ(load("http://proxy:3128")->proxy_url, "http://proxy:3128");
  for (const char* proxy : {"https://proxy:3128", "socks5://proxy:1080"}) {
    EXPECT_EQ(load(proxy).status().code(), StatusCode::kUnimplemented) << proxy;
    EXPECT_THAT(ErrorMessage(load(proxy).status()), HasSubstr(proxy));
  }
}

TEST_F(ClientConfigTest, TheEnvironmentNamesTheProxyOfAKubeconfigThatNamesNone) {
  const auto proxy = [this](const std::string& server,
                            std::map<std::string, std::string> environment) {
    environment["KUBECONFIG"] =
        Write("config",
              "current-context: c\ncontexts: [{name: c, context: {cluster: k}}]\n"
              "clusters: [{name: k, cluster: {server: '" +
                  server + "'}}]\n");
    const Result<ClientConfig> config = FindClientConfig(Sources(environment));
    return config.ok() ? config->proxy_url : ErrorMessage(config.status());
  };
  const std::string name = "https://api.shop.example:6443/clusters/1";
  const std::string address = "https://10.1.2.3:6443";
  const std::string url = "http://proxy:3128";
  EXPECT_EQ(proxy(name, {{"HTTPS_PROXY", url}}), url);
  EXPECT_EQ(proxy(name, {{"https_proxy", "proxy:3128/"}}), url);
  EXPECT_EQ(proxy(name, {{"HTTP_PROXY", url}}), "");
  EXPECT_EQ(proxy("http://h:8080", {{"HTTP_PROXY", url}}), url);
  EXPECT_EQ(proxy("https://127.0.0.1:6443", {{"HTTPS_PROXY", url}}), "");
  EXPECT_EQ(proxy("https://localhost", {{"HTTPS_PROXY", url}}), "");
  for (const char* list : {"*", "example", "a.com, SHOP.example", "api.shop.example", ".example",
                           "*.shop.example", "api.shop.example:6443"})
    EXPECT_EQ(proxy(name, {{"HTTPS_PROXY", url}, {"NO_PROXY", list}}), "") << list;
  for (const char* list :
       {"", ",", "op.example", ".api.shop.example", "api.shop.example:443", "10.0.0.0/8", "api"})
    EXPECT_EQ(proxy(name, {{"HTTPS_PROXY", url}, {"no_proxy", list}}), url) << list;
  for (const char* list : {"10.1.2.3", "10.0.0.0/8", "0.0.0.0/0", "10.1.2.3:6443", "10.1.2.3/32"})
    EXPECT_EQ(proxy(address, {{"HTTPS_PROXY", url}, {"no_proxy", list}}), "") << list;
  for (const char* list : {"10.1.2", "10.2.0.0/16", "10.1.2.3/33", "10.1.2.3/", "10.1.2.3:443"})
    EXPECT_EQ(proxy(address, {{"HTTPS_PROXY", url}, {"no_proxy", list}}), url) << list;
  for (const char* wrong : {"socks5://proxy:1080", "http://me:secret@proxy:3128"})
    EXPECT_EQ(proxy(name, {{"HTTPS_PROXY", wrong}}),
              "environment variable HTTPS_PROXY: only http://HOST:PORT is supported, without a "
              "password");
}

TEST_F(ClientConfigTest, AProxyOfTheKubeconfigWinsAndInAClusterThereIsNone) {
  Write("serviceaccount/ca.crt", "in-cluster CA");
  Write("serviceaccount/namespace", "flamefleet-system");
  std::map<std::string, std::string> environment = {{"KUBERNETES_SERVICE_HOST", "10.0.0.1"},
                                                    {"KUBERNETES_SERVICE_PORT", "443"},
                                                    {"HTTPS_PROXY", "http://other:3128"}};
  EXPECT_EQ(FindClientConfig(Sources(environment))->proxy_url, "");
  environment["KUBECONFIG"] = Write(
      "config",
      "current-context: c\ncontexts: [{name: c, context: {cluster: k}}]\n"
      "clusters: [{name: k, cluster: {server: 'https://h', proxy-url: 'http://proxy:3128'}}]\n");
  EXPECT_EQ(FindClientConfig(Sources(environment))->proxy_url, "http://proxy:3128");
}

TEST_F(ClientConfigTest, AnEmptyFileOfTheListSaysNothing) {
  const std::string list = Write("empty", "") + ":" + WithUser("{token: t}");
  EXPECT_EQ(FindClientConfig(Sources({{"KUBECONFIG", list}}))->token, "t");
  EXPECT_THAT(ErrorMessage(ErrorOf("# nothing\n")), HasSubstr("current-context is not set"));
}

TEST_F(ClientConfigTest, ABadFileIsRefusedWithWhatIsWrong) {
  EXPECT_THAT(ErrorMessage(ErrorOf("a: [")), HasSubstr("bad.yaml"));
  EXPECT_THAT(ErrorMessage(ErrorOf("- list")), HasSubstr("not a map"));
  EXPECT_THAT(ErrorMessage(ErrorOf("{}")), HasSubstr("current-context"));
  EXPECT_THAT(ErrorMessage(ErrorOf("current-context: nope")), HasSubstr("\"nope\""));
  EXPECT_THAT(ErrorMessage(ErrorOf("current-context: c\ncontexts: [{name: c, context: {cluster: "
                                   "gone}}]")),
              HasSubstr("\"gone\""));
  EXPECT_THAT(
      ErrorMessage(ErrorOf("current-context: c\ncontexts: [{name: c, context: {cluster: k}}]"
                           "\nclusters: [{name: k, cluster: {server: nowhere}}]")),
      HasSubstr("nowhere"));
  EXPECT_THAT(ErrorMessage(ErrorOf("current-context: c\ncontexts: 7\nclusters: {a: b}")),
              HasSubstr("context"));
}

TEST_F(ClientConfigTest, BadCredentialsAreRefused) {
  EXPECT_THAT(ErrorMessage(LoadKubeconfig({WithUser("{client-certificate-data: '%%'}")}).status()),
              HasSubstr("client-certificate-data"));
  EXPECT_THAT(ErrorMessage(LoadKubeconfig({WithUser("{client-certificate: gone.pem}")}).status()),
              HasSubstr("gone.pem"));
  EXPECT_THAT(ErrorMessage(LoadKubeconfig({WithUser("{client-key-data: a2V5}")}).status()),
              HasSubstr("only one of"));
}

}  // namespace
}  // namespace flamefleet
