// SPDX-License-Identifier: Apache-2.0
// X.509 certificates of a small authority of our own: EC P-256 keys, PEM texts.
//
// Thread: any; pure but for randomness.
// Units:  wall-clock nanoseconds; a certificate holds whole seconds.
// Errors: kInvalidArgument a text that is not what it should be; kInternal OpenSSL cannot.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"

namespace flamefleet {

// A certificate is valid from this long before it was made: clocks of nodes differ.
inline constexpr int64_t kCertificateBackdateNs = 300 * kNanosPerSecond;

struct CertificatePair {
  std::string certificate;  // PEM
  std::string key;          // PEM, PKCS #8

  friend bool operator==(const CertificatePair&, const CertificatePair&) = default;
};

struct CertificateInfo {
  int64_t not_before_ns = 0;
  int64_t not_after_ns = 0;
  std::vector<std::string> dns_names;  // of the subject's alternative names
};

// A self-signed authority that may sign end certificates only. Each has a name of its own.
Result<CertificatePair> MakeAuthority(int64_t now_ns, int64_t life_ns);

// A certificate of a TLS server. A name that is an IP address becomes one.
Result<CertificatePair> IssueServing(const CertificatePair& authority,
                                     const std::vector<std::string>& names, int64_t now_ns,
                                     int64_t life_ns);

Result<CertificateInfo> InspectCertificate(const std::string& certificate);

// OK when `authority` has signed the certificate, whatever the time.
Status CheckIssuedBy(const std::string& certificate, const std::string& authority);
// OK when the key is that of the certificate.
Status CheckPair(const CertificatePair& pair);

}  // namespace flamefleet
