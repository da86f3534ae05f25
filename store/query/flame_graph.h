// SPDX-License-Identifier: Apache-2.0
// A flame graph as JSON, of one selection or of two to compare.
//
//   {"type", "unit", "from", "until", "profiles", "series", "total",
//    "functions": {"name", "module", "self", "total"},       one each; 0 stands for the root
//    "nodes":     {"function", "parent", "self", "total"},   one each; function: in the above
//    "pruned":    {"nodes", "self"},
//    "baseline":  {"from", "until", "profiles", "series", "total",
//                  "functions": {"self", "total"}, "nodes": {"self", "total"},
//                  "pruned": {"self"}}}                      only of a comparison
//
// Node 0 is the root, a parent comes before its children. Functions are those of the whole, not
// only of the nodes that are left.
//
// Thread: any.
#pragma once

#include <cstddef>
#include <string>

#include "store/match/time_range.h"
#include "store/query/query.h"

namespace flamefleet::store {

// One side of a flame graph.
struct FlameGraphSide {
  const MergedProfile& merged;
  const TimeRange& range;
};

// kFailedPrecondition: the two have different sample types.
Result<std::string> FlameGraphAsJson(const FlameGraphSide& main, const FlameGraphSide* baseline,
                                     size_t max_nodes);

}  // namespace flamefleet::store
