// SPDX-License-Identifier: Apache-2.0
// ClientTls: the TLS side of an HttpClient: trust, client certificate, server name.
//
// The library beneath can only verify the name of the URL's host, so verification is ours: chain
// and name are checked by OpenSSL with the name that HttpTlsOptions asks for.
//
// Thread: Configure from the library's threads, the rest from any.
// Errors: Check: kInvalidArgument when a certificate or key cannot be read; the message says which.
#pragma once

#include <openssl/ssl.h>

#include <boost/asio/ssl/context.hpp>
#include <mutex>
#include <string>

#include "base/http/client.h"

namespace flamefleet {

class ClientTls {
 public:
  // `host` of the URL, without brackets.
  ClientTls(HttpTlsOptions options, const std::string& host);

  // Whether Configure will work.
  Status Check();
  // Prepares the context of one connection, which must end before this object.
  Status Configure(boost::asio::ssl::context& context);
  // Why a certificate was not trusted since the last call; empty if none was refused.
  std::string TakeRefusal();

 private:
  static void InfoCallback(const SSL* ssl, int where, int value);
  void SetServerName(SSL* ssl) const;
  static int VerifyCallback(X509_STORE_CTX* store, void* self);
  int Verify(X509_STORE_CTX* store);

  // Constant after construction.
  const HttpTlsOptions options_;
  const std::string server_name_;
  const bool name_is_address_;

  std::mutex mutex_;
  std::string refusal_;  // guarded by mutex_
};

}  // namespace flamefleet
