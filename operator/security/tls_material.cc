// SPDX-License-Identifier: Apache-2.0
#include "operator/security/tls_material.h"

namespace flamefleet::security {
namespace {

// The certificate is usable and has more than `left_ns` to go.
bool Lasts(const std::string& certificate, int64_t now_ns, int64_t left_ns) {
  const Result<CertificateInfo> info = InspectCertificate(certificate);
  return info.ok() && info->not_before_ns <= now_ns && info->not_after_ns > now_ns + left_ns;
}

bool Usable(const CertificatePair& pair, int64_t now_ns, int64_t left_ns) {
  return CheckPair(pair).ok() && Lasts(pair.certificate, now_ns, left_ns);
}

bool HasPropagated(const CertificatePair& pair, int64_t now_ns) {
  const Result<CertificateInfo> info = InspectCertificate(pair.certificate);
  return info.ok() && info->not_before_ns + kCertificateBackdateNs + kPropagationNs <= now_ns;
}

bool ServesFor(const std::string& certificate, const std::vector<std::string>& names) {
  const Result<CertificateInfo> info = InspectCertificate(certificate);
  return info.ok() && info->dns_names == names;
}

}  // namespace

std::string TrustBundle(const TlsMaterial& material) {
  return material.next_authority.certificate + material.authority.certificate +
         material.former_authority;
}

bool ServesOn(const CertificatePair& serving, const std::vector<std::string>& names,
              const std::string& authority, int64_t now_ns) {
  return Usable(serving, now_ns, kServingRenewBeforeNs) && ServesFor(serving.certificate, names) &&
         CheckIssuedBy(serving.certificate, authority).ok();
}

Result<Renewed> Renew(TlsMaterial material, const std::vector<std::string>& names, int64_t now_ns) {
  std::string why;
  const auto note = [&why](const char* what) {
    why += (why.empty() ? "" : ", ") + std::string(what);
  };

  if (!material.former_authority.empty() && !Lasts(material.former_authority, now_ns, 0)) {
    material.former_authority.clear();
    note("former authority ended");
  }
  if (!material.next_authority.certificate.empty() && !Usable(material.next_authority, now_ns, 0)) {
    material.next_authority = {};
    note("next authority unusable");
  }
  const bool usable = Usable(material.authority, now_ns, 0);
  if (!usable && material.next_authority.certificate.empty()) {
    FF_ASSIGN_OR_RETURN(material.authority, MakeAuthority(now_ns, kAuthorityLifeNs));
    note("authority made");
  } else if (!material.next_authority.certificate.empty() &&
             (!usable || HasPropagated(material.next_authority, now_ns))) {
    if (usable) material.former_authority = material.authority.certificate;
    material.authority = std::move(material.next_authority);
    material.next_authority = {};
    note("next authority in force");
  }
  if (material.next_authority.certificate.empty() &&
      !Lasts(material.authority.certificate, now_ns, kAuthorityRenewBeforeNs)) {
    FF_ASSIGN_OR_RETURN(material.next_authority, MakeAuthority(now_ns, kAuthorityLifeNs));
    note("next authority made");
  }
  if (!ServesOn(material.serving, names, material.authority.certificate, now_ns)) {
    FF_ASSIGN_OR_RETURN(material.serving,
                        IssueServing(material.authority, names, now_ns, kServingLifeNs));
    note("serving certificate issued");
  }
  return Renewed{std::move(material), std::move(why)};
}

}  // namespace flamefleet::security
