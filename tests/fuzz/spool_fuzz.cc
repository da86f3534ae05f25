// SPDX-License-Identifier: Apache-2.0
// Any bytes as the spool's files (four bytes say how many are the database's, the rest is the
// log's): it opens what it finds or begins anew, and what is kept afterwards is handed out whole.
#include <stdlib.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "agent/spool/spool.h"
#include "base/status.h"

namespace {

using flamefleet::agent::Spool;
using flamefleet::agent::SpooledProfile;

const std::string& Directory() {
  static const std::string directory = [] {
    std::string name = (std::filesystem::temp_directory_path() / "spool-fuzz-XXXXXX").string();
    FF_CHECK(::mkdtemp(name.data()) != nullptr);
    return name;
  }();
  return directory;
}

void Write(const std::string& name, const char* data, size_t size) {
  std::ofstream(Directory() + "/" + name, std::ios::binary)
      .write(data, static_cast<std::streamsize>(size));
}

void TakeAll(Spool& spool) {
  for (const std::string& backend : spool.Backends()) {
    spool.BacklogOf(backend);
    for (int i = 0; i < 100; ++i) {
      SpooledProfile profile;
      const flamefleet::Result<bool> taken = spool.TakeOldest(backend, &profile);
      if (!taken.ok() || !*taken) break;
      spool.Remove(profile).IgnoreError();
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  uint32_t database = 0;
  if (size < sizeof database) return 0;
  std::memcpy(&database, data, sizeof database);
  const auto* const bytes = reinterpret_cast<const char*>(data) + sizeof database;
  const size_t rest = size - sizeof database;
  const size_t first = std::min<size_t>(database, rest);
  Write("spool.db", bytes, first);
  Write("spool.db-wal", bytes + first, rest - first);
  std::filesystem::remove(Directory() + "/spool.db-shm");

  auto spool = Spool::Open({.directory = Directory(), .max_bytes = 1 << 20});
  if (!spool.ok()) return 0;
  TakeAll(**spool);
  int64_t lost = 0;
  FF_CHECK((*spool)->StartOver(&lost).ok());
  std::vector<SpooledProfile> one = {{.backend = "main", .time_ns = 1, .body = "whole"}};
  const auto refused = (*spool)->Append(one);
  FF_CHECK(refused.ok() && refused->empty());
  SpooledProfile profile;
  const flamefleet::Result<bool> taken = (*spool)->TakeOldest("main", &profile);
  FF_CHECK(taken.ok() && *taken && profile.body == "whole");
  return 0;
}
