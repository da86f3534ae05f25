// SPDX-License-Identifier: Apache-2.0
// ClientConfig: where the API server is and how we prove who we are.
//
// Found like every Kubernetes tool finds it: --kubeconfig, $KUBECONFIG (a list of files, of which
// some may be missing; the first mention of a name wins), the service account of the pod,
// ~/.kube/config. A file that names no proxy leaves that to the environment
// (environment_proxy.h); from within a cluster there is none.
//
// Thread: any. Bounds: a file of at most 1 MiB. Errors: kNotFound no configuration anywhere;
// kInvalidArgument a file that is not a kubeconfig, names something that is not in it, or holds
// credentials that cannot be read; kUnimplemented what would change how we connect and that we do
// not serve: auth-provider, impersonation, a plugin that needs a terminal, a proxy that is not
// http://HOST:PORT.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/http/client.h"
#include "base/status.h"
#include "operator/kube/exec_plugin.h"

namespace flamefleet {

struct ClientConfig {
  std::string base_url;     // scheme://host[:port]
  std::string path_prefix;  // of every request, such as "/k8s/clusters/c-1"; usually empty
  std::string proxy_url;    // http://HOST:PORT; empty: none
  HttpTlsOptions tls;
  // Where the parts of `tls` came from, to be read again while we run; empty: they do not change.
  std::string ca_file;
  std::string client_cert_file;
  std::string client_key_file;
  std::string token;       // a bearer token that does not change
  std::string token_file;  // read again while we run; wins over `token`
  std::string username;    // with `password`: basic authentication, when there is no token
  std::string password;
  std::optional<ExecPlugin> exec;
  std::string ns;  // of the context or of our pod; empty: none said
};

// What the search reads from its surroundings, so that a test owns them.
struct ConfigSources {
  std::string kubeconfig_flag;
  std::string context;  // of the kubeconfig; empty: its current one
  std::function<std::optional<std::string>(const std::string& name)> environment;
  std::string service_account_directory = "/var/run/secrets/kubernetes.io/serviceaccount";
};

// The process's environment.
std::optional<std::string> ProcessEnvironment(const std::string& name);

Result<ClientConfig> FindClientConfig(const ConfigSources& sources);

// `context` of the merged files; empty: their current one. kNotFound when none of them is there.
Result<ClientConfig> LoadKubeconfig(const std::vector<std::string>& paths,
                                    const std::string& context = "");

}  // namespace flamefleet
