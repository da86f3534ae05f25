// SPDX-License-Identifier: Apache-2.0
// PackedPod: an api::Pod as the cache keeps it: what pods of a workload share is in a TextPool, the
// rest is one string. About 500 bytes with all that finds it (tests/bench/pod_cache).
//
// Thread: none of its own; as TextPool. Errors: none; Unpack(Pack(pod)) == pod.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "operator/api/pod.h"
#include "operator/cache/text_pool.h"

namespace flamefleet {

struct PackedPod {
  // Shared.
  TextPool::Text ns;
  TextPool::Text node;
  TextPool::Text workload;  // its kind and name
  TextPool::Text labels;
  TextPool::Text annotations;
  TextPool::Text containers;  // what their specification says
  // Its own. The name comes first in `own`: see NameOf.
  std::string own;
  int64_t creation_ns = 0;
  int64_t generation = 0;
  api::PodPhase phase = api::PodPhase::kUnknown;
  bool ready = false;
  bool deleting = false;

  std::string_view Name() const;
  friend bool operator==(const PackedPod&, const PackedPod&) = default;
};

PackedPod Pack(const api::Pod& pod, TextPool& pool);
// resource_version is empty: nobody reads that of a pod, and without it an update that changes
// nothing we read is no change.
api::Pod Unpack(const PackedPod& packed);

}  // namespace flamefleet
