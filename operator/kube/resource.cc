// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/resource.h"

#include "base/http/client.h"

namespace flamefleet {

std::string CollectionPath(const Resource& resource, const std::string& ns) {
  const bool core = resource.api_version.find('/') == std::string_view::npos;
  std::string path = core ? "/api/" : "/apis/";
  path += resource.api_version;
  if (resource.namespaced && !ns.empty()) path += "/namespaces/" + UrlEncode(ns);
  path += '/';
  path += resource.plural;
  return path;
}

std::string ObjectPath(const Resource& resource, const std::string& ns, const std::string& name) {
  return CollectionPath(resource, ns) + "/" + UrlEncode(name);
}

}  // namespace flamefleet
