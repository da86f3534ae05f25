// SPDX-License-Identifier: Apache-2.0
// Collector: puts each sample into the window of now, under its series and its process.
//
// Thread: one owner at a time (the pipeline's lock). Bounds: those of Window, ProcessTable and
// TargetTable; kMaxHeldSamples; kMaxHostServices series of the host's processes, further ones share
// "other", counted. Errors: none; every sample that is not kept is counted.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "agent/host/process.h"
#include "agent/pipeline/cpu_pipeline.h"
#include "agent/pipeline/target_table.h"
#include "agent/pipeline/thread_table.h"
#include "agent/sample/sampler.h"
#include "agent/stack/unwinder.h"
#include "agent/stack/window.h"
#include "base/clock.h"

namespace flamefleet::agent {

// Programs may take any name; so many are told apart, and one is forgotten that was not seen for
// kHostServiceWindows.
constexpr size_t kMaxHostServices = 512;
constexpr uint64_t kHostServiceWindows = 360;  // an hour
constexpr size_t kMaxHeldSamples = 8192;       // 40 s of one busy CPU at 199 Hz; some 3 MiB

struct Series {
  std::shared_ptr<const CpuTarget> target;
  StackEnds stack_ends{};  // of its samples
};

// A window with what its series numbers mean.
struct Batch {
  std::unique_ptr<Window> window;
  std::vector<Series> series;
};

// Since the start.
struct CollectorCounts {
  uint64_t samples = 0;      // taken from the ring
  uint64_t untargeted = 0;   // dropped: the container is not wanted any more
  uint64_t unknown = 0;      // dropped: nobody told in time whose container it is
  uint64_t window_full = 0;  // dropped: no room for another stack
  uint64_t unread = 0;       // kept without user names: nothing is known of their process
  uint64_t other = 0;        // kept, under "other": kMaxHostServices
};

class Collector final : public SampleHandler {
 public:
  Collector(CpuPipelineOptions::Scope scope, const std::string& proc_root, size_t max_open_files,
            const Clock& clock);

  void OnSample(const RawSample& sample) override;
  void OnCgroup(uint64_t id, const std::string& path) override;
  void OnEnded(const ff_ended_record& record) override;

  // Where verdicts go; before the first record.
  void SetSampler(Sampler* sampler) { sampler_ = sampler; }
  // Who prepares processes for unwinding; before the first record.
  void SetUnwinder(Unwinder* unwinder) { unwinder_ = unwinder; }
  // `host`: processes of the host are wanted too, in scope kContainers.
  void ReplaceTargets(std::vector<CpuTarget> targets, std::optional<HostSeries> host);

  // Starts to fill `window` with samples of that period; returns what was filled until now, which
  // is without a window the first time.
  Batch Rotate(std::unique_ptr<Window> window, uint64_t period_ns);

  int64_t WindowStartMonotonicNanos() const { return start_monotonic_ns_; }
  const CollectorCounts& counts() const { return counts_; }
  const ProcessTable& processes() const { return processes_; }

 private:
  using SeriesKey = std::tuple<CollectionKey, std::string, Labels>;

  // A sample whose container is not known yet.
  struct HeldSample {
    uint64_t cgroup_id = 0;
    std::shared_ptr<Process> process;
    ThreadLabel thread;
    uint8_t stop = FF_STOP_NONE;
    size_t kernel_frames = 0;
    std::vector<uint64_t> frames;
    uint64_t period_ns = 0;  // it cannot go into a window of another one
    int windows = 0;         // that have ended since
  };

  struct HostService {
    std::shared_ptr<const CpuTarget> target;
    uint64_t window = 0;  // of its last sample
  };

  std::shared_ptr<const CpuTarget> HostTarget(const std::string& name);
  uint32_t SeriesNumber(const std::shared_ptr<const CpuTarget>& target);
  uint32_t ImageNumber(const std::shared_ptr<Process>& process);
  void SetVerdict(uint64_t cgroup_id, bool wanted);
  // A sample as it comes into a window.
  struct Sample {
    const std::shared_ptr<Process>& process;
    const ThreadLabel& thread;
    uint8_t stop;  // enum ff_stop: why its user stack ended
    std::span<const uint64_t> kernel_frames;
    std::span<const uint64_t> user_frames;
  };
  // Whether its stack is a new one.
  bool Keep(const std::shared_ptr<const CpuTarget>& target, const Sample& sample);
  void Hold(const RawSample& raw, const Sample& sample);
  // Puts held samples whose container is known by now into the window, drops those that have waited
  // long enough.
  void ReleaseHeld();
  void Announce(Process* process);

  const CpuPipelineOptions::Scope scope_;
  const Clock& clock_;
  Sampler* sampler_ = nullptr;
  Unwinder* unwinder_ = nullptr;
  TargetTable targets_;
  std::optional<HostSeries> host_;                    // of scope kContainers
  std::map<std::string, HostService> host_services_;  // by name
  uint64_t windows_ = 0;                              // that have begun
  ProcessTable processes_;

  // The window being filled.
  std::unique_ptr<Window> window_;
  int64_t start_monotonic_ns_ = 0;
  int64_t last_start_ns_ = 0;  // wall clock; see NextTime
  std::vector<Series> series_;
  std::unordered_map<std::shared_ptr<const CpuTarget>, uint32_t> series_by_target_;
  std::map<SeriesKey, uint32_t> series_by_key_;
  std::vector<std::shared_ptr<Process>> window_processes_;
  std::unordered_map<const Process*, uint32_t> process_numbers_;
  ThreadTable threads_;

  std::vector<HeldSample> held_;
  CollectorCounts counts_;
};

}  // namespace flamefleet::agent
