// SPDX-License-Identifier: Apache-2.0
#include "operator/security/tls_material.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace flamefleet::security {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr int64_t kStartNs = 1'700'000'000 * kNanosPerSecond;
const std::vector<std::string> kNames = {"operator.ns.svc", "operator.ns"};

TlsMaterial RenewAt(const TlsMaterial& material, int64_t now_ns) {
  const Result<Renewed> renewed = Renew(material, kNames, now_ns);
  EXPECT_TRUE(renewed.ok()) << renewed.status();
  return renewed->material;
}

TEST(TlsMaterial, IsMadeOnceAndThenLeftAlone) {
  const Result<Renewed> first = Renew({}, kNames, kStartNs);
  ASSERT_TRUE(first.ok());
  EXPECT_THAT(first->why, HasSubstr("authority made"));
  const Result<Renewed> second = Renew(first->material, kNames, kStartNs + kDayNs);
  EXPECT_THAT(second->why, IsEmpty());
  EXPECT_EQ(second->material, first->material);
}

// Three years, an operator that looks every third day, an agent that reads what to trust a day
// late.
TEST(TlsMaterial, AnAgentThatReadsADayLateTrustsEveryCertificateThatIsServed) {
  TlsMaterial material;
  std::vector<std::pair<int64_t, std::string>> bundles;  // since when
  int authorities = 0;
  int servings = 0;
  for (int64_t day = 0; day < 3L * 365; day += 3) {
    const int64_t now_ns = kStartNs + day * kDayNs;
    const TlsMaterial before = material;
    material = RenewAt(material, now_ns);
    if (material == before) continue;
    authorities += material.authority != before.authority;
    servings += material.serving != before.serving;
    bundles.emplace_back(now_ns, TrustBundle(material));
    const auto info = InspectCertificate(material.serving.certificate);
    ASSERT_TRUE(info.ok());
    EXPECT_GT(info->not_after_ns, now_ns + kDayNs);
    // The newest bundle that is a day old: who has that one trusts what is served now.
    for (auto bundle = bundles.rbegin(); bundle != bundles.rend(); ++bundle) {
      if (bundle->first > now_ns - kPropagationNs) continue;
      EXPECT_THAT(bundle->second, HasSubstr(material.authority.certificate));
      break;
    }
  }
  EXPECT_GE(authorities, 4);
  EXPECT_GE(servings, 15);
}

TEST(TlsMaterial, ANextAuthorityIsTrustedBeforeItSigns) {
  const TlsMaterial first = RenewAt({}, kStartNs);
  const int64_t later_ns = kStartNs + kAuthorityLifeNs - kAuthorityRenewBeforeNs;
  const TlsMaterial announced = RenewAt(first, later_ns);
  EXPECT_EQ(announced.authority, first.authority);
  EXPECT_THAT(TrustBundle(announced), HasSubstr(announced.next_authority.certificate));
  const TlsMaterial in_force = RenewAt(announced, later_ns + kPropagationNs);
  EXPECT_EQ(in_force.authority, announced.next_authority);
  EXPECT_EQ(in_force.former_authority, first.authority.certificate);
  EXPECT_TRUE(CheckIssuedBy(in_force.serving.certificate, in_force.authority.certificate).ok());
  EXPECT_THAT(TrustBundle(in_force), HasSubstr(first.authority.certificate));
  const TlsMaterial ended = RenewAt(in_force, kStartNs + kAuthorityLifeNs);
  EXPECT_THAT(ended.former_authority, IsEmpty());
}

TEST(TlsMaterial, AnOperatorThatWasAwayForYearsStartsAnew) {
  const TlsMaterial old = RenewAt({}, kStartNs);
  const TlsMaterial fresh = RenewAt(old, kStartNs + 3 * kAuthorityLifeNs);
  EXPECT_NE(fresh.authority, old.authority);
  EXPECT_TRUE(CheckIssuedBy(fresh.serving.certificate, fresh.authority.certificate).ok());
}

TEST(TlsMaterial, WhatIsBrokenIsMadeAnewAndTheRestStays) {
  const TlsMaterial good = RenewAt({}, kStartNs);
  TlsMaterial material = good;
  material.serving.key = "garbage";
  EXPECT_EQ(RenewAt(material, kStartNs).authority, good.authority);
  EXPECT_TRUE(CheckPair(RenewAt(material, kStartNs).serving).ok());
  material = good;
  material.authority.key = good.serving.key;
  EXPECT_NE(RenewAt(material, kStartNs).authority.certificate, good.authority.certificate);
  material = good;
  material.next_authority.certificate = "garbage";
  material.former_authority = "garbage";
  EXPECT_EQ(RenewAt(material, kStartNs), good);
}

TEST(TlsMaterial, OtherNamesNeedAnotherCertificate) {
  const TlsMaterial good = RenewAt({}, kStartNs);
  const Result<Renewed> renamed = Renew(good, {"other.svc"}, kStartNs);
  EXPECT_EQ(renamed->why, "serving certificate issued");
  EXPECT_EQ(renamed->material.authority, good.authority);
}

}  // namespace
}  // namespace flamefleet::security
