// SPDX-License-Identifier: Apache-2.0
// FleetPublisher: tells the managed stores every kInterval what the operator knows, for their UI,
// with the credential that agents write with. A store asks nobody: it needs no address and no
// right, and who may read the page is decided where profiles are read.
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
#include "operator/plan/fleet.h"

namespace flamefleet {

class FleetPublisher {
 public:
  static constexpr std::chrono::seconds kInterval{15};
  static constexpr std::chrono::seconds kTimeout{5};

  // `stores` gives the stores with what is sent to them, `report` what they are told.
  FleetPublisher(std::function<std::vector<plan::Backend>()> stores,
                 std::function<std::string()> report)
      : list_(std::move(stores)), report_(std::move(report)) {}

  // Until `stop`.
  void Run(const std::stop_token& stop);
  // Once.
  void Publish(const std::stop_token& stop);

 private:
  struct Store {
    std::string ca_pem;  // that `client` trusts
    std::unique_ptr<HttpClient> client;
    int failures = 0;  // since the last success
  };
  Status Tell(const plan::Backend& backend, Store& store, const std::string& report,
              const std::stop_token& stop);

  const std::function<std::vector<plan::Backend>()> list_;
  const std::function<std::string()> report_;
  std::map<std::string, Store> stores_;  // by endpoint
};

}  // namespace flamefleet
