// SPDX-License-Identifier: Apache-2.0
// HttpClient: the one HTTP client (cpprestsdk beneath), with every size and time bounded.
//
// Thread: any; calls block the caller and may run in parallel. Handlers run on the calling thread.
//         One client is one base URL and one pool of connections.
// Units:  milliseconds.
// Bounds: a response body held in memory is at most max_response_bytes; a streamed one is never
//         held.
// Errors: kUnavailable refused, reset, unresolved or cut connection; kDeadlineExceeded a timeout;
//         kResourceExhausted a body over its bound; kCancelled stop was requested;
//         kInvalidArgument a bad URL. A status code of 400 and above is an answer, not an error.
//         Redirects are not followed.
// For servers that we chose: the library reads a response's header without a bound. What a pod
// serves is read by base/http/fetch.h.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "base/http/url.h"
#include "base/status.h"

namespace flamefleet {

struct HttpTlsOptions {
  std::string ca_pem;           // trusted roots; empty: the system's
  std::string client_cert_pem;  // with client_key_pem: mutual TLS
  std::string client_key_pem;
  std::string server_name;  // name to verify instead of the URL's host
  bool insecure_skip_verify = false;

  friend bool operator==(const HttpTlsOptions&, const HttpTlsOptions&) = default;
};

struct HttpClientOptions {
  std::string base_url;   // scheme://host[:port], no path; host is a name or an IPv4 address
  std::string proxy_url;  // http://HOST:PORT, which connects us (CONNECT); empty: none
  HttpTlsOptions tls;
  size_t max_response_bytes = 16 << 20;
};

struct HttpRequest {
  std::string method = "GET";
  std::string target = "/";                    // path and query, already encoded
  std::map<std::string, std::string> headers;  // sent as they are
  std::string body;
  std::chrono::milliseconds idle_timeout{10'000};   // longest silence of the server
  std::chrono::milliseconds total_timeout{30'000};  // of the whole exchange; 0: none (watches)
};

struct HttpResponse {
  int status = 0;
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;
  // The value of a header, empty if absent. `name` in lower case.
  std::string Header(const std::string& name) const;
};

class HttpClient {
 public:
  // Called with the status and headers before the first byte of the body.
  using HeadHandler = std::function<void(const HttpResponse& head)>;
  // Called with each piece of the body as it arrives (a body with Content-Length: each 64 KiB). A
  // status that is not OK ends the exchange and becomes its result. Blocking in it is the
  // back-pressure.
  using BodyHandler = std::function<Status(std::string_view piece)>;

  static Result<std::unique_ptr<HttpClient>> Create(const HttpClientOptions& options);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // The whole response, its body bounded by max_response_bytes.
  Result<HttpResponse> Send(const HttpRequest& request, const std::stop_token& stop = {});

  // A response whose body goes to `on_body` piece by piece; returns when it ended cleanly (the body
  // field is empty).
  Result<HttpResponse> Stream(const HttpRequest& request, const HeadHandler& on_head,
                              const BodyHandler& on_body, const std::stop_token& stop = {});

 private:
  class Impl;
  explicit HttpClient(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace flamefleet
