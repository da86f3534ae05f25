// SPDX-License-Identifier: Apache-2.0
// What one profile costs from its stacks to the acknowledgement of a backend: encode, compress,
// spool and push, and each step by itself. The backend is another process, the spool in the folder
// of FF_SPOOL_DIR, else in /var/tmp: a disk, not a tmpfs.
#include <benchmark/benchmark.h>
#include <sqlite3.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "agent/compress/gzip_compressor.h"
#include "agent/push/push_request.h"
#include "agent/push/pusher.h"
#include "agent/spool/spool.h"
#include "base/http/server.h"
#include "base/pprof/profile.h"
#include "base/status.h"
#include "tests/base/pprof/test_profiles.h"
#include "tests/bench/ratios.h"

namespace flamefleet::agent {
namespace {

constexpr int kGroup = 20;  // profiles of a node's window
constexpr size_t kSamples = 12;

uint16_t backend_port = 0;

// SQLite does not use operator new.
std::atomic<uint64_t> sqlite_allocations = 0;
sqlite3_mem_methods sqlite_memory;

void* SqliteMalloc(int size) {
  ++sqlite_allocations;
  return sqlite_memory.xMalloc(size);
}
void* SqliteRealloc(void* memory, int size) {
  ++sqlite_allocations;
  return sqlite_memory.xRealloc(memory, size);
}
void CountSqlite() {
  FF_CHECK(sqlite3_config(SQLITE_CONFIG_GETMALLOC, &sqlite_memory) == SQLITE_OK);
  static sqlite3_mem_methods counting = sqlite_memory;
  counting.xMalloc = &SqliteMalloc;
  counting.xRealloc = &SqliteRealloc;
  FF_CHECK(sqlite3_config(SQLITE_CONFIG_MALLOC, &counting) == SQLITE_OK);
}

// A backend that takes all, in a process of its own that ends with this one.
void StartBackend() {
  int ends[2];
  FF_CHECK(::pipe(ends) == 0);
  if (::fork() == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const auto server =
        HttpServer::Create({.listen = "127.0.0.1:0", .handler_threads = 8},
                           [](const HttpServerRequest&) { return HttpServerResponse{}; });
    FF_CHECK(server.ok());
    const uint16_t port = (*server)->port();
    FF_CHECK(::write(ends[1], &port, sizeof port) == sizeof port);
    for (;;)
      ::pause();
  }
  FF_CHECK(::read(ends[0], &backend_port, sizeof backend_port) == sizeof backend_port);
}

double CpuNanos() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto nanos = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_usec) * 1e3;
  };
  return nanos(usage.ru_utime) + nanos(usage.ru_stime);
}

std::unique_ptr<Spool> NewSpool() {
  const char* const wanted = std::getenv("FF_SPOOL_DIR");
  const std::string folder =
      std::string(wanted != nullptr ? wanted : "/var/tmp") + "/flamefleet-delivery-bench";
  std::filesystem::remove_all(folder);
  auto spool = Spool::Open({.directory = folder, .max_bytes = int64_t{1} << 30});
  FF_CHECK(spool.ok());
  return *std::move(spool);
}

// Counts what `group` does, which is for kGroup profiles.
template <typename Group>
void Measure(benchmark::State& state, Group group) {
  for (int i = 0; i < 10; ++i)
    group();  // until everything has the size that it keeps
  const double cpu = CpuNanos();
  const uint64_t allocations = bench::Allocations();
  const uint64_t sqlite = sqlite_allocations;
  for ([[maybe_unused]] auto _ : state)
    group();
  const double profiles = static_cast<double>(state.iterations()) * kGroup;
  state.counters["CPU ns/profile"] = (CpuNanos() - cpu) / profiles;
  state.counters["allocs/profile"] =
      static_cast<double>(bench::Allocations() - allocations) / profiles;
  state.counters["sqlite allocs/profile"] =
      static_cast<double>(sqlite_allocations - sqlite) / profiles;
}

class Maker {
 public:
  Maker() { pprof::FillRandomProfile(1, kSamples, &profile_); }
  void Make(FinishedProfile* finished) {
    encoded_.clear();
    pprof::Encode(profile_, &encoded_);
    compressor_.Compress(encoded_, &compressed_);
    finished->pprof = compressed_;
    ++finished->time_ns;
  }

 private:
  pprof::Profile profile_;
  std::string encoded_;
  std::string compressed_;
  GzipCompressor compressor_;
};

FinishedProfile NewProfile() {
  return {.collection = {.pod_uid = "0aa5a3c1-0000-4000-8000-000000000001", .container = "app"},
          .backend = "main",
          .labels = {{"namespace", "production"},
                     {"node", "node-1"},
                     {"pod", "shop-7d9f8b6c5d-abcde"},
                     {"service_name", "shop"}},
          .time_ns = SystemClock().WallNanos()};
}

void EncodeAndCompress(benchmark::State& state) {
  Maker maker;
  FinishedProfile finished = NewProfile();
  Measure(state, [&] {
    for (int i = 0; i < kGroup; ++i)
      maker.Make(&finished);
  });
  state.counters["bytes"] = static_cast<double>(finished.pprof.size());
}

// A group is kept, then each is taken and removed, as its delivery does.
void KeepAndRemove(benchmark::State& state) {
  const auto spool = NewSpool();
  Maker maker;
  FinishedProfile finished = NewProfile();
  maker.Make(&finished);
  SpooledProfile profile = {.collection = finished.collection, .backend = "main"};
  EncodePushRequest(finished, &profile.body);
  std::vector<SpooledProfile> group(kGroup, profile);
  Measure(state, [&] {
    FF_CHECK(spool->Append(group).ok());
    for (int i = 0; i < kGroup; ++i) {
      const Result<bool> taken = spool->TakeOldest("main", &profile);
      FF_CHECK(taken.ok() && *taken && spool->Remove(profile).ok());
    }
  });
}

void Deliver(benchmark::State& state) {
  Metrics metrics;
  Pusher pusher(LaneOptions{}, NewSpool(), &metrics, nullptr);
  FF_CHECK(pusher
               .SetBackends({{.name = "main",
                              .endpoint = "http://127.0.0.1:" + std::to_string(backend_port)}})
               .ok());
  Maker maker;
  FinishedProfile finished = NewProfile();
  Measure(state, [&] {
    for (int i = 0; i < kGroup; ++i) {
      maker.Make(&finished);
      pusher.Push(finished);
    }
    FF_CHECK(pusher.Drain(std::chrono::minutes(1)));
  });
}

BENCHMARK(EncodeAndCompress)->Iterations(100);
BENCHMARK(KeepAndRemove)->UseRealTime()->Iterations(100);
BENCHMARK(Deliver)->UseRealTime()->Iterations(100);

}  // namespace
}  // namespace flamefleet::agent

int main(int argc, char** argv) {
  flamefleet::agent::CountSqlite();
  flamefleet::agent::StartBackend();
  return flamefleet::bench::RunAndPrintRatios(argc, argv, {});
}
