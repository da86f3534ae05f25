// SPDX-License-Identifier: Apache-2.0
#include "base/http/client.h"

#include <cpprest/http_client.h>
#include <pplx/threadpool.h>

#include <algorithm>
#include <boost/asio/ssl.hpp>
#include <cctype>
#include <mutex>
#include <utility>

#include "base/http/client_tls.h"
#include "base/http/exchange.h"
#include "base/thread.h"

namespace flamefleet {
namespace {

// Threads of the library, for all clients of the program. They only move bytes: handlers run on the
// callers' threads.
constexpr size_t kLibraryThreads = 2;
// The library's own limit on silence; ours is per request and shorter.
constexpr std::chrono::hours kLibraryTimeout{24};
// How the library's error begins when the server had closed a kept connection. The server cannot
// have seen the whole request, so it may be sent again.
constexpr std::string_view kStaleConnection = "Failed to write request";
constexpr const char* kUserAgent = "flamefleet/" FF_VERSION;

// Must come before the first use of the library, which would start 40 threads.
void StartLibraryThreadsOnce() {
  static std::once_flag once;
  std::call_once(once, [] {
    // The pool's threads inherit the name of the thread that starts them.
    StartThread("ff-http-client", [](const std::stop_token&) {
      crossplat::threadpool::initialize_with_threads(kLibraryThreads);
    }).join();
  });
}

std::string LowerCase(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

// The cause in the library's words, and OpenSSL's if a certificate was refused.
std::string CauseOf(const std::exception& error, ClientTls* tls) {
  const std::string refusal = tls == nullptr ? "" : tls->TakeRefusal();
  return std::string(error.what()) + (refusal.empty() ? "" : " (certificate: " + refusal + ")");
}

bool IsStaleConnection(const Status& status) {
  return ErrorMessage(status).compare(0, kStaleConnection.size(), kStaleConnection) == 0;
}

HttpResponse HeadOf(const web::http::http_response& response) {
  HttpResponse head;
  head.status = response.status_code();
  for (const auto& [name, value] : response.headers())
    head.headers[LowerCase(name)] = value;
  return head;
}

struct BaseUrl {
  bool https = false;
  std::string host;
};

// The library takes ports that are none, and cannot connect to a literal IPv6 address.
Result<BaseUrl> ParseBaseUrl(const std::string& url) {
  const Status wrong = InvalidArgumentError(
      "URL '" + url + "': want http://HOST:PORT or https://HOST:PORT, HOST a name or IPv4 address");
  const size_t scheme_end = url.find("://");
  if (scheme_end == std::string::npos || !web::uri::validate(url)) return wrong;
  const std::string scheme = url.substr(0, scheme_end);
  if (scheme != "http" && scheme != "https") return wrong;
  std::string authority = url.substr(scheme_end + 3);
  if (!authority.empty() && authority.back() == '/') authority.pop_back();
  if (authority.empty() || authority.find_first_of("/?#@[") != std::string::npos) return wrong;
  if (authority.find(':') == std::string::npos) authority += ":0";  // the scheme's port
  const Result<HostPort> address = ParseHostPort(authority);
  if (!address.ok() || address->host.empty()) return wrong;
  return BaseUrl{scheme == "https", address->host};
}

Result<web::http::http_request> BuildRequest(const HttpRequest& request) {
  web::http::http_request message(request.method);
  try {
    message.set_request_uri(web::uri(request.target));
  } catch (const web::uri_exception&) {
    return InvalidArgumentError("request target '" + request.target + "': not a valid URI");
  }
  if (!request.body.empty()) message.set_body(request.body, "application/octet-stream");
  message.headers()["User-Agent"] = kUserAgent;
  for (const auto& [name, value] : request.headers) {
    const auto is_control = [](unsigned char c) { return c < ' ' && c != '\t'; };
    if (std::any_of(value.begin(), value.end(), is_control)) {
      return InvalidArgumentError("header " + name + ": a value cannot hold a line break");
    }
    message.headers()[name] = value;
  }
  return message;
}

}  // namespace

class HttpClient::Impl {
 public:
  static Result<std::unique_ptr<Impl>> Create(const HttpClientOptions& options);

  Result<HttpResponse> Stream(const HttpRequest& request, const HeadHandler& on_head,
                              const BodyHandler& on_body, const std::stop_token& stop);
  size_t max_response_bytes() const { return max_response_bytes_; }

 private:
  using Library = web::http::client::http_client;

  Impl(const HttpClientOptions& options, web::http::client::http_client_config config,
       std::shared_ptr<ClientTls> tls)
      : base_url_(options.base_url),
        max_response_bytes_(options.max_response_bytes),
        config_(std::move(config)),
        tls_(std::move(tls)),
        library_(std::make_shared<Library>(base_url_, config_)) {}

  std::shared_ptr<Library> CurrentLibrary();
  void Replace(const std::shared_ptr<Library>& library);
  Status Try(Library& library, const HttpRequest& request, const std::stop_token& stop,
             HttpResponse* head, const HeadHandler& on_head, const BodyHandler& on_body);

  // Constant after construction.
  const std::string base_url_;
  const size_t max_response_bytes_;
  const web::http::client::http_client_config config_;
  const std::shared_ptr<ClientTls> tls_;  // none for http

  std::mutex mutex_;
  std::shared_ptr<Library> library_;  // guarded by mutex_; never null
};

Result<std::unique_ptr<HttpClient::Impl>> HttpClient::Impl::Create(
    const HttpClientOptions& options) {
  StartLibraryThreadsOnce();
  FF_ASSIGN_OR_RETURN(const BaseUrl base, ParseBaseUrl(options.base_url));
  web::http::client::http_client_config config;
  if (!options.proxy_url.empty()) {
    FF_ASSIGN_OR_RETURN(const BaseUrl proxy, ParseBaseUrl(options.proxy_url));
    if (proxy.https) {
      return InvalidArgumentError("proxy '" + options.proxy_url + "': want http://HOST:PORT");
    }
    config.set_proxy(web::web_proxy(web::uri(options.proxy_url)));
  }
  config.set_timeout(kLibraryTimeout);
  config.set_max_redirects(0);
  std::shared_ptr<ClientTls> tls;
  if (base.https) {
    tls = std::make_shared<ClientTls>(options.tls, base.host);
    FF_RETURN_IF_ERROR(tls->Check());
    config.set_validate_certificates(false);  // ClientTls verifies
    config.set_tlsext_sni_enabled(false);     // ClientTls names the server
    config.set_ssl_context_callback([tls](boost::asio::ssl::context& context) {
      FF_CHECK(tls->Configure(context).ok());  // as in Check
    });
  }
  try {
    return std::unique_ptr<Impl>(new Impl(options, config, std::move(tls)));
  } catch (const std::exception& error) {
    return InvalidArgumentError("URL '" + options.base_url + "': " + error.what());
  }
}

Result<HttpResponse> HttpClient::Impl::Stream(const HttpRequest& request,
                                              const HeadHandler& on_head,
                                              const BodyHandler& on_body,
                                              const std::stop_token& stop) {
  HttpResponse head;
  const auto library = CurrentLibrary();
  Status status = Try(*library, request, stop, &head, on_head, on_body);
  if (IsStaleConnection(status)) {
    Replace(library);
    status = Try(*CurrentLibrary(), request, stop, &head, on_head, on_body);
  }
  if (!status.ok()) return Annotate(status, request.method + " " + base_url_ + request.target);
  return head;
}

std::shared_ptr<HttpClient::Impl::Library> HttpClient::Impl::CurrentLibrary() {
  const std::lock_guard lock(mutex_);
  return library_;
}

// The library puts a connection that failed while writing back into its pool: a new one starts with
// an empty pool.
void HttpClient::Impl::Replace(const std::shared_ptr<Library>& library) {
  const std::lock_guard lock(mutex_);
  if (library_ == library) library_ = std::make_shared<Library>(base_url_, config_);
}

Status HttpClient::Impl::Try(Library& library, const HttpRequest& request,
                             const std::stop_token& stop, HttpResponse* head,
                             const HeadHandler& on_head, const BodyHandler& on_body) {
  FF_ASSIGN_OR_RETURN(web::http::http_request message, BuildRequest(request));
  const auto exchange = std::make_shared<Exchange>();
  message.set_response_stream(Exchange::BodyBuffer(exchange).create_ostream());
  pplx::cancellation_token_source cancel;
  library.request(message, cancel.get_token())
      .then([exchange](const web::http::http_response& response) {
        exchange->OnHead(HeadOf(response));
        return response.content_ready();
      })
      .then([exchange, tls = tls_](const pplx::task<web::http::http_response>& done) {
        try {
          done.get();
          exchange->OnEnd(OkStatus());
        } catch (const std::exception& error) {
          exchange->OnEnd(UnavailableError(CauseOf(error, tls.get())));
        }
      });
  Status status =
      exchange->Run({request.idle_timeout, request.total_timeout}, stop, head, on_head, on_body);
  if (!status.ok()) cancel.cancel();  // closes the connection
  return status;
}

HttpClient::HttpClient(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

HttpClient::~HttpClient() = default;

Result<std::unique_ptr<HttpClient>> HttpClient::Create(const HttpClientOptions& options) {
  FF_ASSIGN_OR_RETURN(std::unique_ptr<Impl> impl, Impl::Create(options));
  return std::unique_ptr<HttpClient>(new HttpClient(std::move(impl)));
}

Result<HttpResponse> HttpClient::Send(const HttpRequest& request, const std::stop_token& stop) {
  std::string body;
  const size_t limit = impl_->max_response_bytes();
  const auto append = [&body, limit](std::string_view piece) -> Status {
    if (piece.size() > limit - body.size()) {
      return ResourceExhaustedError("response body is larger than " + std::to_string(limit) +
                                    " bytes");
    }
    body += piece;
    return OkStatus();
  };
  FF_ASSIGN_OR_RETURN(HttpResponse response, impl_->Stream(request, nullptr, append, stop));
  response.body = std::move(body);
  return response;
}

Result<HttpResponse> HttpClient::Stream(const HttpRequest& request, const HeadHandler& on_head,
                                        const BodyHandler& on_body, const std::stop_token& stop) {
  return impl_->Stream(request, on_head, on_body, stop);
}

std::string HttpResponse::Header(const std::string& name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? "" : found->second;
}

}  // namespace flamefleet
