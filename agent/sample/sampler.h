// SPDX-License-Identifier: Apache-2.0
// Sampler: loads the BPF program, runs it on every CPU at a fixed rate, reads its records.
//
// Thread: one owner. Units: bytes, nanoseconds, Hz. Bounds: the ring holds `ring_bytes`; what does
// not fit is counted by the kernel program, see ReadCounters. Errors: Create fails with what the
// kernel refused and what to do; run Preflight first, its answers are better. Source: contract with
// the kernel program in bpf/profiler.h.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "agent/sample/unwind_maps.h"
#include "base/fd.h"
#include "base/status.h"
#include "bpf/profiler.h"

struct profiler_bpf;
struct ring_buffer;

namespace flamefleet::agent {

constexpr uint32_t kMinFrequencyHz = 1;
constexpr uint32_t kMaxFrequencyHz = 999;
constexpr uint32_t kDefaultStackDepth = 127;

// One record of the ring; valid only during the call that hands it over.
struct RawSample {
  const ff_sample& header;
  std::span<const uint64_t> kernel_frames;  // innermost first
  std::span<const uint64_t> user_frames;    // innermost first
};

class SampleHandler {
 public:
  SampleHandler() = default;
  SampleHandler(const SampleHandler&) = delete;
  SampleHandler& operator=(const SampleHandler&) = delete;
  virtual ~SampleHandler() = default;

  virtual void OnSample(const RawSample& sample) = 0;
  // A cgroup seen for the first time; `path` is its name behind those of its ancestors ("/a/b"),
  // without the first "/" where they are as many as FF_CGROUP_NAMES: there may be more.
  // Answer with SetVerdict, at once or later; until then its samples are skipped and counted.
  virtual void OnCgroup(uint64_t id, const std::string& path) = 0;
  // A process of the scope, sampled or not, has exited or runs another program now. Its last sample
  // came before.
  virtual void OnEnded(const ff_ended_record&) {}
};

struct SamplerOptions {
  ff_scope scope = FF_SCOPE_HOST;
  std::vector<uint32_t> pids;  // FF_SCOPE_PIDS; at most FF_MAX_PIDS
  uint32_t frequency_hz = 19;
  uint32_t stack_depth = kDefaultStackDepth;  // user frames, 1..FF_MAX_USER_FRAMES
  size_t ring_bytes = 0;  // power of two, at least a page; 0: by the number of CPUs
};

// Totals since Create, by enum ff_counter.
using SampleCounters = std::array<uint64_t, FF_COUNTERS>;

class Sampler {
 public:
  static Result<std::unique_ptr<Sampler>> Create(const SamplerOptions& options);
  ~Sampler();
  Sampler(const Sampler&) = delete;
  Sampler& operator=(const Sampler&) = delete;

  // Becomes readable when the kernel program has put something into the ring that may be gone soon:
  // see RingWaiter. Valid as long as the sampler.
  int ring_fd() const;

  // Hands every record in the ring to `handler` and returns how many there were.
  Result<size_t> Drain(SampleHandler& handler);

  Status SetVerdict(uint64_t cgroup_id, bool wanted);
  // The kernel forgets the cgroup and reports it again when it meets it again.
  void ForgetCgroup(uint64_t cgroup_id);

  // In force from the next tick of each CPU.
  Status SetFrequency(uint32_t frequency_hz);
  // In force from the next sample.
  Status SetStackDepth(uint32_t frames);
  uint64_t PeriodNanos() const { return period_ns_; }

  // Opens an event on each CPU that came online and closes those of CPUs that went. A CPU that goes
  // and comes back between two calls stays without samples until it goes again.
  Status RefreshCpus();
  // Closes the events of these CPUs and opens new ones.
  Status ReopenEvents(const std::vector<int>& cpus);
  size_t CpuCount() const { return events_.size(); }

  Result<SampleCounters> ReadCounters() const;
  // FF_COUNT_EVENTS of each possible CPU.
  Result<std::vector<uint64_t>> EventsByCpu() const;

  // Valid as long as the sampler.
  UnwindMaps unwind_maps() const;

  // Kernel memory of the maps, which no RSS shows but which counts in the container's limit.
  uint64_t MapBytes() const;

 private:
  struct SkeletonDeleter {
    void operator()(profiler_bpf* skeleton) const;
  };
  struct RingDeleter {
    void operator()(ring_buffer* ring) const;
  };

  Sampler() = default;
  Status Load(const SamplerOptions& options);
  void AttachTracepoints();
  Status OpenEvent(int cpu);
  Result<std::vector<uint64_t>> ReadCounter(uint32_t counter) const;
  static int OnRecord(void* context, void* data, size_t size);

  std::unique_ptr<profiler_bpf, SkeletonDeleter> skeleton_;  // owns the links of the tracepoints
  std::unique_ptr<ring_buffer, RingDeleter> ring_;
  SampleHandler* handler_ = nullptr;  // set while draining
  uint64_t period_ns_ = 0;
  std::map<int, UniqueFd> events_;  // by CPU
};

// Reads "0-3,5,7-8" as the kernel writes lists of CPUs.
Result<std::vector<int>> ParseCpuList(const std::string& text);

}  // namespace flamefleet::agent
