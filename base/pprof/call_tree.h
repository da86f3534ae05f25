// SPDX-License-Identifier: Apache-2.0
// CallTree: the stacks of one profile, or of two to compare, as a tree of functions: what a flame
// graph draws.
//
// Nodes are numbered so that a parent comes before its children; node 0 is the root, which stands
// for everything and has no name. Frames are told apart by name alone, inlined ones are nodes like
// others.
//
// Thread: none of its own; one owner. Bounds: kMaxCallTreeNodes; Prune limits what is left.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/pprof/profile.h"

namespace flamefleet::pprof {

constexpr size_t kMaxCallTreeNodes = 1 << 20;  // some 100 bytes each

class CallTree {
 public:
  enum Side : size_t { kMain = 0, kBaseline = 1 };

  struct Node {
    uint32_t function = 0;           // in functions(); the root's is 0, which is no other's
    uint32_t parent = 0;             // the root's is the root
    std::array<int64_t, 2> self{};   // per Side: samples that end here
    std::array<int64_t, 2> total{};  // and all below
  };
  struct Function {
    std::string name;    // as ForEachFrameName says
    std::string module;  // file name of the binary, without folders; empty when unknown
    std::array<int64_t, 2> self{};
    std::array<int64_t, 2> total{};  // of samples in which it occurs, recursion counted once
  };
  struct Pruned {
    size_t nodes = 0;
    std::array<int64_t, 2> self{};  // of the nodes that went
  };

  CallTree();
  // Adds the stacks of value number `value_index`. kResourceExhausted: there would be too many
  // nodes; the tree is lost then.
  Status Add(const Profile& profile, size_t value_index, Side side);

  // Removes all but the `max_nodes` heaviest nodes; what went still counts in the totals above it
  // and of its function.
  Pruned Prune(size_t max_nodes);

  const std::vector<Node>& nodes() const { return nodes_; }
  const std::vector<Function>& functions() const { return functions_; }

 private:
  uint32_t FunctionIndex(const std::string& name, std::string module);
  uint32_t Child(uint32_t parent, uint32_t function);
  void Pass(uint32_t node, int64_t value, Side side);

  std::vector<Node> nodes_;
  std::vector<Function> functions_;
  std::vector<uint64_t> weights_;  // per node: sum of the absolute values, which no child exceeds
  std::unordered_map<std::string, uint32_t> by_name_;
  std::unordered_map<uint64_t, uint32_t> children_;  // parent << 32 | function -> node
  std::vector<uint64_t> last_sample_;                // per function: the last that it occurred in
  uint64_t samples_ = 0;
};

}  // namespace flamefleet::pprof
