// SPDX-License-Identifier: Apache-2.0
#include "agent/push/parca_client.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/security/tls_certificate_verifier.h>
#include <grpcpp/security/tls_credentials_options.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/http/url.h"
#include "base/mutex.h"
#include "base/reasons.h"
#include "proto/parca/profilestore.grpc.pb.h"
#include "proto/pyroscope/push.pb.h"

namespace flamefleet::agent {
namespace {

namespace parca = ::parca::profilestore::v1alpha1;

// Of Pyroscope alone.
constexpr std::string_view kDeltaLabel = "__delta__";

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

// From the form that the spool keeps; empty when it is damaged.
std::optional<parca::WriteRawRequest> ToWriteRaw(const std::string& body) {
  pyroscope::PushRequest push;
  if (!push.ParseFromString(body)) return std::nullopt;
  parca::WriteRawRequest request;
  for (pyroscope::RawProfileSeries& series : *push.mutable_series()) {
    parca::RawProfileSeries* const out = request.add_series();
    for (pyroscope::LabelPair& label : *series.mutable_labels()) {
      if (label.name() == kDeltaLabel) continue;
      parca::Label* const pair = out->mutable_labels()->add_labels();
      pair->set_name(std::move(*label.mutable_name()));
      pair->set_value(std::move(*label.mutable_value()));
    }
    for (pyroscope::RawSample& sample : *series.mutable_samples())
      out->add_samples()->set_raw_profile(std::move(*sample.mutable_raw_profile()));
  }
  return request;
}

class ParcaClient final : public PushClient {
 public:
  ParcaClient(std::string target, std::shared_ptr<grpc::ChannelCredentials> credentials,
              const BackendConfig& config, std::chrono::milliseconds timeout)
      : target_(std::move(target)),
        credentials_(std::move(credentials)),
        server_name_(config.server_name),
        timeout_(timeout) {
    if (!config.authorization.empty()) headers_["authorization"] = config.authorization;
    if (!config.tenant_id.empty()) headers_["x-scope-orgid"] = config.tenant_id;
  }

  Outcome Push(const SpooledProfile& profile, const std::stop_token& stop) const override {
    const std::optional<parca::WriteRawRequest> request = ToWriteRaw(profile.body);
    if (!request)
      return {.kind = Outcome::Kind::kDrop,
              .reason = reasons::kSpoolDamaged,
              .message = "what the spool kept is no push"};
    const std::shared_ptr<grpc::Channel> channel = Channel();
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + timeout_);
    for (const auto& [name, value] : headers_)
      context.AddMetadata(name, value);
    const std::stop_callback cancel(stop, [&context] { context.TryCancel(); });
    parca::WriteRawResponse response;
    const grpc::Status answer =
        parca::ProfileStoreService::NewStub(channel)->WriteRaw(&context, *request, &response);
    const auto code = static_cast<StatusCode>(answer.error_code());
    if (code == StatusCode::kUnavailable || code == StatusCode::kDeadlineExceeded) GiveUp(channel);
    return JudgeCall(Status(code, answer.error_message()), {profile.errors, profile.raw_bytes});
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
  const std::chrono::milliseconds timeout_;
  std::map<std::string, std::string> headers_;  // constant after construction

  mutable Mutex mutex_;
  mutable std::shared_ptr<grpc::Channel> channel_ FF_GUARDED_BY(mutex_);  // null: none is open
};

}  // namespace

Result<std::shared_ptr<const PushClient>> CreateParcaClient(const BackendConfig& config,
                                                            std::chrono::milliseconds timeout) {
  FF_ASSIGN_OR_RETURN(Endpoint endpoint, ParseEndpoint(config.endpoint));
  if (!IsHeaderValue(config.authorization) || !IsHeaderValue(config.tenant_id))
    return InvalidArgumentError("endpoint " + config.endpoint +
                                ": the credentials have bytes that no header may have");
  return std::shared_ptr<const PushClient>(std::make_shared<ParcaClient>(
      std::move(endpoint.target), Credentials(config, endpoint.tls), config, timeout));
}

}  // namespace flamefleet::agent
