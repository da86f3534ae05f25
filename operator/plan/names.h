// SPDX-License-Identifier: Apache-2.0
// Names and addresses of what the operator makes. Deterministic, so that nothing must be
// remembered.
#pragma once

#include <string>
#include <vector>

namespace flamefleet::plan {

inline constexpr int kStorePort = 4040;
inline constexpr int kAgentHttpPort = 9090;
inline constexpr int kOperatorAgentsPort = 9443;

inline std::string AgentDaemonSetName(const std::string& pool) {
  return "flamefleet-agent-" + pool;
}

// Of the Deployment or StatefulSet and of the Service.
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

// What agents call the operator; its certificate is for these.
inline std::vector<std::string> OperatorNames(const std::string& ns) {
  const std::string name = "flamefleet-operator." + ns;
  return {name + ".svc", name + ".svc.cluster.local", name};
}

// The account of the agents; no role names it.
inline constexpr const char* kAgentServiceAccount = "flamefleet-agent";

// The audience of the agents' tokens: one made for something else opens nothing at the operator,
// and one of theirs opens nothing elsewhere.
inline constexpr const char* kTokenAudience = "flamefleet-operator";

// The Secret with the keys of the operator's channel to the agents.
inline constexpr const char* kTlsSecret = "flamefleet-operator-tls";

// The ConfigMap with the authorities that agents trust, and its key.
inline constexpr const char* kTrustConfigMap = "flamefleet-operator-trust";
inline constexpr const char* kTrustKey = "ca.crt";

}  // namespace flamefleet::plan
