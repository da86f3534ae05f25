// SPDX-License-Identifier: Apache-2.0
#include "agent/push/grpc_client.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/security/tls_certificate_verifier.h>
#include <grpcpp/security/tls_credentials_options.h>

#include <algorithm>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/http/url.h"
#include "base/mutex.h"
#include "base/reasons.h"

namespace flamefleet::agent {
namespace {

struct Endpoint {
  bool tls = false;
  std::string target;  // HOST:PORT
};

Result<Endpoint> ParseEndpoint(const std::string& url) {
  Endpoint endpoint;
  std::string_view rest = url;
  for (const auto& [scheme, tls, port] :
       {std::tuple("http://", false, 80), std::tuple("https://", true, 443)}) {
    if (!rest.starts_with(scheme)) continue;
    rest.remove_prefix(std::string_view(scheme).size());
    while (rest.ends_with('/'))
      rest.remove_suffix(1);
    endpoint.tls = tls;
    endpoint.target = rest;
    if (rest.find(':') == std::string_view::npos) endpoint.target += ":" + std::to_string(port);
    break;
  }
  const Result<HostPort> address = ParseHostPort(endpoint.target);
  if (!address.ok() || address->host.empty())
    return InvalidArgumentError("endpoint " + url +
                                ": want http://HOST:PORT or https://HOST:PORT, without a path");
  return endpoint;
}

std::shared_ptr<grpc::ChannelCredentials> Credentials(const BackendConfig& config, bool tls) {
  if (!tls) return grpc::InsecureChannelCredentials();
  if (!config.insecure_skip_verify) {
    grpc::SslCredentialsOptions options;
    options.pem_root_certs = config.ca_pem;
    return grpc::SslCredentials(options);
  }
  grpc::experimental::TlsChannelCredentialsOptions options;
  options.set_verify_server_certs(false);
  options.set_check_call_host(false);
  options.set_certificate_verifier(std::make_shared<grpc::experimental::NoOpCertificateVerifier>());
  return grpc::experimental::TlsCredentials(options);
}

// gRPC aborts on what may not be in a header.
bool IsHeaderValue(std::string_view text) {
  return std::ranges::all_of(text, [](unsigned char c) { return c >= 0x20 && c < 0x7f; });
}

class GrpcClient final : public PushClient {
 public:
  GrpcClient(std::string target, std::shared_ptr<grpc::ChannelCredentials> credentials,
             const BackendConfig& config, GrpcProtocol protocol, std::chrono::milliseconds timeout)
      : target_(std::move(target)),
        credentials_(std::move(credentials)),
        server_name_(config.server_name),
        call_(std::move(protocol.call)),
        timeout_(timeout),
        headers_(std::move(protocol.headers)) {
    if (!config.authorization.empty()) headers_["authorization"] = config.authorization;
    if (!config.tenant_id.empty()) headers_["x-scope-orgid"] = config.tenant_id;
  }

  Outcome Push(const SpooledProfile& profile, const std::stop_token& stop) const override {
    const std::shared_ptr<grpc::Channel> channel = Channel();
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + timeout_);
    for (const auto& [name, value] : headers_)
      context.AddMetadata(name, value);
    const std::stop_callback cancel(stop, [&context] { context.TryCancel(); });
    const std::optional<Status> answer = call_(channel, &context, profile.body);
    if (!answer)
      return {.kind = Outcome::Kind::kDrop,
              .reason = reasons::kSpoolDamaged,
              .message = "what the spool kept is no push"};
    const StatusCode code = answer->code();
    if (code == StatusCode::kUnavailable || code == StatusCode::kDeadlineExceeded) GiveUp(channel);
    return JudgeCall(*answer, {profile.errors, profile.raw_bytes});
  }

 private:
  std::shared_ptr<grpc::Channel> Channel() const {
    const MutexLock lock(&mutex_);
    if (channel_ == nullptr) {
      grpc::ChannelArguments arguments;
      arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
      arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
      if (!server_name_.empty()) arguments.SetSslTargetNameOverride(server_name_);
      channel_ = grpc::CreateCustomChannel(target_, credentials_, arguments);
    }
    return channel_;
  }
  void GiveUp(const std::shared_ptr<grpc::Channel>& channel) const {
    const MutexLock lock(&mutex_);
    if (channel_ == channel) channel_ = nullptr;
  }

  const std::string target_;
  const std::shared_ptr<grpc::ChannelCredentials> credentials_;
  const std::string server_name_;
  const GrpcCall call_;
  const std::chrono::milliseconds timeout_;
  std::map<std::string, std::string> headers_;  // constant after construction

  mutable Mutex mutex_;
  mutable std::shared_ptr<grpc::Channel> channel_ FF_GUARDED_BY(mutex_);  // null: none is open
};

}  // namespace

Result<std::shared_ptr<const PushClient>> CreateGrpcClient(const BackendConfig& config,
                                                           GrpcProtocol protocol,
                                                           std::chrono::milliseconds timeout) {
  FF_ASSIGN_OR_RETURN(Endpoint endpoint, ParseEndpoint(config.endpoint));
  if (!IsHeaderValue(config.authorization) || !IsHeaderValue(config.tenant_id))
    return InvalidArgumentError("endpoint " + config.endpoint +
                                ": the credentials have bytes that no header may have");
  return std::shared_ptr<const PushClient>(
      std::make_shared<GrpcClient>(std::move(endpoint.target), Credentials(config, endpoint.tls),
                                   config, std::move(protocol), timeout));
}

}  // namespace flamefleet::agent
