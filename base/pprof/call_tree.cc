// SPDX-License-Identifier: Apache-2.0
#include "base/pprof/call_tree.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/pprof/frame_name.h"
#include "base/pprof/wrapping_sum.h"

namespace flamefleet::pprof {
namespace {

uint64_t Magnitude(int64_t value) {
  return value < 0 ? uint64_t{0} - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
}

uint64_t SaturatingSum(uint64_t a, uint64_t b) {
  return a + b < a ? UINT64_MAX : a + b;
}

void Accumulate(int64_t value, int64_t* sum) {
  *sum = WrappingSum(*sum, value);
}

}  // namespace

CallTree::CallTree() : nodes_(1), functions_(1), weights_(1), last_sample_(1) {
  by_name_.emplace("", 0);
}

uint32_t CallTree::FunctionIndex(const std::string& name, std::string module) {
  const auto next = static_cast<uint32_t>(functions_.size());
  // A function without a name is not the root.
  const auto [it, is_new] = by_name_.try_emplace(name.empty() ? "<unknown>" : name, next);
  if (is_new) {
    functions_.push_back({.name = it->first, .module = std::move(module)});
    last_sample_.push_back(0);
  }
  return it->second;
}

uint32_t CallTree::Child(uint32_t parent, uint32_t function) {
  const auto next = static_cast<uint32_t>(nodes_.size());
  const auto [it, is_new] = children_.try_emplace(uint64_t{parent} << 32 | function, next);
  if (is_new) {
    nodes_.push_back({.function = function, .parent = parent});
    weights_.push_back(0);
  }
  return it->second;
}

void CallTree::Pass(uint32_t node, int64_t value, Side side) {
  Accumulate(value, &nodes_[node].total[side]);
  weights_[node] = SaturatingSum(weights_[node], Magnitude(value));
  const uint32_t function = nodes_[node].function;
  if (last_sample_[function] == samples_) return;
  last_sample_[function] = samples_;
  Accumulate(value, &functions_[function].total[side]);
}

Status CallTree::Add(const Profile& profile, size_t value_index, Side side) {
  const size_t width = profile.sample_types.size();
  FF_CHECK(value_index < width);
  // Per location the functions of its frames, innermost first.
  std::vector<std::vector<uint32_t>> frames(profile.locations.size());
  for (size_t i = 0; i < frames.size(); ++i) {
    const Location& location = profile.locations[i];
    ForEachFrameName(profile, location, [&](const std::string& name) {
      frames[i].push_back(FunctionIndex(name, ModuleOf(profile, location)));
    });
  }
  for (size_t i = 0; i < profile.samples.size(); ++i) {
    const Sample& sample = profile.samples[i];
    const int64_t value = profile.values[i * width + value_index];
    if (value == 0) continue;
    ++samples_;
    uint32_t node = 0;
    Pass(node, value, side);
    for (uint32_t k = sample.location_count; k-- > 0;) {
      const auto& functions = frames[profile.sample_locations[sample.first_location + k]];
      for (auto function = functions.rbegin(); function != functions.rend(); ++function) {
        node = Child(node, *function);
        Pass(node, value, side);
      }
    }
    Accumulate(value, &nodes_[node].self[side]);
    Accumulate(value, &functions_[nodes_[node].function].self[side]);
    if (nodes_.size() > kMaxCallTreeNodes) {
      return ResourceExhaustedError("the call tree has more than " +
                                    std::to_string(kMaxCallTreeNodes) +
                                    " nodes; choose a shorter time range or fewer series");
    }
  }
  return OkStatus();
}

CallTree::Pruned CallTree::Prune(size_t max_nodes) {
  Pruned pruned;
  max_nodes = std::max<size_t>(max_nodes, 1);
  if (nodes_.size() <= max_nodes) return pruned;
  // No child outweighs its parent, which has the smaller number: a node that stays has its parent.
  std::vector<uint32_t> order(nodes_.size());
  std::iota(order.begin(), order.end(), 0U);
  std::nth_element(order.begin(), order.begin() + static_cast<ptrdiff_t>(max_nodes), order.end(),
                   [&](uint32_t a, uint32_t b) {
                     return weights_[a] != weights_[b] ? weights_[a] > weights_[b] : a < b;
                   });
  std::vector<bool> stays(nodes_.size());
  for (size_t i = 0; i < max_nodes; ++i)
    stays[order[i]] = true;

  children_.clear();
  std::vector<uint32_t> moved(nodes_.size());
  uint32_t count = 0;
  for (uint32_t i = 0; i < nodes_.size(); ++i) {
    if (!stays[i]) {
      ++pruned.nodes;
      for (const Side side : {kMain, kBaseline})
        Accumulate(nodes_[i].self[side], &pruned.self[side]);
      continue;
    }
    moved[i] = count;
    nodes_[count] = nodes_[i];
    nodes_[count].parent = moved[nodes_[i].parent];
    weights_[count] = weights_[i];
    if (count > 0) {
      children_.emplace(uint64_t{nodes_[count].parent} << 32 | nodes_[count].function, count);
    }
    ++count;
  }
  nodes_.resize(count);
  weights_.resize(count);
  return pruned;
}

}  // namespace flamefleet::pprof
