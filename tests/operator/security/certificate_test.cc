// SPDX-License-Identifier: Apache-2.0
// Our certificates, as the openssl command judges them.
#include "base/tls/certificate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/fd.h"
#include "tests/support/command.h"
#include "tests/support/temp_dir.h"

namespace flamefleet {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr int64_t kLifeNs = 86'400 * kNanosPerSecond;

class CertificateTest : public testing::Test {
 protected:
  CommandResult Verify(const std::string& trusted, const std::string& certificate,
                       const std::vector<std::string>& more = {}) const {
    const std::string ca = dir_.path() + "/ca.crt";
    const std::string leaf = dir_.path() + "/tls.crt";
    EXPECT_TRUE(WriteFileAtomically(ca, trusted, 0600).ok());
    EXPECT_TRUE(WriteFileAtomically(leaf, certificate, 0600).ok());
    std::vector<std::string> command = {"openssl", "verify",   "-x509_strict", "-CAfile",
                                        ca,        "-purpose", "sslserver"};
    command.insert(command.end(), more.begin(), more.end());
    command.push_back(leaf);
    return RunCommand(command);
  }

  TempDir dir_;
  const int64_t now_ns_ = SystemClock().WallNanos();
  const CertificatePair authority_ = *MakeAuthority(now_ns_, kLifeNs);
  const CertificatePair serving_ =
      *IssueServing(authority_, {"operator.ns.svc", "127.0.0.1"}, now_ns_, kLifeNs);
};

TEST_F(CertificateTest, OpensslTakesItForEachOfItsNamesAndForNoOther) {
  for (const std::vector<std::string>& name :
       {std::vector<std::string>{"-verify_hostname", "operator.ns.svc"},
        {"-verify_ip", "127.0.0.1"}}) {
    const CommandResult result = Verify(authority_.certificate, serving_.certificate, name);
    EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  }
  EXPECT_NE(Verify(authority_.certificate, serving_.certificate, {"-verify_hostname", "other.svc"})
                .exit_code,
            0);
}

TEST_F(CertificateTest, AnotherAuthorityDoesNotVouchForIt) {
  const CertificatePair other = *MakeAuthority(now_ns_, kLifeNs);
  EXPECT_NE(Verify(other.certificate, serving_.certificate).exit_code, 0);
  EXPECT_FALSE(CheckIssuedBy(serving_.certificate, other.certificate).ok());
  EXPECT_TRUE(CheckIssuedBy(serving_.certificate, authority_.certificate).ok());
  EXPECT_EQ(Verify(other.certificate + authority_.certificate, serving_.certificate).exit_code, 0);
}

TEST_F(CertificateTest, AServingCertificateSignsNothing) {
  EXPECT_FALSE(IssueServing(serving_, {"x.svc"}, now_ns_, kLifeNs).ok());
}

TEST_F(CertificateTest, IsInspectedAsItWasMade) {
  const Result<CertificateInfo> info = InspectCertificate(serving_.certificate);
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_EQ(info->not_before_ns / kNanosPerSecond,
            (now_ns_ - kCertificateBackdateNs) / kNanosPerSecond);
  EXPECT_EQ(info->not_after_ns / kNanosPerSecond, (now_ns_ + kLifeNs) / kNanosPerSecond);
  EXPECT_THAT(info->dns_names, ElementsAre("operator.ns.svc"));
}

TEST_F(CertificateTest, TheKeyIsAnEcKeyOfP256AndBelongsToIt) {
  const CommandResult key = RunCommand({"openssl", "pkey", "-noout", "-text"}, serving_.key);
  EXPECT_THAT(key.out, HasSubstr("P-256")) << key.err;
  EXPECT_TRUE(CheckPair(serving_).ok());
  EXPECT_FALSE(CheckPair({serving_.certificate, authority_.key}).ok());
}

TEST_F(CertificateTest, WhatIsNoCertificateIsAnError) {
  for (const std::string& text :
       {std::string(), std::string("-----BEGIN CERTIFICATE-----\nx"), serving_.key}) {
    EXPECT_EQ(InspectCertificate(text).status().code(), StatusCode::kInvalidArgument);
    EXPECT_FALSE(CheckPair({text, serving_.key}).ok());
    EXPECT_FALSE(CheckIssuedBy(text, authority_.certificate).ok());
    EXPECT_FALSE(IssueServing({text, authority_.key}, {"x"}, now_ns_, kLifeNs).ok());
  }
}

}  // namespace
}  // namespace flamefleet
