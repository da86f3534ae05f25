// SPDX-License-Identifier: Apache-2.0
#include "operator/security/token_reviewer.h"

#include <openssl/evp.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "operator/plan/names.h"
#include "operator/security/token_claims.h"

namespace flamefleet::security {
namespace {

using nlohmann::json;

constexpr std::string_view kAudience = plan::kTokenAudience;
constexpr std::string_view kExtra = "authentication.kubernetes.io/";

Admission Refuse(std::string_view refusal, Status status) {
  return {std::move(status), refusal, {}};
}

Status Unauthenticated(const std::string& message) {
  return {StatusCode::kUnauthenticated, message};
}

std::string Digest(const std::string& token) {
  std::string digest(EVP_MAX_MD_SIZE, '\0');
  unsigned size = 0;
  FF_CHECK(EVP_Digest(token.data(), token.size(), reinterpret_cast<unsigned char*>(digest.data()),
                      &size, EVP_sha256(), nullptr) == 1);
  digest.resize(size);
  return digest;
}

// The text at a path of objects; empty when it is not there or something else.
std::string TextAt(const json& object, std::initializer_list<std::string_view> path) {
  const json* at = &object;
  for (const std::string_view key : path) {
    if (!at->is_object()) return "";
    const auto found = at->find(key);
    if (found == at->end()) return "";
    at = &*found;
  }
  return at->is_string() ? at->get<std::string>() : "";
}

// The only value of a key of status.user.extra.
std::string ExtraOf(const json& user, std::string_view key) {
  if (!user.is_object()) return "";
  const auto extra = user.find("extra");
  if (extra == user.end() || !extra->is_object()) return "";
  const auto found = extra->find(std::string(kExtra) + std::string(key));
  if (found == extra->end() || !found->is_array() || found->size() != 1) return "";
  return (*found)[0].is_string() ? (*found)[0].get<std::string>() : "";
}

bool HasAudience(const json& status) {
  const auto audiences = status.find("audiences");
  return audiences != status.end() && audiences->is_array() &&
         std::any_of(audiences->begin(), audiences->end(), [](const json& entry) {
           return entry.is_string() && entry.get<std::string>() == kAudience;
         });
}

}  // namespace

TokenReviewer::TokenReviewer(std::string account, const Clock& clock, Metrics& metrics,
                             Review review, NodeOfPod node_of_pod)
    : account_(std::move(account)),
      clock_(clock),
      review_(std::move(review)),
      node_of_pod_(std::move(node_of_pod)),
      asked_(metrics.Counter("flamefleet_operator_token_checks_total",
                             "Checks of agents' tokens, by who answered.",
                             {{"answer", "apiserver"}})),
      remembered_(metrics.Counter("flamefleet_operator_token_checks_total",
                                  "Checks of agents' tokens, by who answered.",
                                  {{"answer", "cache"}})) {}

Admission TokenReviewer::Check(const std::string& token, const std::stop_token& stop) {
  if (token.empty()) {
    return Refuse(refusal::kNoToken, Unauthenticated("the agent sent no token"));
  }
  const Result<TokenClaims> claims = ReadTokenClaims(token);
  if (!claims.ok()) {
    return Refuse(refusal::kMalformedToken, Unauthenticated(ErrorMessage(claims.status())));
  }
  const int64_t now_ns = clock_.WallNanos();
  if (claims->expires_at_ns <= now_ns) {
    return Refuse(refusal::kTokenExpired,
                  Unauthenticated("the token expired at " + FormatRfc3339(claims->expires_at_ns)));
  }
  if (std::find(claims->audiences.begin(), claims->audiences.end(), kAudience) ==
      claims->audiences.end()) {
    return Refuse(refusal::kWrongAudience,
                  Unauthenticated("the token is not for audience " + std::string(kAudience)));
  }
  const std::string digest = Digest(token);
  if (const auto found = Find(digest, now_ns)) {
    remembered_.Increment();
    return *found;
  }
  asked_.Increment();
  Admission admission = Ask(token, claims->expires_at_ns, stop);
  if (admission.status.ok()) {
    Remember(digest, claims->expires_at_ns - kMarginNs, admission);
  } else if (admission.refusal != refusal::kReviewFailed) {
    Remember(digest, now_ns + kRefusedForNs, admission);
  }
  return admission;
}

Admission TokenReviewer::Ask(const std::string& token, int64_t expires_at_ns,
                             const std::stop_token& stop) {
  const json review = {{"apiVersion", "authentication.k8s.io/v1"},
                       {"kind", "TokenReview"},
                       {"spec", {{"token", token}, {"audiences", {kAudience}}}}};
  const Result<std::string> answer =
      review_(review.dump(-1, ' ', false, json::error_handler_t::replace), stop);
  if (!answer.ok()) {
    return Refuse(refusal::kReviewFailed,
                  UnavailableError("check a token: " + ErrorMessage(answer.status())));
  }
  return Judge(*answer, expires_at_ns);
}

Admission TokenReviewer::Judge(const std::string& answer, int64_t expires_at_ns) const {
  const json review = json::parse(answer, nullptr, /*allow_exceptions=*/false);
  if (!review.is_object() || !review.contains("status") || !review["status"].is_object()) {
    return Refuse(refusal::kReviewFailed,
                  UnavailableError("check a token: the API server answered something else"));
  }
  const json& status = review["status"];
  const auto authenticated = status.find("authenticated");
  if (authenticated == status.end() || *authenticated != json(true) || !HasAudience(status)) {
    const std::string why = TextAt(status, {"error"});
    return Refuse(refusal::kTokenRefused,
                  Unauthenticated("the API server does not accept the token" +
                                  (why.empty() ? "" : ": " + why)));
  }
  const std::string name = TextAt(status, {"user", "username"});
  if (name != account_) {
    return Refuse(refusal::kWrongAccount, PermissionDeniedError("the token is that of " + name +
                                                                ", agents are " + account_));
  }
  const json& user = status["user"];
  AgentIdentity identity = {.node = ExtraOf(user, "node-name"),
                            .pod = ExtraOf(user, "pod-name"),
                            .expires_at_ns = expires_at_ns};
  if (identity.node.empty() && !identity.pod.empty()) {
    identity.node = node_of_pod_(identity.pod, ExtraOf(user, "pod-uid"));
  }
  if (identity.node.empty()) {
    return Refuse(refusal::kNoNode,
                  PermissionDeniedError("the token is not bound to a pod on a node"));
  }
  return {OkStatus(), "", std::move(identity)};
}

std::optional<Admission> TokenReviewer::Find(const std::string& digest, int64_t now_ns) {
  const MutexLock lock(&mutex_);
  while (!by_end_.empty() && by_end_.begin()->first <= now_ns) {
    cache_.erase(by_end_.begin()->second);
    by_end_.erase(by_end_.begin());
  }
  const auto found = cache_.find(digest);
  if (found == cache_.end()) return std::nullopt;
  return found->second;
}

void TokenReviewer::Remember(const std::string& digest, int64_t until_ns,
                             const Admission& admission) {
  const MutexLock lock(&mutex_);
  if (!cache_.emplace(digest, admission).second) return;  // another thread asked too
  by_end_.emplace(until_ns, digest);
  if (cache_.size() <= kMaxCached) return;
  cache_.erase(by_end_.begin()->second);
  by_end_.erase(by_end_.begin());
}

}  // namespace flamefleet::security
