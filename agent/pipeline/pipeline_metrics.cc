// SPDX-License-Identifier: Apache-2.0
#include "agent/pipeline/pipeline_metrics.h"

#include <string>

namespace flamefleet::agent {
namespace {

CounterMetric Dropped(Metrics* metrics, const std::string& reason) {
  return metrics->Counter("flamefleet_agent_samples_dropped_total",
                          "CPU samples that reached no profile, by reason.", {{"reason", reason}});
}

// By enum ff_stop.
constexpr std::array<const char*, FF_STOPS> kStackEnds = {
    "no_user_stack", "complete", "depth_limit", "bad_frame_pointer", "fault", "no_registers"};

}  // namespace

PipelineMetrics::PipelineMetrics(Metrics* metrics)
    : samples_(metrics->Counter("flamefleet_agent_samples_total",
                                "CPU samples taken from the kernel's ring.")),
      ring_full_(Dropped(metrics, "ring_full")),
      pending_(Dropped(metrics, "container_pending")),
      untargeted_(Dropped(metrics, "untargeted")),
      window_full_(Dropped(metrics, "window_full")),
      symbolizer_behind_(Dropped(metrics, "symbolizer_behind")),
      unread_samples_(metrics->Counter(
          "flamefleet_agent_samples_unnamed_total",
          "CPU samples whose user frames have no names: their process could not be read.")),
      unreadable_processes_(
          metrics->Counter("flamefleet_agent_processes_unreadable_total",
                           "Sampled processes whose mappings could not be read: ended, or no "
                           "right.")),
      unopened_files_(metrics->Counter("flamefleet_agent_files_unopened_total",
                                       "Mapped files that could not be opened for their symbols.")),
      drain_errors_(metrics->Counter("flamefleet_agent_drain_errors_total",
                                     "Reads of the kernel's ring that failed.")),
      map_bytes_(metrics->Gauge("flamefleet_agent_bpf_map_bytes",
                                "Kernel memory of the BPF maps; counts in the container's limit.")),
      symbol_bytes_(metrics->Gauge("flamefleet_agent_symbol_cache_bytes",
                                   "Memory of the symbol tables that are kept.")) {
  for (const char* const end : kStackEnds) {
    stack_ends_.emplace_back(metrics->Counter("flamefleet_agent_user_stacks_total",
                                              "User stacks of CPU samples, by how they ended.",
                                              {{"end", end}}));
  }
}

void PipelineMetrics::Follower::Follow(uint64_t total) {
  if (total > last_) metric_.Increment(static_cast<double>(total - last_));
  last_ = total;
}

void PipelineMetrics::Update(const SampleCounters& kernel, const Collector& collector) {
  samples_.Follow(collector.counts().samples);
  ring_full_.Follow(kernel[FF_COUNT_RING_FULL]);
  pending_.Follow(kernel[FF_COUNT_CGROUP_PENDING]);
  untargeted_.Follow(collector.counts().untargeted);
  window_full_.Follow(collector.counts().window_full);
  unread_samples_.Follow(collector.counts().unread);
  unreadable_processes_.Follow(collector.processes().unreadable());
  unopened_files_.Follow(collector.processes().file_failures());
  for (size_t i = 0; i < stack_ends_.size(); ++i)
    stack_ends_[i].Follow(kernel[FF_COUNT_STOP + i]);
}

}  // namespace flamefleet::agent
