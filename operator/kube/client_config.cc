// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/client_config.h"

#include <cstdlib>
#include <sstream>

#include "base/fd.h"
#include "operator/kube/environment_proxy.h"

namespace flamefleet {
namespace {

constexpr size_t kMaxFileBytes = 1 << 20;

std::vector<std::string> SplitPathList(const std::string& list) {
  std::vector<std::string> paths;
  std::istringstream stream(list);
  for (std::string path; std::getline(stream, path, ':');) {
    if (!path.empty()) paths.push_back(path);
  }
  return paths;
}

Result<ClientConfig> LoadServiceAccount(const std::string& directory, const std::string& host,
                                        const std::string& port) {
  // cpprestsdk cannot connect to a literal IPv6 address; this name leads to the same one.
  const bool ipv6 = host.find(':') != std::string::npos;
  ClientConfig config;
  config.base_url = "https://" + (ipv6 ? "kubernetes.default.svc" : host) + ":" + port;
  config.token_file = directory + "/token";
  config.ca_file = directory + "/ca.crt";
  FF_ASSIGN_OR_RETURN(config.tls.ca_pem, ReadFile(config.ca_file, kMaxFileBytes));
  FF_ASSIGN_OR_RETURN(config.ns, ReadFile(directory + "/namespace", kMaxFileBytes));
  return config;
}

// What a file does not say of the proxy the environment may.
Result<ClientConfig> Load(const std::vector<std::string>& paths, const ConfigSources& sources) {
  FF_ASSIGN_OR_RETURN(ClientConfig config, LoadKubeconfig(paths, sources.context));
  if (!config.proxy_url.empty()) return config;
  FF_ASSIGN_OR_RETURN(config.proxy_url, ProxyOfEnvironment(config.base_url, sources.environment));
  return config;
}

}  // namespace

std::optional<std::string> ProcessEnvironment(const std::string& name) {
  const char* value = std::getenv(name.c_str());  // NOLINT(concurrency-mt-unsafe): read at start
  if (value == nullptr) return std::nullopt;
  return value;
}

Result<ClientConfig> FindClientConfig(const ConfigSources& sources) {
  if (!sources.kubeconfig_flag.empty()) return Load({sources.kubeconfig_flag}, sources);
  const auto listed = SplitPathList(sources.environment("KUBECONFIG").value_or(""));
  if (!listed.empty()) return Load(listed, sources);

  const auto host = sources.environment("KUBERNETES_SERVICE_HOST");
  const auto port = sources.environment("KUBERNETES_SERVICE_PORT");
  if (host && port && sources.context.empty())
    return LoadServiceAccount(sources.service_account_directory, *host, *port);

  if (const auto home = sources.environment("HOME")) {
    const std::string path = *home + "/.kube/config";
    Result<ClientConfig> config = Load({path}, sources);
    if (config.ok() || config.status().code() != StatusCode::kNotFound) return config;
  }
  return NotFoundError(
      "find an API server: not in a cluster, and neither --kubeconfig nor $KUBECONFIG nor "
      "~/.kube/config is there");
}

}  // namespace flamefleet
