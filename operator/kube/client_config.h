// SPDX-License-Identifier: Apache-2.0
// ClientConfig: where the API server is and how we prove who we are.
//
// Found like every Kubernetes tool finds it: --kubeconfig, $KUBECONFIG (a list of files, the first
// mention of a name wins), the service account of the pod, ~/.kube/config.
//
// Thread: any. Bounds: a file of at most 1 MiB. Errors: kNotFound no configuration anywhere;
// kInvalidArgument a file that is not a kubeconfig, names something that is not in it, or holds
// credentials that cannot be read; kUnimplemented a key that would change how we connect and that
// we do not serve (exec, auth-provider, username, impersonation, proxy-url).
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/http/client.h"
#include "base/status.h"

namespace flamefleet {

struct ClientConfig {
  std::string base_url;     // scheme://host[:port]
  std::string path_prefix;  // of every request, such as "/k8s/clusters/c-1"; usually empty
  HttpTlsOptions tls;
  std::string token;       // a bearer token that does not change
  std::string token_file;  // read again while we run; wins over `token`
  std::string ns;          // of the context or of our pod; empty: none said
};

// What the search reads from its surroundings, so that a test owns them.
struct ConfigSources {
  std::string kubeconfig_flag;
  std::function<std::optional<std::string>(const std::string& name)> environment;
  std::string service_account_directory = "/var/run/secrets/kubernetes.io/serviceaccount";
};

// The process's environment.
std::optional<std::string> ProcessEnvironment(const std::string& name);

Result<ClientConfig> FindClientConfig(const ConfigSources& sources);

// The current context of the merged files.
Result<ClientConfig> LoadKubeconfig(const std::vector<std::string>& paths);

}  // namespace flamefleet
