// SPDX-License-Identifier: Apache-2.0
// Tokens that a real kube-apiserver made and judges, and the keys of the channel in its Secrets.
#include <gtest/gtest.h>

#include <array>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/base64.h"
#include "operator/plan/names.h"
#include "operator/security/tls_store.h"
#include "operator/security/token_reviewer.h"
#include "tests/operator/apiserver_fixture.h"

namespace flamefleet::security {
namespace {

using nlohmann::json;

constexpr const char* kNamespace = "fleet";

class SecurityTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    server_ = new ApiServer();
    server_->MustKubectl({"create", "namespace", kNamespace});
    for (const char* account : {"flamefleet-agent", "somebody"})
      server_->MustKubectl({"create", "serviceaccount", account, "-n", kNamespace});
    for (const auto& [pod, node, account] :
         {std::array{"agent-1", "n1", "flamefleet-agent"},
          std::array{"agent-2", "n2", "flamefleet-agent"},
          std::array{"agent-9", "", "flamefleet-agent"}, std::array{"other", "n1", "somebody"}}) {
      json spec = {{"serviceAccountName", account},
                   {"containers", {{{"name", "main"}, {"image", "example.org/x"}}}}};
      if (*node != '\0') spec["nodeName"] = node;
      server_->MustKubectl({"create", "-f", "-"},
                           json{{"apiVersion", "v1"},
                                {"kind", "Pod"},
                                {"metadata", {{"name", pod}, {"namespace", kNamespace}}},
                                {"spec", spec}}
                               .dump());
    }
  }
  static void TearDownTestSuite() { delete server_; }

  static std::string MakeToken(const std::string& account, const std::string& pod,
                               const std::string& audience = "flamefleet-operator") {
    std::vector<std::string> command = {"create", "token",    account,
                                        "-n",     kNamespace, "--audience=" + audience};
    if (!pod.empty()) {
      command.emplace_back("--bound-object-kind=Pod");
      command.push_back("--bound-object-name=" + pod);
    }
    std::string token = server_->MustKubectl(command);
    token.erase(token.find_last_not_of('\n') + 1);
    return token;
  }
  Admission Check(const std::string& token) { return reviewer_.Check(token, {}); }
  std::string RefusalOf(const std::string& token) { return std::string(Check(token).refusal); }

  TlsStore NewStore(RestClient& client) const {
    return TlsStore(client, SystemClock(), kNamespace, {"operator.fleet.svc"});
  }
  static json Get(const std::string& kind, const std::string& name) {
    return json::parse(server_->MustKubectl({"get", kind, name, "-n", kNamespace, "-o", "json"}));
  }
  static std::string SecretValue(const std::string& key) {
    return *DecodeBase64(Get("secret", plan::kTlsSecret)["data"].value(key, ""));
  }

  static ApiServer* server_;
  Metrics metrics_;
  const std::unique_ptr<RestClient> client_ = server_->NewClient(metrics_);
  TokenReviewer reviewer_{"system:serviceaccount:fleet:flamefleet-agent", SystemClock(), metrics_,
                          [this](const std::string& body, const std::stop_token& stop) {
                            return client_->CreateObject(kTokenReviews, "", "", body, stop);
                          },
                          [](const std::string&, const std::string&) { return std::string(); }};
};

ApiServer* SecurityTest::server_ = nullptr;

TEST_F(SecurityTest, ATokenOfAnAgentsPodSaysItsNode) {
  const Admission one = Check(MakeToken("flamefleet-agent", "agent-1"));
  ASSERT_TRUE(one.status.ok()) << one.status;
  EXPECT_EQ(one.identity.node, "n1");
  EXPECT_EQ(one.identity.pod, "agent-1");
  EXPECT_EQ(Check(MakeToken("flamefleet-agent", "agent-2")).identity.node, "n2");
}

TEST_F(SecurityTest, WhatIsNoTokenOfAnAgentIsRefusedWithItsReason) {
  EXPECT_EQ(RefusalOf(MakeToken("flamefleet-agent", "agent-1", "https://kubernetes.default.svc")),
            "WrongAudience");
  EXPECT_EQ(RefusalOf(MakeToken("somebody", "other")), "WrongAccount");
  EXPECT_EQ(RefusalOf(MakeToken("flamefleet-agent", "")), "NoNode");
  EXPECT_EQ(RefusalOf(MakeToken("flamefleet-agent", "agent-9")), "NoNode");
}

TEST_F(SecurityTest, AForgedTokenIsRefused) {
  const std::string token = MakeToken("flamefleet-agent", "agent-1");
  const size_t signature = token.rfind('.') + 1;
  std::string other_signature = token;
  other_signature[signature + 10] = token[signature + 10] == 'A' ? 'B' : 'A';
  EXPECT_EQ(RefusalOf(other_signature), "TokenRefused");
  // The claims of one token with the signature of another.
  const std::string second = MakeToken("flamefleet-agent", "agent-2");
  EXPECT_EQ(RefusalOf(second.substr(0, second.rfind('.')) + token.substr(token.rfind('.'))),
            "TokenRefused");
  EXPECT_TRUE(Check(token).status.ok());
}

TEST_F(SecurityTest, TheTokenOfAPodThatIsGoneIsRefused) {
  server_->MustKubectl({"run", "agent-3", "-n", kNamespace, "--image=example.org/x",
                        "--overrides={\"spec\":{\"nodeName\":\"n3\","
                        "\"serviceAccountName\":\"flamefleet-agent\"}}"});
  const std::string token = MakeToken("flamefleet-agent", "agent-3");
  server_->MustKubectl(
      {"delete", "pod", "agent-3", "-n", kNamespace, "--force", "--grace-period=0"});
  EXPECT_EQ(RefusalOf(token), "TokenRefused");
}

TEST_F(SecurityTest, OperatorsThatRaceEndWithOneAuthority) {
  constexpr int kOperators = 6;
  std::vector<CertificatePair> served(kOperators);
  {
    std::vector<std::jthread> operators;
    for (int i = 0; i < kOperators; ++i) {
      operators.emplace_back([&, i] {
        const auto client = server_->NewClient(metrics_);
        TlsStore store = NewStore(*client);
        Result<CertificatePair> pair = store.Sync({});
        EXPECT_TRUE(pair.ok()) << pair.status();
        if (pair.ok()) served[static_cast<size_t>(i)] = *std::move(pair);
      });
    }
  }
  const std::string authority = SecretValue("ca.crt");
  for (const CertificatePair& pair : served)
    EXPECT_TRUE(CheckIssuedBy(pair.certificate, authority).ok());
  EXPECT_EQ(Get("configmap", "flamefleet-operator-trust")["data"]["ca.crt"], authority);
}

TEST_F(SecurityTest, KeysThatAreInDateAreNotWritten) {
  TlsStore store = NewStore(*client_);
  ASSERT_TRUE(store.Sync({}).ok());
  const json secret = Get("secret", plan::kTlsSecret);
  const json trust = Get("configmap", "flamefleet-operator-trust");
  ASSERT_TRUE(store.Sync({}).ok());
  ASSERT_TRUE(NewStore(*client_).Sync({}).ok());
  EXPECT_EQ(Get("secret", plan::kTlsSecret), secret);
  EXPECT_EQ(Get("configmap", "flamefleet-operator-trust"), trust);
}

TEST_F(SecurityTest, WhoDeletesTheSecretGetsAnotherAuthority) {
  TlsStore store = NewStore(*client_);
  ASSERT_TRUE(store.Sync({}).ok());
  const std::string before = SecretValue("ca.crt");
  server_->MustKubectl({"delete", "secret", plan::kTlsSecret, "-n", kNamespace});
  ASSERT_TRUE(store.Sync({}).ok());
  EXPECT_NE(SecretValue("ca.crt"), before);
  EXPECT_EQ(Get("configmap", "flamefleet-operator-trust")["data"]["ca.crt"], SecretValue("ca.crt"));
}

TEST_F(SecurityTest, ASecretThatSomebodyBrokeIsRepaired) {
  TlsStore store = NewStore(*client_);
  ASSERT_TRUE(store.Sync({}).ok());
  const std::string authority = SecretValue("ca.crt");
  server_->MustKubectl({"patch", "secret", plan::kTlsSecret, "-n", kNamespace, "-p",
                        R"({"data":{"tls.key":"Z2FyYmFnZQ==","extra":"Z2FyYmFnZQ=="}})"});
  const Result<CertificatePair> pair = store.Sync({});
  ASSERT_TRUE(pair.ok()) << pair.status();
  EXPECT_TRUE(CheckPair(*pair).ok());
  EXPECT_EQ(SecretValue("ca.crt"), authority);
  EXPECT_EQ(SecretValue("tls.key"), pair->key);
}

}  // namespace
}  // namespace flamefleet::security
