// SPDX-License-Identifier: Apache-2.0
#include "base/http/server.h"

// Boost 1.74 uses std::exchange without including it.
#include <utility>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>

#include <algorithm>
#include <array>
#include <set>
#include <thread>
#include <vector>

#include "base/http/server_message.h"
#include "base/http/server_tls.h"
#include "base/http/url.h"
#include "base/log.h"
#include "base/thread.h"

namespace flamefleet {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;

// Read buffer of a connection that sends a body: Beast reads no more at once than the buffer holds.
constexpr size_t kReadChunk = 16 << 10;
// A client that reads slower than this while we answer is cut off.
constexpr size_t kMinAnswerBytesPerSecond = 16 << 10;
// After a refusal the rest of the request is read and thrown away for this long, so that the client
// sees the answer and not a reset of the connection.
constexpr std::chrono::seconds kLinger{2};
constexpr size_t kMaxLingerBytes = 8 << 20;
// A running handler's answer still goes out during a stop, if the client takes it this fast.
constexpr std::chrono::seconds kStopGrace{1};
// Pause after accept() failed (no descriptors left), so that it does not spin.
constexpr std::chrono::milliseconds kAcceptPause{100};

// Completion token: the result of co_await, its error in `error`.
auto Into(error_code& error) {
  return asio::redirect_error(asio::use_awaitable, error);
}

Result<tcp::endpoint> ResolveListenAddress(const std::string& listen, asio::io_context& io) {
  FF_ASSIGN_OR_RETURN(const HostPort address, ParseHostPort(listen));
  if (address.host.empty()) return tcp::endpoint(tcp::v6(), address.port);
  error_code error;
  const auto literal = asio::ip::make_address(address.host, error);
  if (!error) return tcp::endpoint(literal, address.port);
  tcp::resolver resolver(io);
  const auto found = resolver.resolve(address.host, std::to_string(address.port), error);
  if (error || found.empty()) {
    return InvalidArgumentError("listen on " + listen + ": unknown host: " + error.message());
  }
  return found.begin()->endpoint();
}

// State of one connection. Thread: io.
struct Connection {
  explicit Connection(tcp::socket socket) : plain(std::move(socket)) {}
  beast::tcp_stream plain;  // its deadline is that of TLS above it too
  bool in_handler = false;
};

// What the body of a request takes of the bytes that all may have, while it lives. Thread: io.
class BodyShare {
 public:
  explicit BodyShare(size_t& all) : all_(all) {}
  ~BodyShare() { all_ -= bytes_; }
  BodyShare(const BodyShare&) = delete;
  BodyShare& operator=(const BodyShare&) = delete;

  void Set(size_t bytes) {
    all_ += bytes - bytes_;
    bytes_ = bytes;
  }

 private:
  size_t& all_;
  size_t bytes_ = 0;
};

}  // namespace

std::string HttpServerRequest::Header(const std::string& name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? "" : found->second;
}

std::string HttpServerRequest::QueryValue(const std::string& name) const {
  const auto found = query.lower_bound(name);
  return found == query.end() || found->first != name ? "" : found->second;
}

// One thread moves the bytes of all connections; handlers run on threads of their own, so that one
// that waits for a disk does not stop the others.
class HttpServer::Impl {
 public:
  Impl(const HttpServerOptions& options, HttpHandler handler)
      : options_(options), handler_(std::move(handler)) {}
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl();

  Status Listen();
  void Start();
  uint16_t port() const { return port_; }

 private:
  asio::awaitable<void> Accept();
  asio::awaitable<void> Serve(tcp::socket socket);
  asio::awaitable<void> ServeTls(Connection& connection);
  // `stream` is the connection's, or TLS over it.
  template <typename Stream>
  asio::awaitable<void> ServeRequests(Connection& connection, Stream& stream);
  template <typename Stream>
  asio::awaitable<error_code> ReadRequest(Connection& connection, Stream& stream,
                                          beast::flat_buffer& buffer, RequestParser& parser,
                                          BodyShare& share, bool first);
  asio::awaitable<HttpServerResponse> Handle(Connection& connection, RequestParser& parser);
  asio::awaitable<HttpServerResponse> RunHandler(const HttpServerRequest& request);
  template <typename Stream>
  asio::awaitable<bool> Write(Connection& connection, Stream& stream, HttpServerResponse response,
                              bool head_only, unsigned version, bool keep_alive);
  asio::awaitable<void> Linger(Connection& connection);
  void StopOnIoThread();
  // Clients that keep their connections must not shut others out: beyond three quarters of
  // max_connections each ends with its answer.
  bool IsCrowded() const { return connections_.size() > options_.max_connections * 3 / 4; }

  // Constant after Start().
  const HttpServerOptions options_;
  const HttpHandler handler_;
  uint16_t port_ = 0;

  asio::io_context io_{1};
  asio::io_context handlers_;
  asio::executor_work_guard<asio::io_context::executor_type> handlers_work_{
      handlers_.get_executor()};
  tcp::acceptor acceptor_{io_};

  // Only on the io thread.
  std::unique_ptr<ServerTls> tls_;  // nullptr: plain HTTP
  std::set<Connection*> connections_;
  size_t bodies_bytes_ = 0;  // of all requests that are being read or handled
  bool stopping_ = false;

  std::vector<std::jthread> handler_threads_;
  std::jthread io_thread_;
};

Status HttpServer::Impl::Listen() {
  if (options_.tls) {
    FF_ASSIGN_OR_RETURN(tls_, ServerTls::Create(*options_.tls));
  }
  FF_ASSIGN_OR_RETURN(tcp::endpoint endpoint, ResolveListenAddress(options_.listen, io_));
  error_code error;
  acceptor_.open(endpoint.protocol(), error);
  if (error && options_.listen[0] == ':') {  // no IPv6 on this machine
    endpoint = tcp::endpoint(tcp::v4(), endpoint.port());
    acceptor_.open(endpoint.protocol(), error);
  }
  if (!error) acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error && endpoint.protocol() == tcp::v6()) {
    acceptor_.set_option(asio::ip::v6_only(false), error);
  }
  if (!error) acceptor_.bind(endpoint, error);
  if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
  if (error) return ErrnoError(error.value(), "listen on " + options_.listen);
  port_ = acceptor_.local_endpoint().port();
  return OkStatus();
}

void HttpServer::Impl::Start() {
  asio::co_spawn(io_, Accept(), asio::detached);
  for (size_t i = 0; i < options_.handler_threads; ++i) {
    handler_threads_.push_back(
        StartThread("ff-http-handler", [this](const std::stop_token&) { handlers_.run(); }));
  }
  io_thread_ = StartThread("ff-http-io", [this](const std::stop_token&) { io_.run(); });
}

HttpServer::Impl::~Impl() {
  asio::post(io_, [this] { StopOnIoThread(); });
  if (io_thread_.joinable()) io_thread_.join();  // ends when the last connection is gone
  handlers_work_.reset();
}

void HttpServer::Impl::StopOnIoThread() {
  stopping_ = true;
  error_code ignored;
  acceptor_.close(ignored);
  for (Connection* const connection : connections_) {
    if (!connection->in_handler) connection->plain.close();
  }
}

asio::awaitable<void> HttpServer::Impl::Accept() {
  asio::steady_timer pause(io_);
  while (!stopping_) {
    error_code error;
    tcp::socket socket = co_await acceptor_.async_accept(Into(error));
    if (stopping_) co_return;
    if (error) {
      Log(LogLevel::kWarn, "connection not accepted", {{"error", error.message()}});
      pause.expires_after(kAcceptPause);
      co_await pause.async_wait(Into(error));
      continue;
    }
    if (connections_.size() >= options_.max_connections) {
      constexpr std::string_view kBusy =
          "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\n"
          "Connection: close\r\n\r\n";
      socket.non_blocking(true, error);
      socket.write_some(asio::buffer(kBusy), error);  // fits the empty send buffer or is not sent
      continue;
    }
    socket.set_option(tcp::no_delay(true), error);
    asio::co_spawn(io_, Serve(std::move(socket)), asio::detached);
  }
}

asio::awaitable<void> HttpServer::Impl::Serve(tcp::socket socket) {
  Connection connection(std::move(socket));
  connections_.insert(&connection);
  try {
    if (tls_) {
      co_await ServeTls(connection);
    } else {
      co_await ServeRequests(connection, connection.plain);
    }
  } catch (const std::exception& error) {  // out of memory for one connection
    Log(LogLevel::kError, "connection ended by an exception", {{"error", error.what()}});
  }
  connections_.erase(&connection);
}

asio::awaitable<void> HttpServer::Impl::ServeTls(Connection& connection) {
  const auto context = tls_->Context();
  asio::ssl::stream<beast::tcp_stream&> stream(connection.plain, *context);
  connection.plain.expires_after(options_.request_timeout);
  error_code error;
  co_await stream.async_handshake(asio::ssl::stream_base::server, Into(error));
  if (!error) co_await ServeRequests(connection, stream);
}

template <typename Stream>
asio::awaitable<void> HttpServer::Impl::ServeRequests(Connection& connection, Stream& stream) {
  beast::flat_buffer buffer(options_.max_header_bytes + kReadChunk);
  for (bool first = true; !stopping_; first = false) {
    RequestParser parser;
    parser.header_limit(static_cast<uint32_t>(options_.max_header_bytes));
    parser.body_limit(options_.max_body_bytes);
    BodyShare share(bodies_bytes_);
    const error_code error = co_await ReadRequest(connection, stream, buffer, parser, share, first);
    if (error) {
      HttpServerResponse answer = AnswerTo(error, options_);
      if (answer.status == 0) co_return;
      const bool written = co_await Write(connection, stream, std::move(answer), false, 11, false);
      if (written) co_await Linger(connection);
      co_return;
    }
    const bool head_only = parser.get().method() == http::verb::head;
    const bool keep_alive = parser.get().keep_alive();
    const unsigned version = parser.get().version();
    HttpServerResponse response = co_await Handle(connection, parser);
    share.Set(0);  // Handle has thrown it away
    const bool stays = keep_alive && !stopping_ && !IsCrowded();
    const bool written =
        co_await Write(connection, stream, std::move(response), head_only, version, stays);
    if (!written || !stays) co_return;
  }
}

template <typename Stream>
asio::awaitable<error_code> HttpServer::Impl::ReadRequest(Connection& connection, Stream& stream,
                                                          beast::flat_buffer& buffer,
                                                          RequestParser& parser, BodyShare& share,
                                                          bool first) {
  error_code error;
  if (buffer.size() == 0) {
    connection.plain.expires_after(first ? options_.request_timeout : options_.idle_timeout);
    constexpr size_t kFirstRead = 1024;
    buffer.commit(co_await stream.async_read_some(buffer.prepare(kFirstRead), Into(error)));
    if (error) co_return error;
  }
  connection.plain.expires_after(options_.request_timeout);
  co_await http::async_read_header(stream, buffer, parser, Into(error));
  if (error) co_return error;
  if (!parser.is_done()) {
    if (beast::iequals(parser.get()[http::field::expect], "100-continue")) {
      constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
      co_await asio::async_write(stream, asio::buffer(kContinue), Into(error));
      if (error) co_return error;
    }
    buffer.reserve(kReadChunk);
    parser.eager(true);
    while (!error && !parser.is_done()) {
      co_await http::async_read_some(stream, buffer, parser, Into(error));
      share.Set(parser.get().body().size());
      if (!error && bodies_bytes_ > std::max(options_.max_bodies_bytes, options_.max_body_bytes))
        error = NoRoomForBody();
    }
  }
  co_return error;
}

asio::awaitable<HttpServerResponse> HttpServer::Impl::Handle(Connection& connection,
                                                             RequestParser& parser) {
  const Result<HttpServerRequest> request = ConvertRequest(parser);
  if (!request.ok()) {
    co_return ErrorAnswer(http::status::bad_request, ErrorMessage(request.status()));
  }
  HttpServerResponse response;
  connection.in_handler = true;
  try {
    response = co_await asio::co_spawn(handlers_.get_executor(), RunHandler(*request),
                                       asio::use_awaitable);
  } catch (const std::exception& error) {
    Log(LogLevel::kError, "http handler threw", {{"path", request->path}, {"error", error.what()}});
    response = ErrorAnswer(http::status::internal_server_error, "internal error");
  }
  connection.in_handler = false;
  co_return response;
}

asio::awaitable<HttpServerResponse> HttpServer::Impl::RunHandler(const HttpServerRequest& request) {
  co_return handler_(request);
}

template <typename Stream>
asio::awaitable<bool> HttpServer::Impl::Write(Connection& connection, Stream& stream,
                                              HttpServerResponse response, bool head_only,
                                              unsigned version, bool keep_alive) {
  const ResponseMessage message = ConvertResponse(std::move(response), version, keep_alive);
  const std::chrono::seconds transfer(message.body().size() / kMinAnswerBytesPerSecond);
  auto limit = options_.request_timeout + transfer;
  if (stopping_) limit = std::min<std::chrono::milliseconds>(limit, kStopGrace);
  connection.plain.expires_after(limit);
  http::response_serializer<http::string_body> serializer(message);
  error_code error;
  if (head_only) {
    co_await http::async_write_header(stream, serializer, Into(error));
  } else {
    co_await http::async_write(stream, serializer, Into(error));
  }
  co_return !error;
}

asio::awaitable<void> HttpServer::Impl::Linger(Connection& connection) {
  error_code error;
  connection.plain.socket().shutdown(tcp::socket::shutdown_send, error);
  connection.plain.expires_after(kLinger);
  std::array<char, 4096> trash;
  for (size_t read = 0; !error && read < kMaxLingerBytes;) {
    read += co_await connection.plain.async_read_some(asio::buffer(trash), Into(error));
  }
}

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

HttpServer::~HttpServer() = default;

Result<std::unique_ptr<HttpServer>> HttpServer::Create(const HttpServerOptions& options,
                                                       HttpHandler handler) {
  auto impl = std::make_unique<Impl>(options, std::move(handler));
  FF_RETURN_IF_ERROR(impl->Listen());
  impl->Start();
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

uint16_t HttpServer::port() const {
  return impl_->port();
}

}  // namespace flamefleet
