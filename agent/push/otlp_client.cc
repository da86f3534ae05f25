// SPDX-License-Identifier: Apache-2.0
#include "agent/push/otlp_client.h"

#include <grpcpp/grpcpp.h>

#include <optional>
#include <string>

#include "agent/push/grpc_client.h"
#include "agent/push/otlp_request.h"
#include "proto/otlp/profiles.grpc.pb.h"

namespace flamefleet::agent {
namespace {

namespace pb = opentelemetry::proto::collector::profiles::v1development;

// A receiver takes a request without it for one of version 1, and refuses another one.
constexpr char kVersionHeader[] = "otlp-profiles-development-version";
constexpr char kVersion[] = "1";

std::optional<Status> Export(const std::shared_ptr<grpc::Channel>& channel,
                             grpc::ClientContext* context, const std::string& body) {
  const std::optional<pb::ExportProfilesServiceRequest> request = ToOtlp(body);
  if (!request) return std::nullopt;
  pb::ExportProfilesServiceResponse response;
  const grpc::Status answer =
      pb::ProfilesService::NewStub(channel)->Export(context, *request, &response);
  // Its profiles are one of ours: to try again is of no use.
  if (answer.ok() && response.partial_success().rejected_profiles() > 0)
    return InvalidArgumentError(response.partial_success().error_message());
  return Status(static_cast<StatusCode>(answer.error_code()), answer.error_message());
}

}  // namespace

Result<std::shared_ptr<const PushClient>> CreateOtlpClient(const BackendConfig& config,
                                                           std::chrono::milliseconds timeout) {
  return CreateGrpcClient(config, {.call = Export, .headers = {{kVersionHeader, kVersion}}},
                          timeout);
}

}  // namespace flamefleet::agent
