// SPDX-License-Identifier: Apache-2.0
// OtlpServer: the call Export of OTLP profiles on a real gRPC server. See RecordingServer.
#pragma once

#include "proto/otlp/profiles.grpc.pb.h"
#include "tests/support/recording_server.h"

namespace flamefleet {

namespace otlp_proto = opentelemetry::proto::collector::profiles::v1development;

class OtlpServer final : public RecordingServer<otlp_proto::ProfilesService::Service,
                                                otlp_proto::ExportProfilesServiceRequest> {
 public:
  using RecordingServer::RecordingServer;

  grpc::Status Export(grpc::ServerContext* context,
                      const otlp_proto::ExportProfilesServiceRequest* request,
                      otlp_proto::ExportProfilesServiceResponse* response) override {
    if (!rejects.empty()) {
      response->mutable_partial_success()->set_rejected_profiles(1);
      response->mutable_partial_success()->set_error_message(rejects);
    }
    return Take(context, *request);
  }

  std::string rejects;  // why it says that it took no profile; set before the first call
};

}  // namespace flamefleet
