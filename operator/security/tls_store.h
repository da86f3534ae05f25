// SPDX-License-Identifier: Apache-2.0
// TlsStore: keeps TlsMaterial in the cluster: keys and certificates in one Secret, what agents
// trust in a ConfigMap that their pods mount.
//
// Of two operators that make an authority at the same time one wins: a Secret is only ever created,
// or replaced in the version that was read; the loser reads again and takes what is there.
//
// Thread: one. Bounds: kMaxTries of a race. Errors: those of RestClient; kAborted a race without
// end. Of a Secret that holds something else, what is broken is made anew; who deletes it wants
// another authority.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <stop_token>
#include <string>
#include <vector>

#include "base/clock.h"
#include "operator/api/kinds.h"
#include "operator/kube/rest_client.h"
#include "operator/security/tls_material.h"

namespace flamefleet::security {

// What the Secret of an authority holds; what cannot be read is left empty.
TlsMaterial MaterialOf(const api::StringMap& data);

// Of Secrets and ConfigMaps that belong to the operator itself.
nlohmann::json OwnMetadata(const std::string& name, const std::string& ns);

class TlsStore {
 public:
  static constexpr int kMaxTries = 5;

  // `names`: what agents call the operator.
  TlsStore(RestClient& client, const Clock& clock, std::string ns, std::vector<std::string> names);

  // Brings the cluster's objects up to date, and returns what to serve with.
  Result<CertificatePair> Sync(const std::stop_token& stop);

 private:
  // kAborted: another operator wrote between our read and our write.
  Result<TlsMaterial> TrySecret(const std::stop_token& stop);
  Status PublishBundle(const TlsMaterial& material, const std::stop_token& stop);

  RestClient& client_;
  const Clock& clock_;
  const std::string ns_;
  const std::vector<std::string> names_;
};

}  // namespace flamefleet::security
