// SPDX-License-Identifier: Apache-2.0
// ParcaServer: the call WriteRaw on a real gRPC server. See RecordingServer.
#pragma once

#include "proto/parca/profilestore.grpc.pb.h"
#include "tests/support/recording_server.h"

namespace flamefleet {

class ParcaServer final
    : public RecordingServer<parca::profilestore::v1alpha1::ProfileStoreService::Service,
                             parca::profilestore::v1alpha1::WriteRawRequest> {
 public:
  using RecordingServer::RecordingServer;

  grpc::Status WriteRaw(grpc::ServerContext* context,
                        const parca::profilestore::v1alpha1::WriteRawRequest* request,
                        parca::profilestore::v1alpha1::WriteRawResponse*) override {
    return Take(context, *request);
  }
};

}  // namespace flamefleet
