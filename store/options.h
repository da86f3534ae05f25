// SPDX-License-Identifier: Apache-2.0
// What the command line of flamefleet-store says.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "base/flags.h"

namespace flamefleet::store {

struct StoreOptions {
  std::string listen = "127.0.0.1:4040";
  std::string otlp_listen;   // empty: no gRPC
  std::string read_listen;   // on loopback, who reaches it may read; empty: not served
  std::string probe_listen;  // probes and metrics alone; empty: only beside the rest
  std::string data;
  std::string auth_file;
  std::string tls_cert;  // with tls_key: HTTPS
  std::string tls_key;
  std::chrono::nanoseconds retention = std::chrono::hours(72);
  std::string max_size = "10Gi";
  std::string query_memory;  // empty: DefaultQueryMemory
  int64_t tenants = 0;       // how many are kept apart; 0: X-Scope-OrgID means nothing
  std::string log_level = "info";
};

// What one query may take: two run at a time, and leave half of the memory limit to the rest.
int64_t DefaultQueryMemory(std::optional<uint64_t> memory_limit);

// Of --max-size.
constexpr int64_t kMinMaxSize = 1 << 20;

// True for addresses that only this machine reaches.
bool IsLoopback(const std::string& listen);

}  // namespace flamefleet::store
