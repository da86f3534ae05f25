// SPDX-License-Identifier: Apache-2.0
// FleetPublisher: tells the managed stores every kInterval what the operator knows, for their UI. A
// store asks nobody: it needs no address, no right and no credential of ours, and who may read the
// page is decided where profiles are read.
//
// Thread: Run from one. Bounds: FleetReport's; kTimeout for each store.
// Errors: none; a store that does not listen is told the next time, and named in the log when that
//         goes on.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "base/http/client.h"
#include "base/status.h"

namespace flamefleet {

class FleetPublisher {
 public:
  static constexpr std::chrono::seconds kInterval{15};
  static constexpr std::chrono::seconds kTimeout{5};

  // `endpoints` gives the base URLs of the stores, `report` what they are told.
  FleetPublisher(std::function<std::vector<std::string>()> endpoints,
                 std::function<std::string()> report)
      : endpoints_(std::move(endpoints)), report_(std::move(report)) {}

  // Until `stop`.
  void Run(const std::stop_token& stop);
  // Once.
  void Publish(const std::stop_token& stop);

 private:
  struct Store {
    std::unique_ptr<HttpClient> client;
    int failures = 0;  // since the last success
  };
  Status Tell(const std::string& endpoint, Store& store, const std::string& report,
              const std::stop_token& stop);

  const std::function<std::vector<std::string>()> endpoints_;
  const std::function<std::string()> report_;
  std::map<std::string, Store> stores_;  // by endpoint
};

}  // namespace flamefleet
