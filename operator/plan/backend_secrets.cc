// SPDX-License-Identifier: Apache-2.0
#include "operator/plan/backend_secrets.h"

#include <algorithm>
#include <utility>

#include "base/base64.h"
#include "base/reasons.h"
#include "operator/plan/names.h"

namespace flamefleet::plan {
namespace {

constexpr const char* kUsernameKey = "username";  // as in Secrets of type kubernetes.io/basic-auth
constexpr const char* kPasswordKey = "password";
// What no backend may be sent, whoever may write ProfilingBackends: it opens the cluster, not a
// backend.
constexpr std::string_view kServiceAccountToken = "kubernetes.io/service-account-token";
// Of a token, a name or a password: servers refuse headers that are larger.
constexpr size_t kMaxCredential = 8 << 10;
// Of certificates: those of all public authorities take 220 KiB. All that a node's agent is told
// must fit into one message to it.
constexpr size_t kMaxCa = 256 << 10;
constexpr std::string_view kPemBegin = "-----BEGIN CERTIFICATE-----";

class CredentialReader {
 public:
  CredentialReader(const std::string& ns, const api::SecretMap& secrets)
      : ns_(ns), secrets_(secrets) {}

  // Empty after a problem, such as that it is longer than `most`. What editors and `kubectl create
  // secret --from-file` put behind a value is cut off.
  std::string Value(const api::SecretKey& from, size_t most = kMaxCredential) {
    if (problem_) return {};
    const std::string name = "Secret \"" + from.secret + "\" of namespace " + ns_;
    const auto found = secrets_.find(from.secret);
    if (found == secrets_.end())
      return Fail(reasons::kSecretNotRead,
                  name + " has not been read; the operator's log says why if it stays so");
    const api::Secret* const secret = found->second.get();
    if (secret == nullptr) return Fail(reasons::kSecretNotFound, name + " does not exist");
    if (from.secret == kTlsSecret || from.secret == kStoreSecret ||
        secret->type == kServiceAccountToken)
      return Fail(reasons::kInvalidSecret, name + " is the cluster's own and no backend's");
    const auto value = secret->data.find(from.key);
    std::string text = value == secret->data.end() ? std::string() : value->second;
    while (!text.empty() && (text.back() == '\n' || text.back() == '\r'))
      text.pop_back();
    if (text.empty())
      return Fail(reasons::kSecretNotFound,
                  name + " has no key \"" + from.key + "\", or it is empty");
    Require(text.size() <= most, from, "at most " + std::to_string(most) + " bytes");
    return problem_ ? std::string() : text;
  }

  void Require(bool holds, const api::SecretKey& of, const std::string& want) {
    if (holds) return;
    Fail(reasons::kInvalidSecret, "key \"" + of.key + "\" of Secret \"" + of.secret +
                                      "\" of namespace " + ns_ + ": want " + want);
  }

  std::optional<Problem> TakeProblem() { return std::move(problem_); }

 private:
  std::string Fail(std::string_view reason, std::string message) {
    if (!problem_) problem_ = Problem{reason, std::move(message)};
    return {};
  }

  const std::string& ns_;
  const api::SecretMap& secrets_;
  std::optional<Problem> problem_;
};

bool IsControl(unsigned char c) {
  return c < 0x20 || c == 0x7f;
}

// As RFC 6750 wants it, a little wider.
bool IsToken(const std::string& text) {
  return std::ranges::all_of(text, [](unsigned char c) { return c > 0x20 && c < 0x7f; });
}

// What the operator made for a managed store.
std::optional<Problem> FillStoreCredentials(const api::SecretMap& secrets, Backend& backend) {
  const auto found = secrets.find(kStoreSecret);
  const api::Secret* const secret = found == secrets.end() ? nullptr : found->second.get();
  const auto value = [&](const std::string& key) {
    if (secret == nullptr) return std::string();
    const auto entry = secret->data.find(key);
    return entry == secret->data.end() ? std::string() : entry->second;
  };
  backend.ca_pem = value(kStoreTrustKey);
  const std::string token = value(StoreKey(backend.name, kStoreToken));
  if (backend.ca_pem.empty() || token.empty()) {
    backend.ca_pem.clear();
    return Problem{reasons::kSecretNotRead,
                   std::string("Secret \"") + kStoreSecret + "\" has no keys for this store yet"};
  }
  backend.authorization = "Bearer " + token;
  return std::nullopt;
}

}  // namespace

std::set<std::string> SecretNames(
    const std::vector<std::shared_ptr<const api::ProfilingBackend>>& backends) {
  std::set<std::string> names;
  for (const auto& backend : backends) {
    const api::ProfilingBackendSpec& spec = backend->spec;
    if (spec.tls.ca) names.insert(spec.tls.ca->secret);
    if (spec.auth.bearer_token) names.insert(spec.auth.bearer_token->secret);
    if (!spec.auth.basic_secret.empty()) names.insert(spec.auth.basic_secret);
    if (spec.managed_store && !backend->meta.deleting)
      names.insert({kTlsSecret, kStoreSecret, StoreReaderSecret(backend->meta.name)});
  }
  return names;
}

std::optional<Problem> FillCredentials(const api::ProfilingBackendSpec& spec, const std::string& ns,
                                       const api::SecretMap& secrets, Backend& backend) {
  if (spec.managed_store) return FillStoreCredentials(secrets, backend);
  CredentialReader reader(ns, secrets);
  if (spec.tls.ca) {
    backend.ca_pem = reader.Value(*spec.tls.ca, kMaxCa);
    reader.Require(backend.ca_pem.find(kPemBegin) != std::string::npos, *spec.tls.ca,
                   "certificates in PEM");
  }
  if (!spec.auth.basic_secret.empty()) {
    const api::SecretKey user_key{spec.auth.basic_secret, kUsernameKey};
    const api::SecretKey password_key{spec.auth.basic_secret, kPasswordKey};
    const std::string user = reader.Value(user_key);
    const std::string password = reader.Value(password_key);
    reader.Require(user.find(':') == std::string::npos && std::ranges::none_of(user, IsControl),
                   user_key, "a name without colon and control characters");
    reader.Require(std::ranges::none_of(password, IsControl), password_key,
                   "no control characters");
    backend.authorization = "Basic " + EncodeBase64(user + ":" + password);
  }
  if (spec.auth.bearer_token) {
    const std::string token = reader.Value(*spec.auth.bearer_token);
    reader.Require(IsToken(token), *spec.auth.bearer_token, "a token without white space");
    backend.authorization = "Bearer " + token;
  }
  std::optional<Problem> problem = reader.TakeProblem();
  if (problem) {  // half of them is of no use
    backend.ca_pem.clear();
    backend.authorization.clear();
  }
  return problem;
}

}  // namespace flamefleet::plan
