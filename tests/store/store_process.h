// SPDX-License-Identifier: Apache-2.0
// The real flamefleet-store as a process that can be killed.
//
// Thread: one owner.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace flamefleet::store {

class StoreProcess {
 public:
  // `flags`: further ones, such as {"--retention", "1h"}.
  explicit StoreProcess(std::string data, std::vector<std::string> flags = {});
  ~StoreProcess();  // Kill()
  StoreProcess(const StoreProcess&) = delete;
  StoreProcess& operator=(const StoreProcess&) = delete;

  // Starts it on a free port; true when it is ready.
  bool Start();
  // SIGKILL, and waits for its end.
  void Kill();
  // SIGTERM, and waits; the exit code, -1 when a signal ended it.
  int Stop();

  uint16_t port() const { return port_; }

 private:
  const std::string data_;
  const std::vector<std::string> flags_;
  pid_t pid_ = 0;
  uint16_t port_ = 0;
};

}  // namespace flamefleet::store
