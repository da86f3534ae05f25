// SPDX-License-Identifier: Apache-2.0
// TlsMaterial: the authority that the operator makes for its control channel, and the certificate
// that it serves with. A pure rule says what has to change; only certificates decide, so there is
// nothing to remember and any operator comes to the same result.
//
// How an authority is replaced, long before it ends: a next one is made and trusted at once; when
// every agent has had kPropagationNs to read it, it signs the serving certificate and the former
// one is trusted until its own end. At no time does an agent meet a certificate that it cannot
// trust yet.
//
// Thread: any; pure but for the randomness of keys.
// Units:  wall-clock nanoseconds.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/tls/certificate.h"

namespace flamefleet::security {

inline constexpr int64_t kDayNs = 86'400 * kNanosPerSecond;
inline constexpr int64_t kAuthorityLifeNs = 365 * kDayNs;
inline constexpr int64_t kServingLifeNs = 90 * kDayNs;
// A third of each life is left when the next one is made.
inline constexpr int64_t kAuthorityRenewBeforeNs = kAuthorityLifeNs / 3;
inline constexpr int64_t kServingRenewBeforeNs = kServingLifeNs / 3;
// The kubelet brings a changed ConfigMap to a pod within two minutes; a node may be down for
// longer.
inline constexpr int64_t kPropagationNs = kDayNs;

struct TlsMaterial {
  CertificatePair authority;       // signs the serving certificate
  CertificatePair next_authority;  // trusted already; empty: none
  std::string former_authority;    // still trusted, its key is gone; empty: none
  CertificatePair serving;

  friend bool operator==(const TlsMaterial&, const TlsMaterial&) = default;
};

// What agents trust: PEM certificates one after the other.
std::string TrustBundle(const TlsMaterial& material);

// True while the certificate may be served on: it is whole, for these names, signed by `authority`,
// and not near its end.
bool ServesOn(const CertificatePair& serving, const std::vector<std::string>& names,
              const std::string& authority, int64_t now_ns);

struct Renewed {
  TlsMaterial material;
  std::string why;  // what changed, for the log; empty: nothing
};

// The material as it must be now, for a server of these names. What is broken is made anew.
Result<Renewed> Renew(TlsMaterial material, const std::vector<std::string>& names, int64_t now_ns);

}  // namespace flamefleet::security
