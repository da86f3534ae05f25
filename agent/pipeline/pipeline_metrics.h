// SPDX-License-Identifier: Apache-2.0
// The metrics of the CPU pipeline. The stages count in plain numbers; Update turns what they have
// counted since the last call into Prometheus counters.
//
// Thread: Update from ff-sample, the others from any.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "agent/parse/parser_process.h"
#include "agent/pipeline/collector.h"
#include "agent/sample/sampler.h"
#include "agent/stack/unwinder.h"
#include "agent/symbol/file_lines.h"
#include "base/metrics.h"

namespace flamefleet::agent {

class PipelineMetrics {
 public:
  explicit PipelineMetrics(Metrics* metrics);

  void Update(const SampleCounters& kernel, const Collector& collector,
              const UnwinderCounts& unwinder);
  void UpdateLines(const LineCounts& lines);
  void UpdateNames(uint64_t refused) { names_refused_.Follow(refused); }
  // From ff-symbolize: it may wait for the parser.
  void UpdateParser(const ParserCounts& parser);
  void SetMapBytes(uint64_t bytes) { map_bytes_.Set(static_cast<double>(bytes)); }
  void SetSymbolBytes(uint64_t bytes) { symbol_bytes_.Set(static_cast<double>(bytes)); }
  void CountDrainError() { drain_errors_.Increment(); }
  void CountReopenedTimers(size_t count) { reopened_timers_.Increment(static_cast<double>(count)); }
  void CountDroppedWindow(uint64_t samples) {
    symbolizer_behind_.Increment(static_cast<double>(samples));
  }

 private:
  // A counter that follows a total which others count.
  class Follower {
   public:
    explicit Follower(CounterMetric metric) : metric_(metric) {}
    void Follow(uint64_t total);

   private:
    CounterMetric metric_;
    uint64_t last_ = 0;
  };

  Follower samples_;
  Follower ring_full_;
  Follower pending_;
  Follower untargeted_;
  Follower other_namespace_;
  Follower unknown_;
  Follower window_full_;
  CounterMetric symbolizer_behind_;
  Follower unread_samples_;
  Follower unreadable_processes_;
  Follower unopened_files_;
  std::vector<Follower> stack_ends_;  // by enum ff_stop
  std::vector<Follower> lines_;       // by LineOutcome
  Follower unwind_tables_built_;
  Follower unwind_files_absent_;
  Follower unwind_files_damaged_;
  Follower unwind_files_too_large_;
  Follower unwind_no_room_;
  Follower unwind_tables_evicted_;
  Follower ended_reports_lost_;
  Follower unwind_refused_;
  Follower unwind_failed_;
  GaugeMetric unwind_table_bytes_;
  GaugeMetric unwind_processes_;
  Follower parser_requests_;
  Follower parser_refused_;
  Follower parser_deaths_;
  Follower parser_starts_;
  CounterMetric drain_errors_;
  CounterMetric reopened_timers_;
  GaugeMetric map_bytes_;
  GaugeMetric symbol_bytes_;
  Follower names_refused_;
  Follower other_samples_;
};

}  // namespace flamefleet::agent
