// SPDX-License-Identifier: Apache-2.0
// RunExecPlugin: asks a program for credentials, as kubeconfig's `exec` describes.
//
// The program gets our environment, its own variables and KUBERNETES_EXEC_INFO, no stdin, our
// stderr; its stdout is an ExecCredential.
//
// Thread: any; blocks. Bounds: kExecTimeout, then it is killed; kMaxOutputBytes of output.
// Errors: kUnavailable it cannot be started (with the install hint), fails, is late or is killed;
// kInvalidArgument its answer is no credential.
// Source:
// https://kubernetes.io/docs/reference/access-authn-authz/authentication/#client-go-credential-plugins
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"

namespace flamefleet {

struct ExecPlugin {
  std::string command;  // looked up in PATH unless it has a slash
  std::vector<std::string> arguments;
  std::vector<std::pair<std::string, std::string>> environment;
  std::string api_version;  // of the ExecCredential
  std::string info;         // KUBERNETES_EXEC_INFO
  std::string install_hint;
};

struct ExecCredential {
  std::string token;
  std::string client_cert_pem;  // both or none
  std::string client_key_pem;
  int64_t expires_ns = 0;  // wall clock; 0: never
};

inline constexpr std::chrono::seconds kExecTimeout{60};
inline constexpr size_t kMaxExecOutputBytes = 1 << 20;

Result<ExecCredential> RunExecPlugin(const ExecPlugin& plugin,
                                     std::chrono::milliseconds timeout = kExecTimeout);

}  // namespace flamefleet
