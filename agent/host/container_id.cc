// SPDX-License-Identifier: Apache-2.0
#include "agent/host/container_id.h"

#include <algorithm>

namespace flamefleet::agent {
namespace {

bool IsHex(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

bool AllHex(std::string_view text) {
  return std::all_of(text.begin(), text.end(), IsHex);
}

// A pod's UID: 8-4-4-4-12 with '-' (cgroupfs) or '_' (systemd), or 32 digits without (static pods:
// hash of the manifest).
bool IsPodUid(std::string_view text) {
  constexpr size_t kUuid = 36;
  constexpr size_t kHash = 32;
  if (text.size() == kHash) return AllHex(text);
  if (text.size() != kUuid) return false;
  for (size_t i = 0; i < kUuid; ++i) {
    const bool dash = i == 8 || i == 13 || i == 18 || i == 23;
    if (dash ? text[i] != '-' && text[i] != '_' : !IsHex(text[i])) return false;
  }
  return true;
}

void StripSuffix(std::string_view suffix, std::string_view* text) {
  if (text->ends_with(suffix)) text->remove_suffix(suffix.size());
}

// Of "pod<uid>" or "kubepods-burstable-pod<uid>.slice"; "" of others.
std::string_view PodUid(std::string_view component) {
  StripSuffix(".slice", &component);
  const size_t at = component.rfind("pod");
  if (at == std::string_view::npos) return {};
  if (at != 0 && component[at - 1] != '-') return {};
  component.remove_prefix(at + 3);
  return IsPodUid(component) ? component : std::string_view();
}

bool IsPod(std::string_view component) {
  return !PodUid(component).empty();
}

// "<id>", "cri-containerd-<id>.scope", "docker-<id>.scope",
// "kubelet-...-pod<uid>.slice:cri-containerd:<id>"; not the monitor processes of CRI-O and podman.
std::string_view ContainerId(std::string_view component) {
  if (component.find("conmon-") != std::string_view::npos) return {};
  StripSuffix(".scope", &component);
  if (const size_t at = component.find_last_of("-:"); at != std::string_view::npos)
    component.remove_prefix(at + 1);
  return component.size() == kContainerIdLength && AllHex(component) ? component
                                                                     : std::string_view();
}

std::vector<std::string_view> Split(std::string_view path) {
  std::vector<std::string_view> components;
  while (!path.empty()) {
    const size_t end = std::min(path.find('/'), path.size());
    if (end > 0) components.push_back(path.substr(0, end));
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return components;
}

}  // namespace

std::vector<std::string> ContainerIdsOfCgroup(std::string_view path) {
  if (!path.starts_with('/')) return {};
  const std::vector<std::string_view> components = Split(path);
  std::vector<std::string> ids;
  bool has_pod = false;
  for (size_t i = 0; i < components.size(); ++i) {
    if (!IsPod(components[i])) continue;
    has_pod = true;
    if (i + 1 == components.size()) continue;
    if (const std::string_view id = ContainerId(components[i + 1]); !id.empty())
      ids.emplace_back(id);
  }
  if (has_pod) return ids;
  for (size_t i = components.size(); i-- > 0;) {
    if (const std::string_view id = ContainerId(components[i]); !id.empty()) {
      ids.emplace_back(id);
      break;
    }
  }
  return ids;
}

std::string PodUidOfCgroup(std::string_view path) {
  for (const std::string_view component : Split(path)) {
    std::string uid(PodUid(component));
    if (uid.empty()) continue;
    std::ranges::replace(uid, '_', '-');
    return uid;
  }
  return "";
}

bool IsHostCgroup(std::string_view path) {
  if (!path.starts_with('/') || !ContainerIdsOfCgroup(path).empty()) return false;
  return std::ranges::none_of(Split(path), [](std::string_view component) {
    return component.starts_with("kubepods") || IsPod(component);
  });
}

std::string ServiceOfCgroup(std::string_view path) {
  for (const std::string_view component : Split(path)) {
    if (component.ends_with(".service")) return std::string(component);
  }
  return "";
}

}  // namespace flamefleet::agent
