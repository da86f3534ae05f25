// SPDX-License-Identifier: Apache-2.0
// TokenReviewer: asks the API server who the owner of a token is (TokenReview), and remembers the
// answer until shortly before the token ends.
//
// The node of an agent comes from the pod that its token is bound to, never from what it says.
//
// Thread: any; internally locked, calls of `review` run at the same time.
// Bounds: kMaxCached answers, those that end first go first; a refusal is remembered for
//         kRefusedForNs. A token that cannot be one of ours is never sent to the API server.
// Source: authentication.k8s.io/v1; the extra keys of KEP-4193, and for servers before 1.32 the
// pod.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/metrics.h"
#include "base/mutex.h"
#include "operator/security/admission.h"

namespace flamefleet::security {

class TokenReviewer {
 public:
  static constexpr size_t kMaxCached = 20'000;
  static constexpr int64_t kRefusedForNs = 10 * kNanosPerSecond;
  // An answer is not used for the last part of a token's life.
  static constexpr int64_t kMarginNs = 10 * kNanosPerSecond;

  // Sends a TokenReview (JSON) and returns the answer.
  using Review =
      std::function<Result<std::string>(const std::string& body, const std::stop_token& stop)>;
  // The node of a pod of the operator's namespace; empty: not known. For servers that do not say.
  using NodeOfPod = std::function<std::string(const std::string& name, const std::string& uid)>;

  // `account`: "system:serviceaccount:NAMESPACE:NAME" of the agents.
  TokenReviewer(std::string account, const Clock& clock, Metrics& metrics, Review review,
                NodeOfPod node_of_pod);

  Admission Check(const std::string& token, const std::stop_token& stop);

 private:
  std::optional<Admission> Find(const std::string& digest, int64_t now_ns);
  void Remember(const std::string& digest, int64_t until_ns, const Admission& admission);
  Admission Ask(const std::string& token, int64_t expires_at_ns, const std::stop_token& stop);
  Admission Judge(const std::string& answer, int64_t expires_at_ns) const;

  const std::string account_;
  const Clock& clock_;
  const Review review_;
  const NodeOfPod node_of_pod_;
  CounterMetric asked_;
  CounterMetric remembered_;
  Mutex mutex_;
  std::map<std::string, Admission> cache_ FF_GUARDED_BY(mutex_);      // by SHA-256 of the token
  std::multimap<int64_t, std::string> by_end_ FF_GUARDED_BY(mutex_);  // wall clock: the same
};

}  // namespace flamefleet::security
