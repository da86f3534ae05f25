// SPDX-License-Identifier: Apache-2.0
// HttpServer: the one HTTP/1.1 server of our programs (Boost.Beast beneath), made to face a
// network.
//
// Thread: Create and the destructor from one thread; handlers run on `handler_threads` threads of
//         the server, several at once. Destruction stops accepting, lets running handlers end and
//         answer, closes the rest.
// TLS:    1.2 and later; certificate and key files are read again when they change.
// Bounds: request header, body, all bodies together, time to read a request, idle keep-alive,
//         number of connections: all in the options. Over a bound the client gets 431, 413, 503 or
//         a closed connection, never memory of ours.
// Errors: Create: kAlreadyExists port in use, kInvalidArgument a bad address or certificate. A
//         handler that throws is a 500 of its request.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/status.h"

namespace flamefleet {

struct HttpServerRequest {
  std::string method;                             // a HEAD comes as GET; its body is not sent
  std::string path;                               // percent-decoded, without the query
  std::multimap<std::string, std::string> query;  // percent-decoded
  std::map<std::string, std::string> headers;     // names in lower case
  std::string body;
  std::string Header(const std::string& name) const;      // empty if absent
  std::string QueryValue(const std::string& name) const;  // the first, empty if absent
};

struct HttpServerResponse {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
  std::map<std::string, std::string> headers;
};

using HttpHandler = std::function<HttpServerResponse(const HttpServerRequest&)>;

struct HttpServerTls {
  std::string cert_file;  // PEM, the chain
  std::string key_file;   // PEM
};

struct HttpServerOptions {
  std::string listen;  // "127.0.0.1:4040", "[::]:8080", ":8080" (all addresses); port 0 picks one
  std::optional<HttpServerTls> tls;  // absent: plain HTTP
  size_t max_header_bytes = 16 << 10;
  size_t max_body_bytes = 1 << 20;
  // Of all requests that are being read or handled; max_body_bytes at least, so that one fits.
  size_t max_bodies_bytes = 64 << 20;
  size_t max_connections = 512;
  size_t handler_threads = 2;
  // From the first byte of a request to its last.
  std::chrono::milliseconds request_timeout{15'000};
  // Between requests.
  std::chrono::milliseconds idle_timeout{60'000};
};

class HttpServer {
 public:
  static Result<std::unique_ptr<HttpServer>> Create(const HttpServerOptions& options,
                                                    HttpHandler handler);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  uint16_t port() const;

 private:
  class Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace flamefleet
