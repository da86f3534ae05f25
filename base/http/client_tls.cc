// SPDX-License-Identifier: Apache-2.0
#include "base/http/client_tls.h"

#include <openssl/x509_vfy.h>

#include <boost/asio/ip/address.hpp>
#include <utility>

namespace flamefleet {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

bool IsAddress(const std::string& host) {
  error_code error;
  asio::ip::make_address(host, error);
  return !error;
}

// Where a context has its ClientTls. (The application's data of contexts belong to asio.)
int Index() {
  static const int index = SSL_CTX_get_ex_new_index(0, nullptr, nullptr, nullptr, nullptr);
  return index;
}

}  // namespace

ClientTls::ClientTls(HttpTlsOptions options, const std::string& host)
    : options_(std::move(options)),
      server_name_(options_.server_name.empty() ? host : options_.server_name),
      name_is_address_(IsAddress(server_name_)) {}

Status ClientTls::Check() {
  asio::ssl::context context(asio::ssl::context::tls_client);
  return Configure(context);
}

Status ClientTls::Configure(asio::ssl::context& context) {
  SSL_CTX* const native = context.native_handle();
  SSL_CTX_set_min_proto_version(native, TLS1_2_VERSION);
  error_code error;
  if (!options_.ca_pem.empty()) {
    SSL_CTX_set_cert_store(native, X509_STORE_new());  // instead of the system's roots
    context.add_certificate_authority(asio::buffer(options_.ca_pem), error);
    if (error) return InvalidArgumentError("CA certificate: " + error.message());
  }
  if (!options_.client_cert_pem.empty()) {
    context.use_certificate_chain(asio::buffer(options_.client_cert_pem), error);
    if (error) return InvalidArgumentError("client certificate: " + error.message());
    context.use_private_key(asio::buffer(options_.client_key_pem), asio::ssl::context::pem, error);
    if (error) return InvalidArgumentError("client key: " + error.message());
  }
  // What the library hands to its users before a handshake is the connection to a proxy, if there
  // is one, and not yet of TLS.
  SSL_CTX_set_ex_data(native, Index(), this);
  SSL_CTX_set_info_callback(native, &ClientTls::InfoCallback);
  if (!options_.insecure_skip_verify) {
    SSL_CTX_set_cert_verify_callback(native, &ClientTls::VerifyCallback, this);
  }
  return OkStatus();
}

void ClientTls::InfoCallback(const SSL* ssl, int where, int /*value*/) {
  if ((where & SSL_CB_HANDSHAKE_START) == 0) return;
  const auto* const self =
      static_cast<const ClientTls*>(SSL_CTX_get_ex_data(SSL_get_SSL_CTX(ssl), Index()));
  self->SetServerName(const_cast<SSL*>(ssl));  // OpenSSL's own, const to observers
}

// Before the first message of the handshake is made.
void ClientTls::SetServerName(SSL* ssl) const {
  if (name_is_address_) return;  // RFC 6066: no literal addresses
  SSL_set_tlsext_host_name(ssl, server_name_.c_str());
}

int ClientTls::VerifyCallback(X509_STORE_CTX* store, void* self) {
  return static_cast<ClientTls*>(self)->Verify(store);
}

int ClientTls::Verify(X509_STORE_CTX* store) {
  // The library has set "verify none" on this connection; OpenSSL reads the mode after this call.
  auto* const ssl =
      static_cast<SSL*>(X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx()));
  SSL_set_verify(ssl, SSL_VERIFY_PEER, nullptr);
  X509_VERIFY_PARAM* const parameters = X509_STORE_CTX_get0_param(store);
  const int named =
      name_is_address_
          ? X509_VERIFY_PARAM_set1_ip_asc(parameters, server_name_.c_str())
          : X509_VERIFY_PARAM_set1_host(parameters, server_name_.data(), server_name_.size());
  if (named != 1) return 0;
  const int trusted = X509_verify_cert(store);
  if (trusted != 1) {
    const std::lock_guard lock(mutex_);
    refusal_ = X509_verify_cert_error_string(X509_STORE_CTX_get_error(store));
  }
  return trusted;
}

std::string ClientTls::TakeRefusal() {
  const std::lock_guard lock(mutex_);
  return std::exchange(refusal_, "");
}

}  // namespace flamefleet
