// SPDX-License-Identifier: Apache-2.0
// What the spool costs: profiles written, group by group as the agent does, and taken and removed
// again as after an outage. In the folder of FF_SPOOL_DIR, else in /var/tmp: a disk, not a tmpfs.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <filesystem>
#include <random>

#include "agent/spool/spool.h"

namespace flamefleet::agent {
namespace {

constexpr int64_t kProfileBytes = 3 << 10;  // the median of real ones, compressed
constexpr int kGroup = 20;                  // of a node's window

std::string Folder() {
  const char* const wanted = std::getenv("FF_SPOOL_DIR");
  return std::string(wanted != nullptr ? wanted : "/var/tmp") + "/flamefleet-spool-bench";
}

std::unique_ptr<Spool> NewSpool() {
  std::filesystem::remove_all(Folder());
  auto spool = Spool::Open({.directory = Folder(), .max_bytes = int64_t{1} << 30});
  FF_CHECK(spool.ok());
  return *std::move(spool);
}

void Fill(Spool& spool) {
  static const std::string body = [] {
    std::mt19937 random(1);
    std::string bytes(kProfileBytes, '\0');
    for (char& byte : bytes)
      byte = static_cast<char>(random());
    return bytes;
  }();
  std::vector<SpooledProfile> group;
  for (int i = 0; i < kGroup; ++i)
    group.push_back({.collection = {"uid", "app"}, .backend = "main", .time_ns = 1, .body = body});
  FF_CHECK(spool.Append(group).ok());
}

void SpoolWrite(benchmark::State& state) {
  const auto spool = NewSpool();
  for ([[maybe_unused]] auto _ : state)
    Fill(*spool);
  state.SetItemsProcessed(state.iterations() * kGroup);
  state.SetBytesProcessed(state.iterations() * kGroup * kProfileBytes);
}

void SpoolReplay(benchmark::State& state) {
  const auto spool = NewSpool();
  for (int i = 0; i < 1000; ++i)
    Fill(*spool);
  SpooledProfile profile;
  for ([[maybe_unused]] auto _ : state) {
    const Result<bool> taken = spool->TakeOldest("main", &profile);
    FF_CHECK(taken.ok() && *taken && spool->Remove(profile).ok());
  }
  state.SetItemsProcessed(state.iterations());
  state.SetBytesProcessed(state.iterations() * kProfileBytes);
}

BENCHMARK(SpoolWrite)->UseRealTime()->Iterations(2000);
BENCHMARK(SpoolReplay)->UseRealTime()->Iterations(15'000);

}  // namespace
}  // namespace flamefleet::agent

BENCHMARK_MAIN();
