// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>

#include "agent/host/container_id.h"
#include "base/status.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view path(reinterpret_cast<const char*>(data), size);
  for (const std::string& id : flamefleet::agent::ContainerIdsOfCgroup(path)) {
    FF_CHECK(id.size() == flamefleet::agent::kContainerIdLength);
    FF_CHECK(path.find(id) != std::string_view::npos);
  }
  const std::string service = flamefleet::agent::ServiceOfCgroup(path);
  FF_CHECK(service.empty() ||
           (service.ends_with(".service") && service.find('/') == std::string::npos &&
            path.find(service) != std::string_view::npos));
  // What is in a container or pod is never taken for the host.
  if (flamefleet::agent::IsHostCgroup(path)) {
    FF_CHECK(flamefleet::agent::ContainerIdsOfCgroup(path).empty());
    FF_CHECK(flamefleet::agent::PodUidOfCgroup(path).empty());
  }
  return 0;
}
