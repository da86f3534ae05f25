// SPDX-License-Identifier: Apache-2.0
#include "operator/control/server_credentials.h"

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>

#include <utility>

namespace flamefleet::control {
namespace {

// gRPC's C++ layer has no in-memory certificate that changes; its core has.
class ReloadingCredentials final : public grpc::ServerCredentials {
 public:
  explicit ReloadingCredentials(ServerCertificate& certificate)
      : credentials_(grpc_ssl_server_credentials_create_with_options(
            grpc_ssl_server_credentials_create_options_using_config_fetcher(
                GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE, &Fetch, &certificate))) {}
  ~ReloadingCredentials() override { grpc_server_credentials_release(credentials_); }
  ReloadingCredentials(const ReloadingCredentials&) = delete;
  ReloadingCredentials& operator=(const ReloadingCredentials&) = delete;

  // Tokens are checked per stream, and not before a thread is free for it.
  void SetAuthMetadataProcessor(const std::shared_ptr<grpc::AuthMetadataProcessor>&) override {}

 private:
  static grpc_ssl_certificate_config_reload_status Fetch(
      void* certificate, grpc_ssl_server_certificate_config** config) {
    CertificatePair pair;
    if (!static_cast<ServerCertificate*>(certificate)->Fetch(pair))
      return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
    const grpc_ssl_pem_key_cert_pair pem = {pair.key.c_str(), pair.certificate.c_str()};
    // It wants authorities of clients also where no client is asked for a certificate.
    *config = grpc_ssl_server_certificate_config_create(pair.certificate.c_str(), &pem, 1);
    return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
  }

  int AddPortToServer(const std::string& address, grpc_server* server) override {
    return grpc_server_add_http2_port(server, address.c_str(), credentials_);
  }

  grpc_server_credentials* const credentials_;
};

}  // namespace

void ServerCertificate::Set(CertificatePair pair) {
  const MutexLock lock(&mutex_);
  if (pair == pair_) return;
  pair_ = std::move(pair);
  fetched_ = false;
}

bool ServerCertificate::Fetch(CertificatePair& pair) {
  const MutexLock lock(&mutex_);
  if (fetched_) return false;
  fetched_ = true;
  pair = pair_;
  return true;
}

std::shared_ptr<grpc::ServerCredentials> NewServerCredentials(ServerCertificate& certificate) {
  return std::make_shared<ReloadingCredentials>(certificate);
}

}  // namespace flamefleet::control
