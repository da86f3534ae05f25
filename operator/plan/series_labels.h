// SPDX-License-Identifier: Apache-2.0
// SeriesLabels: the labels of all series of one pod, but for the container.
#pragma once

#include <string>

#include "operator/api/pod.h"
#include "operator/api/profiling_target.h"
#include "operator/plan/annotations.h"

namespace flamefleet::plan {

// service_name (empty: nothing names it), namespace, pod and node; what annotations add; of the
// target (nullptr: none) labels and podLabels, the latter winning. The first four are never
// overridden.
api::StringMap SeriesLabels(const api::Pod& pod, const api::ProfilingTarget* target,
                            const FamilyAnnotations& pyroscope, const FamilyAnnotations& grafana);

// A name that every backend takes: other characters than letters, digits and "_" become "_".
std::string SanitizeLabelName(const std::string& name);

}  // namespace flamefleet::plan
