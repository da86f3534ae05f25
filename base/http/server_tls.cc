// SPDX-License-Identifier: Apache-2.0
// Boost 1.74 uses std::exchange without including it.
#include <utility>

#include "base/http/server_tls.h"

#include <boost/asio/buffer.hpp>

#include "base/fd.h"
#include "base/log.h"

namespace flamefleet {
namespace {

namespace ssl = boost::asio::ssl;
using boost::system::error_code;

}  // namespace

Result<std::unique_ptr<ServerTls>> ServerTls::Create(const HttpServerTls& files) {
  std::unique_ptr<ServerTls> tls(new ServerTls(files));
  FF_RETURN_IF_ERROR(tls->Load());
  tls->next_look_ = std::chrono::steady_clock::now() + kLookInterval;
  return tls;
}

std::shared_ptr<ssl::context> ServerTls::Context() {
  const auto now = std::chrono::steady_clock::now();
  if (now < next_look_) return context_;
  next_look_ = now + kLookInterval;
  const Status loaded = Load();
  if (!loaded.ok() && !failing_) {
    Log(LogLevel::kError, "the TLS certificate cannot be renewed; the one before is served on",
        {{"error", loaded}});
  }
  failing_ = !loaded.ok();
  return context_;
}

Status ServerTls::Load() {
  FF_ASSIGN_OR_RETURN(const std::string certificate, ReadFile(files_.cert_file, kMaxPemBytes));
  FF_ASSIGN_OR_RETURN(const std::string key, ReadFile(files_.key_file, kMaxPemBytes));
  std::string pems = certificate + key;
  if (pems == pems_) return OkStatus();
  auto context = std::make_shared<ssl::context>(ssl::context::tls_server);
  error_code error;
  context->set_options(ssl::context::no_tlsv1 | ssl::context::no_tlsv1_1, error);
  if (!error) context->use_certificate_chain(boost::asio::buffer(certificate), error);
  if (error) {
    return InvalidArgumentError("certificate of " + files_.cert_file + ": " + error.message());
  }
  context->use_private_key(boost::asio::buffer(key), ssl::context::pem, error);
  if (error) {  // of what it is, or that it is another's
    return InvalidArgumentError("key of " + files_.key_file + " for the certificate of " +
                                files_.cert_file + ": " + error.message());
  }
  if (!pems_.empty()) Log(LogLevel::kInfo, "TLS certificate renewed", {{"file", files_.cert_file}});
  pems_ = std::move(pems);
  context_ = std::move(context);
  return OkStatus();
}

}  // namespace flamefleet
