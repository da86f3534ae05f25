// SPDX-License-Identifier: Apache-2.0
#include "store/grpc/otlp_server.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>

#include <chrono>
#include <exception>
#include <thread>
#include <utility>
#include <vector>

#include "base/gzip.h"
#include "base/log.h"
#include "base/queue.h"
#include "base/thread.h"
#include "proto/otlp/profiles.grpc.pb.h"
#include "store/http/otlp.h"

namespace flamefleet::store {
namespace {

namespace pb = opentelemetry::proto::collector::profiles::v1development;

constexpr std::chrono::seconds kShutdownGrace{2};
constexpr std::chrono::hours kIdleWait{1};
constexpr unsigned kCertificateRefreshSeconds = 60;
// A connection that never becomes one of TLS or HTTP/2.
constexpr int kHandshakeTimeoutMs = 20'000;

std::shared_ptr<grpc::ServerCredentials> Credentials(const std::optional<HttpServerTls>& tls) {
  if (!tls) return grpc::InsecureServerCredentials();
  grpc::experimental::TlsServerCredentialsOptions options(
      std::make_shared<grpc::experimental::FileWatcherCertificateProvider>(
          tls->key_file, tls->cert_file, kCertificateRefreshSeconds));
  options.watch_identity_key_cert_pairs();
  options.set_cert_request_type(GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE);
  return grpc::experimental::TlsServerCredentials(options);
}

std::string Bytes(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  if (!buffer.Dump(&slices).ok()) return "";
  std::string bytes;
  bytes.reserve(buffer.Length());
  for (const grpc::Slice& slice : slices)
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  return bytes;
}

HttpServerRequest ToHttp(const grpc::CallbackServerContext& context, std::string body) {
  HttpServerRequest request = {.method = "POST", .path = kOtlpPath};
  for (const std::string name : {"authorization", "x-scope-orgid", kOtlpVersionHeader}) {
    const auto [begin, end] = context.client_metadata().equal_range(name);
    for (auto value = begin; value != end; ++value) {
      std::string& header = request.headers[name];
      if (value != begin) header += ", ";
      header.append(value->second.data(), value->second.size());
    }
  }
  request.headers["content-type"] = kOtlpContentType;
  // A message is compressed as gzip or not at all; no message of protobuf begins as gzip does.
  if (IsGzip(body)) request.headers["content-encoding"] = "gzip";
  request.body = std::move(body);
  return request;
}

grpc::Status ToGrpc(const HttpServerResponse& response) {
  if (response.status == 200) return grpc::Status::OK;
  pb::RpcStatus status;
  if (response.content_type == kOtlpContentType && status.ParseFromString(response.body)) {
    return {static_cast<grpc::StatusCode>(status.code()), status.message()};
  }
  const std::string message = response.body.substr(0, response.body.find('\n'));
  switch (response.status) {
    case 401:
      return {grpc::UNAUTHENTICATED, message};
    case 403:
      return {grpc::PERMISSION_DENIED, message};
    case 429:
      return {grpc::RESOURCE_EXHAUSTED, message};
    case 503:
      return {grpc::UNAVAILABLE, message};
    default:
      return {response.status < 500 ? grpc::INVALID_ARGUMENT : grpc::INTERNAL, message};
  }
}

}  // namespace

class OtlpServer::Impl final
    : public pb::ProfilesService::WithRawCallbackMethod_Export<pb::ProfilesService::Service> {
 public:
  explicit Impl(HttpHandler handler) : handler_(std::move(handler)) {}
  ~Impl() override {
    if (server_ == nullptr) return;
    server_->Shutdown(std::chrono::system_clock::now() + kShutdownGrace);
    server_->Wait();  // the threads finish what is left
  }

  Status Listen(const std::string& address, const std::optional<HttpServerTls>& tls) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address.starts_with(':') ? "[::]" + address : address,
                             Credentials(tls), &port_);
    builder.RegisterService(this);
    builder.SetMaxReceiveMessageSize(kMaxMessageBytes);
    builder.SetResourceQuota(grpc::ResourceQuota("otlp").Resize(kMaxMemory));
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeTimeoutMs);
    // gRPC would unpack what it must without a bound.
    builder.AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
    for (size_t i = 0; i < kCallThreads; ++i) {
      threads_.push_back(StartThread("otlp-" + std::to_string(i),
                                     [this](const std::stop_token& stop) { ServeUntil(stop); }));
    }
    server_ = builder.BuildAndStart();
    if (server_ == nullptr || port_ == 0)
      return UnavailableError("listen for OTLP on " + address + ": not possible");
    return OkStatus();
  }

  uint16_t port() const { return static_cast<uint16_t>(port_); }

  // Called by gRPC; the request and the response live until the call is finished.
  grpc::ServerUnaryReactor* Export(grpc::CallbackServerContext* context,
                                   const grpc::ByteBuffer* request,
                                   grpc::ByteBuffer* response) override {
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    Call call = {context, request, response, reactor};
    if (!calls_.TryPush(call)) reactor->Finish({grpc::UNAVAILABLE, "too many calls at once"});
    return reactor;
  }

 private:
  struct Call {
    grpc::CallbackServerContext* context;
    const grpc::ByteBuffer* request;
    grpc::ByteBuffer* response;
    grpc::ServerUnaryReactor* reactor;
  };

  void ServeUntil(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      const std::optional<Call> call = calls_.Pop(stop, kIdleWait);
      if (call) Serve(*call);
    }
  }

  void Serve(const Call& call) {
    grpc::Status status;
    try {
      const HttpServerResponse answer = handler_(ToHttp(*call.context, Bytes(*call.request)));
      status = ToGrpc(answer);
      const grpc::Slice body(answer.body);
      if (status.ok()) *call.response = grpc::ByteBuffer(&body, 1);
    } catch (const std::exception& error) {  // out of memory for one call
      Log(LogLevel::kError, "otlp handler threw", {{"error", error.what()}});
      status = {grpc::INTERNAL, "internal error"};
    }
    call.reactor->Finish(status);
  }

  const HttpHandler handler_;
  BoundedQueue<Call> calls_{kMaxCalls};
  int port_ = 0;  // constant after Listen
  std::vector<std::jthread> threads_;
  std::unique_ptr<grpc::Server> server_;
};

OtlpServer::OtlpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
OtlpServer::~OtlpServer() = default;

Result<std::unique_ptr<OtlpServer>> OtlpServer::Create(const std::string& listen,
                                                       const std::optional<HttpServerTls>& tls,
                                                       HttpHandler handler) {
  auto impl = std::make_unique<Impl>(std::move(handler));
  FF_RETURN_IF_ERROR(impl->Listen(listen, tls));
  return std::unique_ptr<OtlpServer>(new OtlpServer(std::move(impl)));
}

uint16_t OtlpServer::port() const {
  return impl_->port();
}

}  // namespace flamefleet::store
