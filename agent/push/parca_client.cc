// SPDX-License-Identifier: Apache-2.0
#include "agent/push/parca_client.h"

#include <grpcpp/grpcpp.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "agent/push/grpc_client.h"
#include "proto/parca/profilestore.grpc.pb.h"
#include "proto/pyroscope/push.pb.h"

namespace flamefleet::agent {
namespace {

namespace parca = ::parca::profilestore::v1alpha1;

// Of Pyroscope alone.
constexpr std::string_view kDeltaLabel = "__delta__";

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

std::optional<Status> WriteRaw(const std::shared_ptr<grpc::Channel>& channel,
                               grpc::ClientContext* context, const std::string& body) {
  const std::optional<parca::WriteRawRequest> request = ToWriteRaw(body);
  if (!request) return std::nullopt;
  parca::WriteRawResponse response;
  const grpc::Status answer =
      parca::ProfileStoreService::NewStub(channel)->WriteRaw(context, *request, &response);
  return Status(static_cast<StatusCode>(answer.error_code()), answer.error_message());
}

}  // namespace

Result<std::shared_ptr<const PushClient>> CreateParcaClient(const BackendConfig& config,
                                                            std::chrono::milliseconds timeout) {
  return CreateGrpcClient(config, {.call = WriteRaw}, timeout);
}

}  // namespace flamefleet::agent
