// SPDX-License-Identifier: Apache-2.0
// A call tree in the rows that Pyroscope's clients draw: level 0 is the root, "total".
//
// Of a node a row has the distance to the end of the node before it in the row, its total, its self
// value and the number of its name; of two profiles the three first of each, left before right.
// What a limit has cut from a node is its child "other".
//
// Thread: any.
// Source: docs/sources/reference-server-api of Pyroscope, and its answers on the wire.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/pprof/call_tree.h"

namespace flamefleet::store {

struct FlameLevels {
  std::vector<std::string> names;
  std::vector<std::vector<int64_t>> levels;
  std::array<int64_t, 2> total{};  // per side
  int64_t max_self = 0;
};

// Of the sides up to `last`: kMain alone, or kMain (left) and kBaseline (right).
FlameLevels LevelsOf(const pprof::CallTree& tree, pprof::CallTree::Side last);

}  // namespace flamefleet::store
