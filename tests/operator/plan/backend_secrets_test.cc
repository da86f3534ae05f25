// SPDX-License-Identifier: Apache-2.0
#include "operator/plan/backend_secrets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/reasons.h"
#include "operator/plan/names.h"
#include "tests/operator/plan/builders.h"

namespace flamefleet::plan {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class BackendSecretsTest : public ::testing::Test {
 protected:
  void Put(const std::string& name, StringMap data, const std::string& type = "Opaque") {
    api::Secret secret;
    secret.type = type;
    secret.data = std::move(data);
    secrets_[name] = std::make_shared<const api::Secret>(std::move(secret));
  }
  // The reason, or "" when all is well.
  std::string Fill() {
    backend_ = {};
    const auto problem = FillCredentials(spec_, "ns", secrets_, backend_);
    message_ = problem ? problem->message : "";
    return problem ? std::string(problem->reason) : "";
  }

  api::ProfilingBackendSpec spec_;
  api::SecretMap secrets_;
  Backend backend_;
  std::string message_;
};

TEST_F(BackendSecretsTest, ABearerTokenBecomesAHeaderWithoutTheFilesLineEnd) {
  spec_.auth.bearer_token = {"login", "token"};
  Put("login", {{"token", "abc\n"}});
  EXPECT_EQ(Fill(), "");
  EXPECT_EQ(backend_.authorization, "Bearer abc");
}

TEST_F(BackendSecretsTest, UserAndPasswordBecomeABasicHeader) {
  spec_.auth.basic_secret = "login";
  Put("login", {{"username", "Aladdin"}, {"password", "open sesame"}});
  EXPECT_EQ(Fill(), "");
  EXPECT_EQ(backend_.authorization, "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");  // of RFC 7617
}

TEST_F(BackendSecretsTest, WhatIsMissingIsNamed) {
  spec_.auth.basic_secret = "login";
  EXPECT_EQ(Fill(), reasons::kSecretNotRead);
  secrets_["login"] = nullptr;
  EXPECT_EQ(Fill(), reasons::kSecretNotFound);
  EXPECT_EQ(message_, "Secret \"login\" of namespace ns does not exist");
  Put("login", {{"username", "u"}, {"password", ""}});
  EXPECT_EQ(Fill(), reasons::kSecretNotFound);
  EXPECT_EQ(message_, "Secret \"login\" of namespace ns has no key \"password\", or it is empty");
  Put("login", {{"username", "\n"}, {"password", "p"}});
  EXPECT_EQ(Fill(), reasons::kSecretNotFound);
}

TEST_F(BackendSecretsTest, WhatOpensTheClusterIsSentToNoBackend) {
  Put(kTlsSecret, {{"username", "u"}, {"password", "hush"}});
  spec_.auth.basic_secret = kTlsSecret;
  EXPECT_EQ(Fill(), reasons::kInvalidSecret);
  Put("robot", {{"token", "hush"}}, "kubernetes.io/service-account-token");
  spec_.auth = {};
  spec_.auth.bearer_token = {"robot", "token"};
  EXPECT_EQ(Fill(), reasons::kInvalidSecret);
  EXPECT_EQ(message_, "Secret \"robot\" of namespace ns is the cluster's own and no backend's");
  EXPECT_EQ(backend_.authorization, "");
}

TEST_F(BackendSecretsTest, AManagedStoreHasWhatTheOperatorMadeForIt) {
  spec_.managed_store.emplace();
  const auto fill = [&] {
    backend_ = {.name = "main"};
    const auto problem = FillCredentials(spec_, "ns", secrets_, backend_);
    return problem ? std::string(problem->reason) : "";
  };
  EXPECT_EQ(fill(), reasons::kSecretNotRead);
  secrets_[kStoreSecret] = nullptr;
  EXPECT_EQ(fill(), reasons::kSecretNotRead);
  Put(kStoreSecret, {{"trust", "CA"}, {"other.token", "hush"}});
  EXPECT_EQ(fill(), reasons::kSecretNotRead);
  EXPECT_EQ(backend_.ca_pem, "");
  Put(kStoreSecret, {{"trust", "CA"}, {"other.token", "hush"}, {"main.token", "mine"}});
  EXPECT_EQ(fill(), "");
  EXPECT_EQ(backend_.ca_pem, "CA");
  EXPECT_EQ(backend_.authorization, "Bearer mine");
}

TEST_F(BackendSecretsTest, TheKeysOfManagedStoresAreSentToNoOtherBackend) {
  Put(kStoreSecret, {{"main.token", "hush"}});
  spec_.auth.bearer_token = {kStoreSecret, "main.token"};
  EXPECT_EQ(Fill(), reasons::kInvalidSecret);
  EXPECT_EQ(backend_.authorization, "");
}

TEST_F(BackendSecretsTest, AValueThatAHeaderCannotCarryIsRefusedAndNotRepeated) {
  spec_.auth.bearer_token = {"login", "token"};
  for (const char* token : {"hush hush", "hush\r\nX-Evil: 1", "h\xc3\xbcsh"}) {
    Put("login", {{"token", token}});
    EXPECT_EQ(Fill(), reasons::kInvalidSecret);
    EXPECT_THAT(message_, Not(HasSubstr("sh\r")));
    EXPECT_THAT(message_, HasSubstr("key \"token\" of Secret \"login\""));
    EXPECT_EQ(backend_.authorization, "");
  }
}

TEST_F(BackendSecretsTest, WhatIsTooLongForAHeaderOrForAgentsIsRefused) {
  spec_.auth.bearer_token = {"login", "token"};
  Put("login", {{"token", std::string(8 << 10, 'a')}});
  EXPECT_EQ(Fill(), "");
  Put("login", {{"token", std::string((8 << 10) + 1, 'a')}});
  EXPECT_EQ(Fill(), reasons::kInvalidSecret);
  EXPECT_EQ(message_, "key \"token\" of Secret \"login\" of namespace ns: want at most 8192 bytes");
  spec_.auth = {};
  spec_.tls.ca = {"ca", "ca.crt"};
  Put("ca", {{"ca.crt", "-----BEGIN CERTIFICATE-----" + std::string(256 << 10, 'a')}});
  EXPECT_EQ(Fill(), reasons::kInvalidSecret);
  EXPECT_EQ(backend_.ca_pem, "");
}

TEST_F(BackendSecretsTest, ACaMustBePem) {
  spec_.tls.ca = {"ca", "ca.crt"};
  Put("ca", {{"ca.crt", "hush"}});
  EXPECT_EQ(Fill(), reasons::kInvalidSecret);
  Put("ca", {{"ca.crt", "-----BEGIN CERTIFICATE-----\nx\n"}});
  EXPECT_EQ(Fill(), "");
}

TEST_F(BackendSecretsTest, ABackendWithoutItsSecretIsHeldAndStopsItsCollections) {
  api::ProfilingBackend backend = DefaultBackend();
  backend.spec.managed_store.reset();
  backend.spec.auth.bearer_token = {"login", "token"};
  const api::ProfilingTarget target = Target("t", {{.type = ProfileType::kCpu}});
  const api::Pod pod = RunningPod();
  const auto plan = [&] {
    const BackendTable table({&backend}, "ns", secrets_);
    EXPECT_EQ(table.Find("default")->hold, !secrets_.contains("login") || !secrets_["login"]);
    return PlanPod({pod, {&target}, {}, table});
  };
  EXPECT_EQ(plan().refusals.size(), 0U);  // not read yet: nothing stops for that
  secrets_["login"] = nullptr;
  ASSERT_EQ(plan().refusals.size(), 1U);
  EXPECT_EQ(plan().refusals[0].problem.reason, reasons::kSecretNotFound);
  EXPECT_EQ(plan().collections.size(), 0U);
  Put("login", {{"token", "t"}});
  EXPECT_EQ(plan().collections.size(), 1U);
}

TEST(SecretNames, AreThoseThatBackendsNameAndThoseOfManagedStores) {
  auto backend = std::make_shared<api::ProfilingBackend>(DefaultBackend());
  EXPECT_EQ(SecretNames({backend}),
            (std::set<std::string>{kTlsSecret, kStoreSecret, "flamefleet-store-default-reader"}));
  backend->spec.managed_store.reset();
  EXPECT_EQ(SecretNames({backend}), std::set<std::string>{});
  backend->spec.tls.ca = {"ca", "ca.crt"};
  backend->spec.auth.basic_secret = "login";
  EXPECT_EQ(SecretNames({backend}), (std::set<std::string>{"ca", "login"}));
}

}  // namespace
}  // namespace flamefleet::plan
