// SPDX-License-Identifier: Apache-2.0
#include "operator/security/tls_store.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "base/base64.h"
#include "base/log.h"
#include "operator/kube/owned_fields.h"
#include "operator/plan/names.h"

namespace flamefleet::security {
namespace {

using nlohmann::json;

// The keys of the Secret, and where their values live.
template <typename Material, typename Visit>
void ForEachKey(Material& material, Visit visit) {
  visit("ca.crt", material.authority.certificate);
  visit("ca.key", material.authority.key);
  visit("next-ca.crt", material.next_authority.certificate);
  visit("next-ca.key", material.next_authority.key);
  visit("former-ca.crt", material.former_authority);
  visit("tls.crt", material.serving.certificate);
  visit("tls.key", material.serving.key);
}

// What cannot be read is left empty: it will be made anew.
TlsMaterial ReadSecret(const json& secret) {
  TlsMaterial material;
  const auto data = secret.find("data");
  if (data == secret.end() || !data->is_object()) return material;
  ForEachKey(material, [&](const char* key, std::string& value) {
    const auto found = data->find(key);
    if (found == data->end() || !found->is_string()) return;
    Result<std::string> decoded = DecodeBase64(found->get<std::string>());
    if (decoded.ok()) value = *std::move(decoded);
  });
  return material;
}

// `version`: of the Secret that this one replaces; empty: of none.
std::string SecretBody(const TlsMaterial& material, const std::string& ns,
                       const std::string& version) {
  json metadata = OwnMetadata(plan::kTlsSecret, ns);
  if (!version.empty()) metadata["resourceVersion"] = version;
  json values = json::object();
  ForEachKey(material, [&](const char* key, const std::string& value) {
    if (!value.empty()) values[key] = value;
  });
  return json{{"apiVersion", "v1"},
              {"kind", "Secret"},
              {"metadata", std::move(metadata)},
              {"type", "Opaque"},
              {"stringData", std::move(values)}}
      .dump();
}

}  // namespace

TlsMaterial MaterialOf(const api::StringMap& data) {
  TlsMaterial material;
  ForEachKey(material, [&](const char* key, std::string& value) {
    if (const auto found = data.find(key); found != data.end()) value = found->second;
  });
  return material;
}

json OwnMetadata(const std::string& name, const std::string& ns) {
  return {{"name", name},
          {"namespace", ns},
          {"labels",
           {{"app.kubernetes.io/name", "flamefleet"},
            {"app.kubernetes.io/component", "operator"},
            {"app.kubernetes.io/managed-by", "flamefleet-operator"}}}};
}

TlsStore::TlsStore(RestClient& client, const Clock& clock, std::string ns,
                   std::vector<std::string> names)
    : client_(client), clock_(clock), ns_(std::move(ns)), names_(std::move(names)) {}

Result<CertificatePair> TlsStore::Sync(const std::stop_token& stop) {
  Result<TlsMaterial> material = AbortedError("");
  for (int tries = 0; tries < kMaxTries && material.status().code() == StatusCode::kAborted;
       ++tries)
    material = TrySecret(stop);
  if (!material.ok()) return material.status();
  FF_RETURN_IF_ERROR(PublishBundle(*material, stop));
  return std::move(material->serving);
}

Result<TlsMaterial> TlsStore::TrySecret(const std::stop_token& stop) {
  const Result<std::string> found = client_.Get(kSecrets, ns_, plan::kTlsSecret, stop);
  const bool missing = found.status().code() == StatusCode::kNotFound;
  if (!found.ok() && !missing) return found.status();
  TlsMaterial stored;
  std::string version;
  if (!missing) {
    const json secret = json::parse(*found, nullptr, /*allow_exceptions=*/false);
    if (!secret.is_object()) return DataLossError("read Secret: the answer is not an object");
    stored = ReadSecret(secret);
    version = secret.value(json::json_pointer("/metadata/resourceVersion"), "");
  }
  FF_ASSIGN_OR_RETURN(Renewed renewed, Renew(std::move(stored), names_, clock_.WallNanos()));
  if (renewed.why.empty()) return std::move(renewed.material);
  const std::string body = SecretBody(renewed.material, ns_, version);
  const Status written =
      (missing ? client_.CreateObject(kSecrets, ns_, plan::kTlsSecret, body, stop)
               : client_.ReplaceObject(kSecrets, ns_, plan::kTlsSecret, body, stop))
          .status();
  if (written.code() == StatusCode::kAlreadyExists || written.code() == StatusCode::kNotFound)
    return AbortedError(ErrorMessage(written));  // another operator was faster
  FF_RETURN_IF_ERROR(written);
  Log(LogLevel::kInfo, "keys of the control channel stored",
      {{"ns", ns_}, {"name", plan::kTlsSecret}, {"why", renewed.why}});
  return std::move(renewed.material);
}

Status TlsStore::PublishBundle(const TlsMaterial& material, const std::stop_token& stop) {
  const json config_map = {{"apiVersion", "v1"},
                           {"kind", "ConfigMap"},
                           {"metadata", OwnMetadata(plan::kTrustConfigMap, ns_)},
                           {"data", {{plan::kTrustKey, TrustBundle(material)}}}};
  return client_
      .Apply({kConfigMaps, ns_, plan::kTrustConfigMap, kFieldManager, config_map.dump()}, stop)
      .status();
}

}  // namespace flamefleet::security
