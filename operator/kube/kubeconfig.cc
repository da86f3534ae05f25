// SPDX-License-Identifier: Apache-2.0
// LoadKubeconfig: the file format, read with yaml-cpp, whose exceptions end here.
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "base/base64.h"
#include "base/fd.h"
#include "operator/kube/client_config.h"

namespace flamefleet {
namespace {

constexpr size_t kMaxFileBytes = 1 << 20;

// A named entry of a kubeconfig and the folder that its relative paths start from.
struct Entry {
  YAML::Node body;
  std::filesystem::path folder;
};

struct MergedFiles {
  std::string current_context;
  std::map<std::string, Entry> contexts;
  std::map<std::string, Entry> clusters;
  std::map<std::string, Entry> users;
};

std::string Text(const YAML::Node& node, const char* key) {
  const YAML::Node value = node[key];
  return value && value.IsScalar() ? value.Scalar() : std::string();
}

Status Collect(const YAML::Node& root, const char* list, const char* body,
               const std::filesystem::path& folder, std::map<std::string, Entry>& into) {
  const YAML::Node items = root[list];
  if (!items || items.IsNull()) return OkStatus();
  if (!items.IsSequence()) return InvalidArgumentError(std::string(list) + " is not a list");
  for (const YAML::Node& item : items) {
    if (!item.IsMap())
      return InvalidArgumentError(std::string(list) + " has an entry without name");
    into.try_emplace(Text(item, "name"), Entry{item[body], folder});  // the first mention wins
  }
  return OkStatus();
}

Status MergeFile(const std::string& path, MergedFiles& merged) {
  FF_ASSIGN_OR_RETURN(const std::string content, ReadFile(path, kMaxFileBytes));
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  try {
    const YAML::Node root = YAML::Load(content);
    if (root.IsNull()) return OkStatus();  // an empty file, as for kubectl
    if (!root.IsMap()) return InvalidArgumentError("not a map");
    if (merged.current_context.empty()) merged.current_context = Text(root, "current-context");
    FF_RETURN_IF_ERROR(Collect(root, "contexts", "context", folder, merged.contexts));
    FF_RETURN_IF_ERROR(Collect(root, "clusters", "cluster", folder, merged.clusters));
    return Collect(root, "users", "user", folder, merged.users);
  } catch (const YAML::Exception& error) {
    return InvalidArgumentError(error.what());
  }
}

// The value of `key`-data, or the content of the file that `key` names, whose path goes to `file`;
// empty when neither is set.
Result<std::string> ReadPem(const Entry& entry, const std::string& key, std::string& file) {
  if (const std::string data = Text(entry.body, (key + "-data").c_str()); !data.empty()) {
    Result<std::string> decoded = DecodeBase64(data);
    if (!decoded.ok()) return Annotate(decoded.status(), "read kubeconfig " + key + "-data");
    return decoded;
  }
  const std::string path = Text(entry.body, key.c_str());
  if (path.empty()) return std::string();
  file = entry.folder / path;
  Result<std::string> content = ReadFile(file, kMaxFileBytes);
  if (!content.ok()) {
    return InvalidArgumentError("read kubeconfig " + key + ": " + ErrorMessage(content.status()));
  }
  return content;
}

Status RefuseUnserved(const YAML::Node& body, const std::string& owner,
                      std::initializer_list<const char*> keys) {
  for (const char* key : keys) {
    if (body[key]) {
      return UnimplementedError("read kubeconfig: " + owner + " uses " + key +
                                ", which is not supported");
    }
  }
  return OkStatus();
}

Status ApplyCluster(const Entry& entry, const std::string& owner, ClientConfig& config) {
  const std::string server = Text(entry.body, "server");
  const size_t scheme = server.find("://");
  if (scheme == std::string::npos) {
    return InvalidArgumentError("read kubeconfig: " + owner + " has no usable server: \"" + server +
                                "\"");
  }
  const size_t path = server.find('/', scheme + 3);
  config.base_url = server.substr(0, path);
  if (path != std::string::npos) config.path_prefix = server.substr(path);
  while (config.path_prefix.ends_with('/'))
    config.path_prefix.pop_back();
  config.tls.server_name = Text(entry.body, "tls-server-name");
  config.tls.insecure_skip_verify = Text(entry.body, "insecure-skip-tls-verify") == "true";
  config.proxy_url = Text(entry.body, "proxy-url");
  if (!config.proxy_url.empty() && !config.proxy_url.starts_with("http://")) {
    return UnimplementedError("read kubeconfig: " + owner + " has proxy-url \"" + config.proxy_url +
                              "\": only http://HOST:PORT is supported");
  }
  FF_ASSIGN_OR_RETURN(config.tls.ca_pem, ReadPem(entry, "certificate-authority", config.ca_file));
  return OkStatus();
}

// What a plugin is told of us and, if it wants, of the cluster.
std::string ExecInfo(const ExecPlugin& plugin, bool cluster_wanted, const ClientConfig& config) {
  nlohmann::json spec = {{"interactive", false}};
  if (cluster_wanted) {
    nlohmann::json cluster = {{"server", config.base_url + config.path_prefix}};
    if (!config.tls.server_name.empty()) cluster["tls-server-name"] = config.tls.server_name;
    if (config.tls.insecure_skip_verify) cluster["insecure-skip-tls-verify"] = true;
    if (!config.tls.ca_pem.empty()) {
      cluster["certificate-authority-data"] = EncodeBase64(config.tls.ca_pem);
    }
    if (!config.proxy_url.empty()) cluster["proxy-url"] = config.proxy_url;
    spec["cluster"] = cluster;
  }
  return nlohmann::json{
      {"kind", "ExecCredential"}, {"apiVersion", plugin.api_version}, {"spec", spec}}
      .dump();
}

Status ApplyExec(const YAML::Node& exec, const std::filesystem::path& folder,
                 const std::string& owner, ClientConfig& config) {
  const std::string where = "read kubeconfig: exec of " + owner;
  if (!exec.IsMap()) return InvalidArgumentError(where + " is not a map");
  ExecPlugin plugin;
  plugin.command = Text(exec, "command");
  if (plugin.command.empty()) return InvalidArgumentError(where + " has no command");
  if (plugin.command.find('/') != std::string::npos) plugin.command = folder / plugin.command;
  for (const YAML::Node& argument : exec["args"])
    plugin.arguments.push_back(argument.as<std::string>());
  for (const YAML::Node& variable : exec["env"])
    plugin.environment.emplace_back(Text(variable, "name"), Text(variable, "value"));
  plugin.api_version = Text(exec, "apiVersion");
  if (plugin.api_version != "client.authentication.k8s.io/v1" &&
      plugin.api_version != "client.authentication.k8s.io/v1beta1") {
    return UnimplementedError(where + " has apiVersion \"" + plugin.api_version +
                              "\": only client.authentication.k8s.io/v1 and v1beta1 are supported");
  }
  if (Text(exec, "interactiveMode") == "Always") {
    return UnimplementedError(where + " needs a terminal (interactiveMode: Always)");
  }
  plugin.install_hint = Text(exec, "installHint");
  plugin.info = ExecInfo(plugin, Text(exec, "provideClusterInfo") == "true", config);
  config.exec = std::move(plugin);
  return OkStatus();
}

// After ApplyCluster.
Status ApplyUser(const Entry& entry, const std::string& owner, ClientConfig& config) {
  FF_RETURN_IF_ERROR(RefuseUnserved(
      entry.body, owner, {"auth-provider", "as", "as-uid", "as-groups", "as-user-extra"}));
  FF_ASSIGN_OR_RETURN(config.tls.client_cert_pem,
                      ReadPem(entry, "client-certificate", config.client_cert_file));
  FF_ASSIGN_OR_RETURN(config.tls.client_key_pem,
                      ReadPem(entry, "client-key", config.client_key_file));
  if (config.tls.client_cert_pem.empty() != config.tls.client_key_pem.empty()) {
    return InvalidArgumentError("read kubeconfig: " + owner +
                                " has only one of client-certificate and client-key");
  }
  config.token = Text(entry.body, "token");
  if (const std::string path = Text(entry.body, "tokenFile"); !path.empty()) {
    config.token_file = entry.folder / path;
  }
  config.username = Text(entry.body, "username");
  config.password = Text(entry.body, "password");
  const YAML::Node exec = entry.body["exec"];
  return exec && !exec.IsNull() ? ApplyExec(exec, entry.folder, owner, config) : OkStatus();
}

Result<const Entry*> Find(const std::map<std::string, Entry>& entries, const std::string& kind,
                          const std::string& name) {
  const auto found = entries.find(name);
  if (found == entries.end() || !found->second.body || !found->second.body.IsMap()) {
    return InvalidArgumentError("read kubeconfig: there is no " + kind + " named \"" + name + "\"");
  }
  return &found->second;
}

Result<ClientConfig> Resolve(const MergedFiles& merged, const std::string& wanted) {
  const std::string& name = wanted.empty() ? merged.current_context : wanted;
  if (name.empty()) {
    return InvalidArgumentError("read kubeconfig: current-context is not set");
  }
  FF_ASSIGN_OR_RETURN(const Entry* context, Find(merged.contexts, "context", name));
  ClientConfig config;
  config.ns = Text(context->body, "namespace");
  const std::string cluster_name = Text(context->body, "cluster");
  FF_ASSIGN_OR_RETURN(const Entry* cluster, Find(merged.clusters, "cluster", cluster_name));
  FF_RETURN_IF_ERROR(ApplyCluster(*cluster, "cluster \"" + cluster_name + "\"", config));
  const std::string user_name = Text(context->body, "user");
  if (!user_name.empty()) {
    FF_ASSIGN_OR_RETURN(const Entry* user, Find(merged.users, "user", user_name));
    FF_RETURN_IF_ERROR(ApplyUser(*user, "user \"" + user_name + "\"", config));
  }
  return config;
}

}  // namespace

Result<ClientConfig> LoadKubeconfig(const std::vector<std::string>& paths,
                                    const std::string& context) {
  MergedFiles merged;
  Status missing = OkStatus();
  size_t found = 0;
  for (const std::string& path : paths) {
    const Status merge = Annotate(MergeFile(path, merged), "read kubeconfig " + path);
    if (!merge.ok() && merge.code() != StatusCode::kNotFound) return merge;
    if (merge.ok()) {
      ++found;
    } else {
      missing = merge;
    }
  }
  if (found == 0) return missing;
  try {
    return Resolve(merged, context);
  } catch (const YAML::Exception& error) {
    return InvalidArgumentError("read kubeconfig: " + std::string(error.what()));
  }
}

}  // namespace flamefleet
