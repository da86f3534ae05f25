// SPDX-License-Identifier: Apache-2.0
// Names and addresses of what the operator makes. Deterministic, so that nothing must be
// remembered.
#pragma once

#include <string>

namespace flamefleet::plan {

inline constexpr int kStorePort = 4040;
inline constexpr int kAgentHttpPort = 9090;
inline constexpr int kOperatorAgentsPort = 9443;

inline std::string AgentDaemonSetName(const std::string& pool) {
  return "flamefleet-agent-" + pool;
}

// Of the Deployment and of the Service.
inline std::string StoreName(const std::string& backend) {
  return "flamefleet-store-" + backend;
}

inline std::string StoreEndpoint(const std::string& backend, const std::string& ns) {
  return "http://" + StoreName(backend) + "." + ns + ".svc:" + std::to_string(kStorePort);
}

// Where agents find the operator: the Service of config/manager.
inline std::string OperatorAddress(const std::string& ns) {
  return "flamefleet-operator." + ns + ".svc:" + std::to_string(kOperatorAgentsPort);
}

}  // namespace flamefleet::plan
