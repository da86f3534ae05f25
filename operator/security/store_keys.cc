// SPDX-License-Identifier: Apache-2.0
#include "operator/security/store_keys.h"

#include <openssl/rand.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/hex.h"
#include "base/log.h"
#include "operator/plan/names.h"
#include "operator/plan/objects.h"
#include "operator/security/tls_store.h"

namespace flamefleet::security {
namespace {

using nlohmann::json;

constexpr const char* kReaderName = "reader";
constexpr const char* kUsernameKey = "username";
constexpr const char* kPasswordKey = "password";

// 192 bits, in hexadecimal digits.
Result<std::string> RandomSecret() {
  std::array<unsigned char, 24> bytes{};
  if (RAND_bytes(bytes.data(), bytes.size()) != 1) return InternalError("make a secret: OpenSSL");
  return ToHex({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

std::string ValueOf(const api::StringMap& data, const std::string& key) {
  const auto found = data.find(key);
  return found == data.end() ? std::string() : found->second;
}

// As the store's --auth-file has it, which white space separates.
bool IsWord(const std::string& text) {
  return !text.empty() &&
         std::ranges::all_of(text, [](unsigned char c) { return c > 0x20 && c != 0x7f; });
}

// nullptr: there is none.
Result<const api::Secret*> Known(const api::SecretMap& known, const std::string& name) {
  const auto found = known.find(name);
  if (found == known.end()) return UnavailableError("Secret \"" + name + "\" is not read yet");
  return found->second.get();
}

Result<std::string> CredentialOf(const api::Secret& secret, const std::string& name) {
  const std::string user = ValueOf(secret.data, kUsernameKey);
  const std::string password = ValueOf(secret.data, kPasswordKey);
  if (IsWord(user) && IsWord(password) && user.find(':') == std::string::npos)
    return user + ":" + password;
  return InvalidArgumentError("Secret \"" + name +
                              "\": want username and password without white space, and no colon "
                              "in username; delete it to have others made");
}

}  // namespace

Result<RenewedStores> RenewStores(const api::StringMap& stored,
                                  const std::map<std::string, std::string>& readers,
                                  const TlsMaterial& material, const std::string& ns,
                                  int64_t now_ns) {
  RenewedStores renewed;
  const auto put = [&](const std::string& key, const std::string& value) {
    renewed.data[key] = value;
  };
  put(plan::kStoreTrustKey, TrustBundle(material));
  for (const auto& [backend, reader] : readers) {
    const std::string certificate_key = plan::StoreKey(backend, plan::kStoreCertificate);
    const std::string key_key = plan::StoreKey(backend, plan::kStoreCertificateKey);
    CertificatePair serving{ValueOf(stored, certificate_key), ValueOf(stored, key_key)};
    const std::vector<std::string> names = plan::ServiceNames(plan::StoreName(backend), ns);
    if (!ServesOn(serving, names, material.authority.certificate, now_ns)) {
      FF_ASSIGN_OR_RETURN(serving, IssueServing(material.authority, names, now_ns, kServingLifeNs));
    }
    put(certificate_key, serving.certificate);
    put(key_key, serving.key);

    const std::string token_key = plan::StoreKey(backend, plan::kStoreToken);
    std::string token = ValueOf(stored, token_key);
    if (!IsWord(token)) {
      FF_ASSIGN_OR_RETURN(token, RandomSecret());
    }
    put(token_key, token);
    put(plan::StoreKey(backend, plan::kStoreAuth),
        "write bearer " + token + "\n" + (reader.empty() ? "" : "read basic " + reader + "\n"));
  }
  for (const auto& [key, value] : renewed.data) {
    if (ValueOf(stored, key) != value) renewed.why += (renewed.why.empty() ? "" : ", ") + key;
  }
  for (const auto& [key, value] : stored) {
    if (!renewed.data.contains(key))
      renewed.why += (renewed.why.empty() ? "" : ", ") + ("no more " + key);
  }
  return renewed;
}

StoreKeys::StoreKeys(RestClient& client, const Clock& clock, std::string ns)
    : client_(client), clock_(clock), ns_(std::move(ns)) {}

Status StoreKeys::Sync(const std::string& backend,
                       const std::vector<std::shared_ptr<const api::ProfilingBackend>>& backends,
                       const api::SecretMap& known, const std::stop_token& stop) {
  FF_ASSIGN_OR_RETURN(const api::Secret* const authority, Known(known, plan::kTlsSecret));
  FF_ASSIGN_OR_RETURN(const api::Secret* const stored, Known(known, plan::kStoreSecret));
  if (authority == nullptr)
    return UnavailableError(std::string("Secret \"") + plan::kTlsSecret + "\" is not made yet");
  std::map<std::string, std::string> readers;
  Status wrong;
  for (const auto& object : backends) {
    if (!object->spec.managed_store || object->meta.deleting) continue;
    Result<std::string> reader = ReaderOf(*object, known, stop);
    if (!reader.ok() && reader.status().code() != StatusCode::kInvalidArgument)
      return reader.status();
    if (!reader.ok() && object->meta.name == backend) wrong = reader.status();
    readers[object->meta.name] = reader.ok() ? *std::move(reader) : std::string();
  }
  FF_ASSIGN_OR_RETURN(const RenewedStores renewed,
                      RenewStores(stored == nullptr ? api::StringMap() : stored->data, readers,
                                  MaterialOf(authority->data), ns_, clock_.WallNanos()));
  if (renewed.why.empty()) return wrong;
  FF_RETURN_IF_ERROR(Write(renewed.data, stored, stop));
  Log(LogLevel::kInfo, "keys of managed stores stored",
      {{"ns", ns_}, {"name", plan::kStoreSecret}, {"why", renewed.why}});
  return wrong;
}

Result<std::string> StoreKeys::ReaderOf(const api::ProfilingBackend& backend,
                                        const api::SecretMap& known, const std::stop_token& stop) {
  const std::string name = plan::StoreReaderSecret(backend.meta.name);
  FF_ASSIGN_OR_RETURN(const api::Secret* const secret, Known(known, name));
  if (secret != nullptr) return CredentialOf(*secret, name);
  FF_ASSIGN_OR_RETURN(const std::string password, RandomSecret());
  const json body =
      plan::StoreReader(backend, ns_, {{kUsernameKey, kReaderName}, {kPasswordKey, password}});
  const Status made = client_.CreateObject(kSecrets, ns_, name, body.dump(), stop).status();
  if (made.code() == StatusCode::kAlreadyExists) return AbortedError(ErrorMessage(made));
  FF_RETURN_IF_ERROR(made);
  return std::string(kReaderName) + ":" + password;
}

Status StoreKeys::Write(const api::StringMap& data, const api::Secret* stored,
                        const std::stop_token& stop) {
  json metadata = OwnMetadata(plan::kStoreSecret, ns_);
  if (stored != nullptr) metadata["resourceVersion"] = stored->meta.resource_version;
  const std::string body = json{
      {"apiVersion", "v1"},
      {"kind", "Secret"},
      {"metadata", std::move(metadata)},
      {"type", "Opaque"},
      {"stringData", data}}.dump();
  const Status written =
      (stored == nullptr ? client_.CreateObject(kSecrets, ns_, plan::kStoreSecret, body, stop)
                         : client_.ReplaceObject(kSecrets, ns_, plan::kStoreSecret, body, stop))
          .status();
  if (written.code() == StatusCode::kAlreadyExists || written.code() == StatusCode::kNotFound)
    return AbortedError(ErrorMessage(written));  // the cache is behind
  return written;
}

}  // namespace flamefleet::security
