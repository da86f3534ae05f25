// SPDX-License-Identifier: Apache-2.0
#include "base/tls/certificate.h"

#include <arpa/inet.h>
#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <ctime>
#include <memory>

namespace flamefleet {
namespace {

constexpr int kSerialBits = 127;  // positive, and no two alike

template <auto Free>
struct Deleter {
  template <typename T>
  void operator()(T* object) const {
    Free(object);
  }
};
using KeyPtr = std::unique_ptr<EVP_PKEY, Deleter<EVP_PKEY_free>>;
using CertPtr = std::unique_ptr<X509, Deleter<X509_free>>;
using BioPtr = std::unique_ptr<BIO, Deleter<BIO_free_all>>;
using ExtensionPtr = std::unique_ptr<X509_EXTENSION, Deleter<X509_EXTENSION_free>>;
using NamesPtr = std::unique_ptr<GENERAL_NAMES, Deleter<GENERAL_NAMES_free>>;
using NumberPtr = std::unique_ptr<BIGNUM, Deleter<BN_free>>;

std::string TakeError() {
  const unsigned long code = ERR_peek_last_error();  // NOLINT(google-runtime-int)
  ERR_clear_error();
  const char* const reason = ERR_reason_error_string(code);
  return reason == nullptr ? "unknown cause" : reason;
}

Status Failed(const std::string& operation) {
  return InternalError(operation + ": " + TakeError());
}

// Keys of ours have no password; never ask a terminal for one.
int NoPassword(char*, int, int, void*) {
  return -1;
}

Result<CertPtr> ParseCertificate(const std::string& pem) {
  const BioPtr bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  CertPtr certificate(PEM_read_bio_X509(bio.get(), nullptr, NoPassword, nullptr));
  if (certificate == nullptr) return InvalidArgumentError("read a certificate: " + TakeError());
  return certificate;
}

Result<KeyPtr> ParseKey(const std::string& pem) {
  const BioPtr bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  KeyPtr key(PEM_read_bio_PrivateKey(bio.get(), nullptr, NoPassword, nullptr));
  if (key == nullptr) return InvalidArgumentError("read a private key: " + TakeError());
  return key;
}

std::string TextOf(const BioPtr& bio) {
  char* data = nullptr;
  const auto size = BIO_get_mem_data(bio.get(), &data);
  return {data, static_cast<size_t>(size)};
}

Result<CertificatePair> ToPem(X509* certificate, EVP_PKEY* key) {
  const BioPtr cert_bio(BIO_new(BIO_s_mem()));
  const BioPtr key_bio(BIO_new(BIO_s_mem()));
  if (PEM_write_bio_X509(cert_bio.get(), certificate) != 1 ||
      PEM_write_bio_PrivateKey(key_bio.get(), key, nullptr, nullptr, 0, nullptr, nullptr) != 1) {
    return Failed("write a certificate");
  }
  return CertificatePair{TextOf(cert_bio), TextOf(key_bio)};
}

bool Extend(X509* certificate, X509* issuer, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const ExtensionPtr extension(X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str()));
  return extension != nullptr && X509_add_ext(certificate, extension.get(), -1) == 1;
}

// `common_name` empty: a name with a part of the serial number.
struct Template {
  std::string common_name;
  int64_t now_ns;
  int64_t life_ns;
};

Result<CertPtr> NewCertificate(const Template& wanted, EVP_PKEY* key) {
  CertPtr certificate(X509_new());
  const NumberPtr serial(BN_new());
  if (certificate == nullptr || serial == nullptr ||
      BN_rand(serial.get(), kSerialBits, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ANY) != 1 ||
      BN_to_ASN1_INTEGER(serial.get(), X509_get_serialNumber(certificate.get())) == nullptr) {
    return Failed("make a serial number");
  }
  std::string name = wanted.common_name;
  if (name.empty()) {
    constexpr int kShownBits = 32;
    BN_mask_bits(serial.get(), kShownBits);
    name = "flamefleet-ca-" + std::to_string(BN_get_word(serial.get()));
  }
  const time_t from = (wanted.now_ns - kCertificateBackdateNs) / kNanosPerSecond;
  const time_t until = (wanted.now_ns + wanted.life_ns) / kNanosPerSecond;
  const auto* const text = reinterpret_cast<const unsigned char*>(name.c_str());
  if (X509_set_version(certificate.get(), X509_VERSION_3) != 1 ||
      ASN1_TIME_set(X509_getm_notBefore(certificate.get()), from) == nullptr ||
      ASN1_TIME_set(X509_getm_notAfter(certificate.get()), until) == nullptr ||
      X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate.get()), "CN", MBSTRING_UTF8,
                                 text, -1, -1, 0) != 1 ||
      X509_set_pubkey(certificate.get(), key) != 1) {
    return Failed("make a certificate");
  }
  return certificate;
}

std::string AlternativeNames(const std::vector<std::string>& names) {
  std::string list;
  for (const std::string& name : names) {
    in6_addr ignored{};
    const bool is_ip = inet_pton(AF_INET, name.c_str(), &ignored) == 1 ||
                       inet_pton(AF_INET6, name.c_str(), &ignored) == 1;
    if (!list.empty()) list += ',';
    list += (is_ip ? "IP:" : "DNS:") + name;
  }
  return list;
}

Result<int64_t> TimeOf(const ASN1_TIME* time) {
  tm parts{};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return InvalidArgumentError("read a certificate's time");
  return static_cast<int64_t>(timegm(&parts)) * kNanosPerSecond;
}

}  // namespace

Result<CertificatePair> MakeAuthority(int64_t now_ns, int64_t life_ns) {
  const KeyPtr key(EVP_EC_gen("P-256"));
  if (key == nullptr) return Failed("make a key");
  FF_ASSIGN_OR_RETURN(const CertPtr certificate, NewCertificate({"", now_ns, life_ns}, key.get()));
  X509* const raw = certificate.get();
  if (X509_set_issuer_name(raw, X509_get_subject_name(raw)) != 1 ||
      !Extend(raw, raw, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") ||
      !Extend(raw, raw, NID_key_usage, "critical,keyCertSign,cRLSign") ||
      !Extend(raw, raw, NID_subject_key_identifier, "hash") ||
      X509_sign(raw, key.get(), EVP_sha256()) == 0) {
    return Failed("make an authority");
  }
  return ToPem(raw, key.get());
}

Result<CertificatePair> IssueServing(const CertificatePair& authority,
                                     const std::vector<std::string>& names, int64_t now_ns,
                                     int64_t life_ns) {
  if (names.empty()) return InvalidArgumentError("issue a certificate: it needs a name");
  FF_ASSIGN_OR_RETURN(const CertPtr issuer, ParseCertificate(authority.certificate));
  FF_ASSIGN_OR_RETURN(const KeyPtr issuer_key, ParseKey(authority.key));
  const KeyPtr key(EVP_EC_gen("P-256"));
  if (key == nullptr) return Failed("make a key");
  FF_ASSIGN_OR_RETURN(const CertPtr certificate,
                      NewCertificate({"flamefleet-operator", now_ns, life_ns}, key.get()));
  X509* const raw = certificate.get();
  if (X509_set_issuer_name(raw, X509_get_subject_name(issuer.get())) != 1 ||
      !Extend(raw, issuer.get(), NID_basic_constraints, "critical,CA:FALSE") ||
      !Extend(raw, issuer.get(), NID_key_usage, "critical,digitalSignature") ||
      !Extend(raw, issuer.get(), NID_ext_key_usage, "serverAuth") ||
      !Extend(raw, issuer.get(), NID_authority_key_identifier, "keyid:always") ||
      !Extend(raw, issuer.get(), NID_subject_alt_name, AlternativeNames(names)) ||
      X509_sign(raw, issuer_key.get(), EVP_sha256()) == 0) {
    return Failed("issue a certificate");
  }
  return ToPem(raw, key.get());
}

Result<CertificateInfo> InspectCertificate(const std::string& pem) {
  FF_ASSIGN_OR_RETURN(const CertPtr certificate, ParseCertificate(pem));
  CertificateInfo info;
  FF_ASSIGN_OR_RETURN(info.not_before_ns, TimeOf(X509_get0_notBefore(certificate.get())));
  FF_ASSIGN_OR_RETURN(info.not_after_ns, TimeOf(X509_get0_notAfter(certificate.get())));
  const NamesPtr names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate.get(), NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* const name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type != GEN_DNS) continue;
    info.dns_names.emplace_back(
        reinterpret_cast<const char*>(ASN1_STRING_get0_data(name->d.dNSName)),
        static_cast<size_t>(ASN1_STRING_length(name->d.dNSName)));
  }
  return info;
}

Status CheckIssuedBy(const std::string& certificate, const std::string& authority) {
  FF_ASSIGN_OR_RETURN(const CertPtr child, ParseCertificate(certificate));
  FF_ASSIGN_OR_RETURN(const CertPtr parent, ParseCertificate(authority));
  if (X509_check_issued(parent.get(), child.get()) == X509_V_OK &&
      X509_verify(child.get(), X509_get0_pubkey(parent.get())) == 1) {
    return OkStatus();
  }
  ERR_clear_error();
  return FailedPreconditionError("another authority has issued the certificate");
}

Status CheckPair(const CertificatePair& pair) {
  FF_ASSIGN_OR_RETURN(const CertPtr certificate, ParseCertificate(pair.certificate));
  FF_ASSIGN_OR_RETURN(const KeyPtr key, ParseKey(pair.key));
  if (X509_check_private_key(certificate.get(), key.get()) == 1) return OkStatus();
  ERR_clear_error();
  return InvalidArgumentError("the key is not that of the certificate");
}

}  // namespace flamefleet
