// SPDX-License-Identifier: Apache-2.0
#include "operator/security/store_keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/plan/names.h"

namespace flamefleet::security {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr int64_t kStartNs = 1'700'000'000 * kNanosPerSecond;
constexpr const char* kNamespace = "fleet";

TlsMaterial Authority(int64_t now_ns) {
  const Result<Renewed> made = Renew({}, {"operator.fleet.svc"}, now_ns);
  EXPECT_TRUE(made.ok()) << made.status();
  return made->material;
}

class StoreKeysTest : public testing::Test {
 protected:
  RenewedStores RenewAt(int64_t now_ns) {
    Result<RenewedStores> renewed = RenewStores(stored_, readers_, material_, kNamespace, now_ns);
    EXPECT_TRUE(renewed.ok()) << renewed.status();
    stored_ = renewed->data;
    return *std::move(renewed);
  }
  std::string Of(const std::string& backend, const char* what) {
    return stored_[plan::StoreKey(backend, what)];
  }

  TlsMaterial material_ = Authority(kStartNs);
  api::StringMap stored_;
  std::map<std::string, std::string> readers_ = {{"main", "reader:pw"}};
};

TEST_F(StoreKeysTest, AreMadeOnceAndThenLeftAlone) {
  EXPECT_THAT(RenewAt(kStartNs).why, Not(IsEmpty()));
  EXPECT_THAT(RenewAt(kStartNs + kDayNs).why, IsEmpty());
  const std::string certificate = Of("main", plan::kStoreCertificate);
  EXPECT_TRUE(CheckPair({certificate, Of("main", plan::kStoreCertificateKey)}).ok());
  EXPECT_TRUE(CheckIssuedBy(certificate, material_.authority.certificate).ok());
  EXPECT_EQ(InspectCertificate(certificate)->dns_names.front(), "flamefleet-store-main.fleet.svc");
  EXPECT_EQ(stored_[plan::kStoreTrustKey], TrustBundle(material_));
  EXPECT_EQ(Of("main", plan::kStoreAuth),
            "write bearer " + Of("main", plan::kStoreToken) + "\nread basic reader:pw\n");
  EXPECT_EQ(Of("main", plan::kStoreToken).size(), 48U);
}

TEST_F(StoreKeysTest, OfStoresAreDifferentAndGoWithTheirStore) {
  readers_["other"] = "reader:pw2";
  RenewAt(kStartNs);
  EXPECT_NE(Of("main", plan::kStoreToken), Of("other", plan::kStoreToken));
  EXPECT_NE(Of("main", plan::kStoreCertificateKey), Of("other", plan::kStoreCertificateKey));
  const std::string token = Of("main", plan::kStoreToken);
  readers_.erase("other");
  EXPECT_THAT(RenewAt(kStartNs).why, HasSubstr("no more other.token"));
  EXPECT_EQ(Of("main", plan::kStoreToken), token);
  EXPECT_EQ(stored_.size(), 5U);
}

TEST_F(StoreKeysTest, AnotherPasswordOfReadersChangesNothingElse) {
  RenewAt(kStartNs);
  readers_["main"] = "sre:other";
  EXPECT_EQ(RenewAt(kStartNs).why, "main.auth");
  EXPECT_THAT(Of("main", plan::kStoreAuth), HasSubstr("read basic sre:other\n"));
  readers_["main"] = "";
  EXPECT_EQ(RenewAt(kStartNs).why, "main.auth");
  EXPECT_THAT(Of("main", plan::kStoreAuth), Not(HasSubstr("read")));
}

TEST_F(StoreKeysTest, ACertificateIsRenewedInTimeAndByTheAuthorityInForce) {
  RenewAt(kStartNs);
  const std::string token = Of("main", plan::kStoreToken);
  EXPECT_THAT(RenewAt(kStartNs + kServingLifeNs - kServingRenewBeforeNs - kDayNs).why, IsEmpty());
  EXPECT_EQ(RenewAt(kStartNs + kServingLifeNs - kServingRenewBeforeNs + kDayNs).why,
            "main.crt, main.key");
  material_ = Authority(kStartNs + kServingLifeNs);
  EXPECT_EQ(RenewAt(kStartNs + kServingLifeNs).why, "main.crt, main.key, trust");
  EXPECT_EQ(Of("main", plan::kStoreToken), token);
}

}  // namespace
}  // namespace flamefleet::security
