// SPDX-License-Identifier: Apache-2.0
// CpuPipeline: from the kernel's samples to finished profiles: sample -> stack -> symbol -> profile
// -> compress.
//
// Thread: Create and Stop from one thread, the others from any. It owns the threads "ff-sample",
// which drains the ring, and "ff-symbolize", which names, encodes, compresses and calls the sink;
// its Unwinder owns "ff-unwind", which ends with the pipeline, not with Stop. Bounds: one window is
// being filled and at most two wait for symbolization; a further one drops the oldest, counted.
// Errors: Create: the preflight's verdict, one line per missing capability or kernel feature, what
// to do included.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/symbol/debug_files.h"
#include "agent/types.h"
#include "base/metrics.h"
#include "base/status.h"

namespace flamefleet::agent {

// A container whose samples are wanted.
struct CpuTarget {
  std::string container_id;  // 64 hexadecimal digits; "": it has not started, see SetTargets
  CollectionKey collection;
  std::string backend;
  Labels labels;
  bool thread_labels = false;  // samples have the labels thread_name and thread_id: see ThreadTable

  friend bool operator==(const CpuTarget&, const CpuTarget&) = default;
};

// What profiles of the host's own processes have in common. There is a series for each systemd
// service, and one for each name (comm) of the processes that are in none; kernel threads share
// "kernel", and what goes beyond a bound "other".
struct HostSeries {
  CollectionKey collection;
  std::string backend;
  Labels labels;  // but for service_name

  friend bool operator==(const HostSeries&, const HostSeries&) = default;
};

struct CpuPipelineOptions {
  // kContainers: only what SetTargets says is recorded. kHost: every process (or those of
  // `pids`), one series per executable name, service_name = that name.
  enum class Scope { kContainers, kHost };
  Scope scope = Scope::kContainers;
  std::vector<uint32_t> pids;  // kHost only; empty: all
  uint32_t frequency_hz = 19;  // 1..999
  uint32_t stack_depth = 127;  // user frames of a stack, 1..511
  std::chrono::milliseconds window{10'000};
  std::string proc_root = "/proc";
  DebugFileFinder find_debug_file;  // from ff-symbolize; may be empty
};

class CpuPipeline {
 public:
  // Called on ff-symbolize, once per series and window with at least one sample. Must not block for
  // long.
  using Sink = std::function<void(FinishedProfile)>;

  static Result<std::unique_ptr<CpuPipeline>> Create(const CpuPipelineOptions& options,
                                                     Metrics* metrics, Sink sink);
  ~CpuPipeline();  // Stop()
  CpuPipeline(const CpuPipeline&) = delete;
  CpuPipeline& operator=(const CpuPipeline&) = delete;

  // Replaces the wanted containers; in force for samples taken from now on, within one drain (250
  // ms). A container that is no longer listed gives no further profile; what its current window
  // holds is delivered.
  //
  // A pod starts before its container ids are known here: samples of an unknown container of a pod
  // that has a target wait for it, until the second window ends; then they are dropped, counted.
  //
  // With `host`, processes of the host that are in no container are recorded too.
  void SetTargets(std::vector<CpuTarget> targets, std::optional<HostSeries> host = std::nullopt);
  Status SetFrequency(uint32_t frequency_hz);
  // User frames of a stack, 1..511; 0: the default.
  Status SetStackDepth(uint32_t frames);
  // Whether profiles have inlined functions, files and lines where programs have DWARF; they do
  // from the start. In force from the next window that ends.
  void SetLines(bool wanted);

  // Why nothing is sampled, although programs run: the kernel took what it was asked for, but no
  // timer is heard. "" while samples come, or nothing is known. Any thread.
  std::string Silence() const;

  // What profiles lack since something is missing on this host, and what to do; one line each. Any
  // thread.
  std::vector<std::string> Shortages() const;

  // Whether files that were not read yet are, for their names; from the next window on.
  void SetReadsNewFiles(bool reads);
  // How many times the caches are halved, for want of memory; from the next window on.
  void SetCacheHalvings(int halvings);

  // CPU time that this process does not see as its own.
  struct OtherCpu {
    int64_t bpf_ns = 0;     // run time of the sampling program
    int64_t parser_ns = 0;  // of the parsing child
  };
  OtherCpu ReadOtherCpu();

  // Ends sampling, hands the last window to the sink, joins the threads. Idempotent.
  void Stop();

  // Samples taken from the ring since the start, for readiness; and the time of the last drain that
  // worked.
  uint64_t SamplesSeen() const;
  int64_t LastDrainMonotonicNanos() const;

  // Names the stage that is stuck: sample, finish.
  Status CheckProgress() const;

 private:
  class Impl;
  explicit CpuPipeline(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace flamefleet::agent
