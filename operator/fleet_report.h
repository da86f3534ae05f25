// SPDX-License-Identifier: Apache-2.0
// FleetReport: what the operator knows of its fleet, for the UI of the managed stores. It is what
// the statuses of our kinds say, so that the page and kubectl never differ.
//
//   {"pools": LIST, "backends": LIST, "targets": LIST}, LIST being {"total": N, "items":
//   [{"name", "namespace", "status"}, ...]}: those that are not Ready first, then by name.
//
// Thread: any. Bounds: kMaxReportItems of each list, and kMaxReportBytes: the last ones go. No
// annotation, label or credential of anybody is in it.
#pragma once

#include <cstddef>
#include <string>

#include "operator/cache/cluster_cache.h"

namespace flamefleet {

inline constexpr size_t kMaxReportItems = 200;
inline constexpr size_t kMaxReportBytes = 1 << 20;

std::string FleetReport(const ClusterCache& cache);

}  // namespace flamefleet
