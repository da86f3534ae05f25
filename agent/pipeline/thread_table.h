// SPDX-License-Identifier: Apache-2.0
// ThreadTable: numbers of the threads whose samples are told apart, in one window.
//
// Thread: one owner. Bounds: kMaxThreadsOfSeries of each series; further ones, and a thread under
// further names, share one number, whose label is kOtherThreads without an id.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "agent/stack/window.h"

namespace flamefleet::agent {

constexpr size_t kMaxThreadsOfSeries = 64;  // backends may make a series of each
constexpr char kOtherThreads[] = "other";

class ThreadTable {
 public:
  uint32_t Number(uint32_t series, uint32_t id, const std::string& name);

  // The labels of all numbers; begins anew.
  std::vector<ThreadLabel> Take();

 private:
  std::map<std::tuple<uint32_t, uint32_t, std::string>, uint32_t> numbers_;
  std::unordered_map<uint32_t, size_t> counts_;  // by series
  std::optional<uint32_t> others_;
  std::vector<ThreadLabel> labels_;
};

}  // namespace flamefleet::agent
