// SPDX-License-Identifier: Apache-2.0
// StoreKeys: a certificate of the operator's authority and credentials for each managed store.
//
// Secret flamefleet-stores: certificate, key and --auth-file of each store, which mounts its own,
// and the token with which agents write.
//
// Secret flamefleet-store-NAME-reader: user and password with which people read. Made once and
// never changed: who puts other values there, or deletes it, has others.
//
// Everything is decided by what the cache has of these and of the authority's Secret; a write that
// was decided by something older is refused by the API server and tried again.
//
// Thread: one. Units: wall-clock nanoseconds.
// Bounds: those of SecretWatcher, which come before the 1 MiB of a Secret.
// Errors: kUnavailable the cache has not read a Secret yet; kAborted it was behind;
//         kInvalidArgument the reader's Secret is of no use, so nobody reads; those of RestClient.
#pragma once

#include <map>
#include <stop_token>
#include <string>

#include "base/clock.h"
#include "operator/api/profiling_backend.h"
#include "operator/api/secret.h"
#include "operator/kube/rest_client.h"
#include "operator/security/tls_material.h"

namespace flamefleet::security {

struct RenewedStores {
  api::StringMap data;  // of Secret flamefleet-stores
  std::string why;      // what changed, for the log; empty: nothing
};

// The data as it must be now. `readers`: by backend "USER:PASSWORD" of who may read; empty: nobody.
Result<RenewedStores> RenewStores(const api::StringMap& stored,
                                  const std::map<std::string, std::string>& readers,
                                  const TlsMaterial& material, const std::string& ns,
                                  int64_t now_ns);

class StoreKeys {
 public:
  StoreKeys(RestClient& client, const Clock& clock, std::string ns);

  // Brings both kinds of Secrets up to date for all `backends` that have a managed store; what is
  // wrong with the reader's Secret is an error for `backend` alone.
  Status Sync(const std::string& backend,
              const std::vector<std::shared_ptr<const api::ProfilingBackend>>& backends,
              const api::SecretMap& known, const std::stop_token& stop);

 private:
  // "USER:PASSWORD" of who may read; makes the Secret when there is none.
  Result<std::string> ReaderOf(const api::ProfilingBackend& backend, const api::SecretMap& known,
                               const std::stop_token& stop);
  Status Write(const api::StringMap& data, const api::Secret* stored, const std::stop_token& stop);

  RestClient& client_;
  const Clock& clock_;
  const std::string ns_;
};

}  // namespace flamefleet::security
