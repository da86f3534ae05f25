// SPDX-License-Identifier: Apache-2.0
// Names and addresses of what the operator makes. Deterministic, so that nothing must be
// remembered.
#pragma once

#include <string>
#include <vector>

namespace flamefleet::plan {

// Of a managed store. TLS, with credentials:
inline constexpr int kStoreTlsPort = 4443;
// Plain HTTP on the loopback of its pod: reached by `kubectl port-forward` alone, reads only.
inline constexpr int kStorePort = 4040;
// Plain HTTP, probes and metrics only.
inline constexpr int kStoreHttpPort = 9090;
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
  return "https://" + StoreName(backend) + "." + ns + ".svc:" + std::to_string(kStoreTlsPort);
}

// What clients call a Service of ours; its certificate is for these.
inline std::vector<std::string> ServiceNames(const std::string& service, const std::string& ns) {
  const std::string name = service + "." + ns;
  return {name + ".svc", name + ".svc.cluster.local", name};
}

// Where agents find the operator: the Service of config/manager.
inline std::string OperatorAddress(const std::string& ns) {
  return "flamefleet-operator." + ns + ".svc:" + std::to_string(kOperatorAgentsPort);
}

inline std::vector<std::string> OperatorNames(const std::string& ns) {
  return ServiceNames("flamefleet-operator", ns);
}

// The account of the agents; no role names it.
inline constexpr const char* kAgentServiceAccount = "flamefleet-agent";

// The audience of the agents' tokens: one made for something else opens nothing at the operator,
// and one of theirs opens nothing elsewhere.
inline constexpr const char* kTokenAudience = "flamefleet-operator";

// The Secret with the keys of the operator's channel to the agents.
inline constexpr const char* kTlsSecret = "flamefleet-operator-tls";

// The Secret with what all managed stores serve and check with. Each mounts its own keys, which are
// BACKEND.crt and so on; names of backends have no dot.
inline constexpr const char* kStoreSecret = "flamefleet-stores";
inline constexpr const char* kStoreTrustKey = "trust";  // the authorities of its certificates

inline std::string StoreKey(const std::string& backend, const char* what) {
  return backend + "." + what;
}
inline constexpr const char* kStoreCertificate = "crt";
inline constexpr const char* kStoreCertificateKey = "key";
inline constexpr const char* kStoreAuth = "auth";    // its --auth-file
inline constexpr const char* kStoreToken = "token";  // with which agents write

// The Secret with which people read from a managed store: username and password.
inline std::string StoreReaderSecret(const std::string& backend) {
  return StoreName(backend) + "-reader";
}

// The ConfigMap with the authorities that agents trust, and its key.
inline constexpr const char* kTrustConfigMap = "flamefleet-operator-trust";
inline constexpr const char* kTrustKey = "ca.crt";

}  // namespace flamefleet::plan
