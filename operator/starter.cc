// SPDX-License-Identifier: Apache-2.0
#include "operator/starter.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "base/fd.h"
#include "base/log.h"
#include "base/thread.h"

namespace flamefleet {
namespace {

constexpr size_t kMaxManifestBytes = 1 << 20;
constexpr const char* kStarterFieldManager = "flamefleet-starter";
// How often we look whether the kinds are there.
constexpr std::chrono::seconds kKindsInterval{1};

struct Manifest {
  Resource resource;
  std::string name;
  std::string text;  // YAML, as the API server takes it
};

Result<Manifest> ParseManifest(std::string text) {
  try {
    const YAML::Node object = YAML::Load(text);
    if (!object.IsMap()) return InvalidArgumentError("not a manifest");
    const auto kind = object["kind"].as<std::string>("");
    for (const Resource& resource : {kAgentPools, kProfilingBackends}) {
      if (kind != resource.kind) continue;
      if (!object["metadata"].IsMap()) return InvalidArgumentError("without metadata");
      return Manifest{resource, object["metadata"]["name"].as<std::string>(""), std::move(text)};
    }
    return InvalidArgumentError("kind \"" + kind + "\" is neither AgentPool nor ProfilingBackend");
  } catch (const YAML::Exception& error) {
    return InvalidArgumentError(error.what());
  }
}

Result<std::vector<Manifest>> ReadManifests(const std::string& folder) {
  std::error_code error;
  std::vector<std::string> paths;
  for (const auto& file : std::filesystem::directory_iterator(folder, error)) {
    if (file.path().extension() == ".yaml") paths.push_back(file.path());
  }
  if (error) return ErrnoError(error.value(), "read folder " + folder);
  std::ranges::sort(paths);
  std::vector<Manifest> manifests;
  for (const std::string& path : paths) {
    FF_ASSIGN_OR_RETURN(std::string text, ReadFile(path, kMaxManifestBytes));
    Result<Manifest> manifest = ParseManifest(std::move(text));
    if (!manifest.ok()) return Annotate(manifest.status(), "read " + path);
    manifests.push_back(*std::move(manifest));
  }
  return manifests;
}

// kNotFound: the kind is not there yet.
Status CreateOne(RestClient& client, const Manifest& manifest, const std::stop_token& stop) {
  const Status found = client.Get(manifest.resource, "", manifest.name, stop).status();
  if (found.code() != StatusCode::kNotFound) {
    if (found.ok()) {
      Log(LogLevel::kInfo, "left as it is",
          {{"kind", manifest.resource.kind}, {"name", manifest.name}});
    }
    return found;
  }
  FF_RETURN_IF_ERROR(client
                         .Apply({manifest.resource, "", manifest.name, kStarterFieldManager,
                                 manifest.text, /*status=*/false},
                                stop)
                         .status());
  Log(LogLevel::kInfo, "created", {{"kind", manifest.resource.kind}, {"name", manifest.name}});
  return OkStatus();
}

}  // namespace

Status CreateMissing(RestClient& client, const std::string& folder, const Clock& clock,
                     const std::stop_token& stop) {
  FF_ASSIGN_OR_RETURN(const std::vector<Manifest> manifests, ReadManifests(folder));
  const int64_t deadline_ns =
      clock.MonotonicNanos() + std::chrono::nanoseconds(kKindsTimeout).count();
  for (const Manifest& manifest : manifests) {
    while (true) {
      const Status created = CreateOne(client, manifest, stop);
      if (created.ok()) break;
      if (created.code() != StatusCode::kNotFound) return created;
      if (clock.MonotonicNanos() > deadline_ns) {
        return DeadlineExceededError(ErrorMessage(created) + "; are the CRDs installed?");
      }
      if (WaitForStop(stop, kKindsInterval)) return CancelledError("create missing: stopped");
    }
  }
  return OkStatus();
}

}  // namespace flamefleet
