// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/client_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>

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
  for (const char* key : {"exec", "auth-provider", "username", "as", "as-groups"}) {
    const Status status = LoadKubeconfig({WithUser("{" + std::string(key) + ": x}")}).status();
    EXPECT_EQ(status.code(), StatusCode::kUnimplemented) << key;
    EXPECT_THAT(ErrorMessage(status), HasSubstr(key));
  }
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
