// SPDX-License-Identifier: Apache-2.0
#include "store/query/flame_levels.h"

#include <algorithm>
#include <map>

namespace flamefleet::store {
namespace {

using pprof::CallTree;

constexpr char kRootName[] = "total";
constexpr char kCutName[] = "other";

class LevelBuilder {
 public:
  LevelBuilder(const CallTree& tree, CallTree::Side last) : tree_(tree), sides_(last + 1) {
    children_.resize(tree.nodes().size());
    for (uint32_t i = 1; i < tree.nodes().size(); ++i)
      children_[tree.nodes()[i].parent].push_back(i);
    for (std::vector<uint32_t>& children : children_) {
      std::sort(children.begin(), children.end(), [&](uint32_t a, uint32_t b) {
        return tree.functions()[tree.nodes()[a].function].name <
               tree.functions()[tree.nodes()[b].function].name;
      });
    }
  }

  FlameLevels Build() {
    const CallTree::Node& root = tree_.nodes()[0];
    for (size_t side = 0; side < sides_; ++side)
      result_.total[side] = root.total[side];
    std::vector<Placed> row = {{.node = 0}};
    while (!row.empty())
      row = AddRow(row);
    return std::move(result_);
  }

 private:
  struct Placed {
    uint32_t node = 0;
    bool cut = false;                  // stands for what was cut of the node
    std::array<int64_t, 2> begin{};    // per side
    std::array<int64_t, 2> missing{};  // of a cut one: its value
  };

  // Adds a level, and returns the next one.
  std::vector<Placed> AddRow(const std::vector<Placed>& row) {
    std::vector<Placed> next;
    std::vector<int64_t>& level = result_.levels.emplace_back();
    std::array<int64_t, 2> end{};
    for (const Placed& placed : row) {
      const CallTree::Node& node = tree_.nodes()[placed.node];
      for (size_t side = 0; side < sides_; ++side) {
        const int64_t total = placed.cut ? placed.missing[side] : node.total[side];
        const int64_t self = placed.cut ? total : node.self[side];
        level.insert(level.end(), {placed.begin[side] - end[side], total, self});
        end[side] = placed.begin[side] + total;
        result_.max_self = std::max(result_.max_self, self);
      }
      level.push_back(NameOf(placed));
      if (!placed.cut) AddChildren(placed, &next);
    }
    return next;
  }

  void AddChildren(const Placed& parent, std::vector<Placed>* next) {
    const CallTree::Node& node = tree_.nodes()[parent.node];
    std::array<int64_t, 2> begin = parent.begin;
    std::array<int64_t, 2> missing{};
    for (size_t side = 0; side < sides_; ++side)
      missing[side] = node.total[side] - node.self[side];
    for (const uint32_t child : children_[parent.node]) {
      next->push_back({.node = child, .begin = begin});
      for (size_t side = 0; side < sides_; ++side) {
        begin[side] += tree_.nodes()[child].total[side];
        missing[side] -= tree_.nodes()[child].total[side];
      }
    }
    if (missing != std::array<int64_t, 2>{}) {
      next->push_back({.node = parent.node, .cut = true, .begin = begin, .missing = missing});
    }
  }

  int64_t NameOf(const Placed& placed) {
    std::string name = kCutName;
    if (!placed.cut) {
      name = placed.node == 0 ? kRootName
                              : tree_.functions()[tree_.nodes()[placed.node].function].name;
    }
    const auto [it, is_new] = names_.try_emplace(name, result_.names.size());
    if (is_new) result_.names.push_back(std::move(name));
    return static_cast<int64_t>(it->second);
  }

  const CallTree& tree_;
  const size_t sides_;
  std::vector<std::vector<uint32_t>> children_;
  std::map<std::string, size_t> names_;
  FlameLevels result_;
};

}  // namespace

FlameLevels LevelsOf(const CallTree& tree, CallTree::Side last) {
  return LevelBuilder(tree, last).Build();
}

}  // namespace flamefleet::store
