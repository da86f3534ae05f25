// SPDX-License-Identifier: Apache-2.0
// ServerCertificate: what the server shows to agents, replaced while it serves: connections keep
// what they began with, the next handshake takes the newer one. TLS 1.2 and 1.3; agents are known
// by their tokens, not by certificates.
//
// Thread: any; internally locked. Errors: gRPC refuses handshakes while a pair cannot be used.
// Source: grpc_ssl_server_credentials_create_options_using_config_fetcher of gRPC core.
#pragma once

#include <grpcpp/security/server_credentials.h>

#include <memory>

#include "base/mutex.h"
#include "base/tls/certificate.h"

namespace flamefleet::control {

class ServerCertificate {
 public:
  void Set(CertificatePair pair);
  // Fills `pair` and returns true when there is one that was not fetched yet.
  bool Fetch(CertificatePair& pair);

 private:
  Mutex mutex_;
  CertificatePair pair_ FF_GUARDED_BY(mutex_);
  bool fetched_ FF_GUARDED_BY(mutex_) = true;
};

// For one server, which `certificate` must outlive.
std::shared_ptr<grpc::ServerCredentials> NewServerCredentials(ServerCertificate& certificate);

}  // namespace flamefleet::control
