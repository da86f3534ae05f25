// SPDX-License-Identifier: Apache-2.0
#include "base/http/fetch.h"

// Boost 1.74 uses std::exchange without including it.
#include <utility>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>

#include "base/http/url.h"

namespace flamefleet {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;

// Read buffer: what Beast reads at once.
constexpr size_t kReadChunk = 16 << 10;

// Completion token: the result of co_await, its error in `error`.
auto Into(error_code& error) {
  return asio::redirect_error(asio::use_awaitable, error);
}

Status ConnectError(const error_code& error) {
  if (error == asio::error::connection_refused) {
    return FailedPreconditionError("connect: connection refused");
  }
  if (error == beast::error::timeout) return DeadlineExceededError("connect: no answer in time");
  const Status status = ErrnoError(error.value(), "connect");
  // A packet filter says so; that code is for certificates.
  return status.code() == StatusCode::kPermissionDenied ? UnavailableError(ErrorMessage(status))
                                                        : status;
}

Status HandshakeError(const error_code& error, const FetchOptions& options, SSL* ssl) {
  if (error == beast::error::timeout) {
    return DeadlineExceededError("no TLS in " + std::to_string(options.timeout.count()) + " ms");
  }
  if (const long verified = SSL_get_verify_result(ssl); verified != X509_V_OK) {
    return PermissionDeniedError(std::string("the certificate is not trusted: ") +
                                 X509_verify_cert_error_string(verified));
  }
  return InvalidArgumentError("TLS handshake: " + error.message());
}

// Trust and name of the server as `tls` asks for.
Status Configure(const FetchTls& tls, const std::string& address, asio::ssl::context& context) {
  SSL_CTX_set_min_proto_version(context.native_handle(), TLS1_2_VERSION);
  if (tls.insecure_skip_verify) {
    context.set_verify_mode(asio::ssl::verify_none);
    return OkStatus();
  }
  error_code error;
  if (tls.ca_pem.empty()) {
    context.set_default_verify_paths(error);
  } else {
    context.add_certificate_authority(asio::buffer(tls.ca_pem), error);
  }
  if (error) return PermissionDeniedError("CA certificate: " + error.message());
  context.set_verify_mode(asio::ssl::verify_peer);
  context.set_verify_callback(
      asio::ssl::host_name_verification(tls.server_name.empty() ? address : tls.server_name));
  return OkStatus();
}

Status ReadError(const error_code& error, const FetchOptions& options) {
  if (error == beast::error::timeout) {
    return DeadlineExceededError("not done in " + std::to_string(options.timeout.count()) + " ms");
  }
  if (error == http::error::body_limit) {
    return ResourceExhaustedError("body is larger than " + std::to_string(options.max_body_bytes) +
                                  " bytes");
  }
  if (error == http::error::header_limit || error == http::error::buffer_overflow) {
    return ResourceExhaustedError("header is larger than " +
                                  std::to_string(options.max_header_bytes) + " bytes");
  }
  if (error == http::error::end_of_stream || error == http::error::partial_message) {
    return UnavailableError("the connection was closed before the end of the answer");
  }
  if (error.category() == make_error_code(http::error::bad_version).category()) {
    return InvalidArgumentError("the answer is not HTTP: " + error.message());
  }
  return UnavailableError("read: " + error.message());
}

// The request and its answer on a connection that is there.
template <typename Stream>
asio::awaitable<Result<FetchResponse>> Ask(Stream& stream, const FetchOptions& options) {
  error_code error;
  http::request<http::empty_body> request(http::verb::get, options.target, 11);
  request.set(http::field::host, JoinHostPort(options.address, options.port));
  request.set(http::field::user_agent, "flamefleet/" FF_VERSION);
  request.set(http::field::connection, "close");
  co_await http::async_write(stream, request, Into(error));
  if (error) co_return ReadError(error, options);

  beast::flat_buffer buffer(options.max_header_bytes + kReadChunk);
  buffer.reserve(kReadChunk);
  http::response_parser<http::string_body> parser;
  parser.header_limit(static_cast<uint32_t>(options.max_header_bytes));
  parser.body_limit(options.max_body_bytes);
  co_await http::async_read_header(stream, buffer, parser, Into(error));
  if (error) co_return ReadError(error, options);
  if (options.before_body) {
    const Status status = options.before_body();
    if (!status.ok()) co_return status;
    beast::get_lowest_layer(stream).expires_after(options.body_timeout);
  }
  if (!parser.is_done()) co_await http::async_read(stream, buffer, parser, Into(error));
  if (error) co_return ReadError(error, options);
  const auto location = parser.get()[http::field::location];
  FetchResponse response{.status = static_cast<int>(parser.get().result_int()),
                         .location = std::string(location.data(), location.size())};
  response.body = std::move(parser.get().body());
  co_return response;
}

// `context` is null for plain HTTP.
asio::awaitable<Result<FetchResponse>> Exchange(beast::tcp_stream& stream, tcp::endpoint endpoint,
                                                const FetchOptions& options,
                                                asio::ssl::context* context) {
  error_code error;
  stream.expires_after(options.timeout);
  co_await stream.async_connect(endpoint, Into(error));
  if (error) co_return ConnectError(error);
  if (context == nullptr) co_return co_await Ask(stream, options);

  asio::ssl::stream<beast::tcp_stream&> secured(stream, *context);
  const std::string& name = options.tls->server_name;
  if (!name.empty()) SSL_set_tlsext_host_name(secured.native_handle(), name.c_str());
  co_await secured.async_handshake(asio::ssl::stream_base::client, Into(error));
  if (error) co_return HandshakeError(error, options, secured.native_handle());
  co_return co_await Ask(secured, options);
}

}  // namespace

Result<FetchResponse> Fetch(const FetchOptions& options, const std::stop_token& stop) {
  const std::string what = (options.tls ? "GET https://" : "GET http://") +
                           JoinHostPort(options.address, options.port) + options.target;
  error_code error;
  const auto address = asio::ip::make_address(options.address, error);
  if (error) return InvalidArgumentError(what + ": not an IP address");

  asio::ssl::context context(asio::ssl::context::tls_client);
  if (options.tls) {
    const Status configured = Configure(*options.tls, options.address, context);
    if (!configured.ok()) return Annotate(configured, what);
  }
  asio::io_context io(1);
  beast::tcp_stream stream(io);
  const std::stop_callback on_stop(stop, [&] { asio::post(io, [&stream] { stream.close(); }); });
  Result<FetchResponse> result;
  asio::co_spawn(io,
                 Exchange(stream, tcp::endpoint(address, options.port), options,
                          options.tls ? &context : nullptr),
                 [&result](const std::exception_ptr& thrown, Result<FetchResponse> response) {
                   result = thrown ? ResourceExhaustedError("out of memory") : std::move(response);
                 });
  io.run();
  if (stop.stop_requested()) return CancelledError(what + ": stop was requested");
  if (!result.ok()) return Annotate(result.status(), what);
  return result;
}

}  // namespace flamefleet
