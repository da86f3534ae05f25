// SPDX-License-Identifier: Apache-2.0
// FleetGauges: how many objects of our kinds are Ready, and what becomes of the pods that want
// profiles, as metrics, from the statuses that the operator computes.
//
// Thread: one (the worker). Bounds: one entry per object. All are 0 before the first status and
// after the destructor: who does not lead knows nothing.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/metrics.h"

namespace flamefleet {

class FleetGauges {
 public:
  explicit FleetGauges(Metrics& metrics);
  ~FleetGauges();
  FleetGauges(const FleetGauges&) = delete;
  FleetGauges& operator=(const FleetGauges&) = delete;

  // The status of the object at `path`; one of a kind that is not ours is ignored.
  void Note(std::string_view kind, const std::string& path, const nlohmann::json& status);
  void Forget(const std::string& path);

 private:
  static constexpr size_t kPodStates = 4;
  struct Entry {
    size_t ready = 0;  // of `objects_`
    std::array<int64_t, kPodStates> pods{};
  };
  struct Total {
    GaugeMetric gauge;
    int64_t value = 0;
    void Add(int64_t by);
  };

  void Count(const Entry& entry, int64_t sign);

  std::vector<Total> objects_;  // by kind and status of Ready
  std::vector<Total> pods_;     // by state
  std::map<std::string, Entry> entries_;
};

}  // namespace flamefleet
