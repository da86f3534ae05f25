// SPDX-License-Identifier: Apache-2.0
#include "agent/push/push_client.h"

#include "agent/push/otlp_client.h"
#include "agent/push/parca_client.h"
#include "agent/push/pyroscope_client.h"

namespace flamefleet::agent {

Result<std::shared_ptr<const PushClient>> PushClient::Create(const BackendConfig& config,
                                                             std::chrono::milliseconds timeout) {
  switch (config.protocol) {
    case BackendProtocol::kPyroscope:
      return CreatePyroscopeClient(config, timeout);
    case BackendProtocol::kParca:
      return CreateParcaClient(config, timeout);
    case BackendProtocol::kOtlp:
      return CreateOtlpClient(config, timeout);
  }
  return InternalError("create a client: unknown protocol");
}

}  // namespace flamefleet::agent
