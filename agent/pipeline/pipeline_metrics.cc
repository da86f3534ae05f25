// SPDX-License-Identifier: Apache-2.0
#include "agent/pipeline/pipeline_metrics.h"

#include <string>

#include "base/stack_ends.h"

namespace flamefleet::agent {
namespace {

CounterMetric Dropped(Metrics* metrics, const std::string& reason) {
  return metrics->Counter("flamefleet_agent_samples_dropped_total",
                          "CPU samples that reached no profile, by reason.", {{"reason", reason}});
}

CounterMetric WithoutTable(Metrics* metrics, const std::string& reason) {
  return metrics->Counter("flamefleet_agent_unwind_files_without_table_total",
                          "Mapped files whose code is unwound by frame pointers only, by reason.",
                          {{"reason", reason}});
}

CounterMetric NotPrepared(Metrics* metrics, const std::string& reason) {
  return metrics->Counter("flamefleet_agent_unwind_processes_not_prepared_total",
                          "Attempts to prepare a process for unwinding by tables that failed.",
                          {{"reason", reason}});
}

CounterMetric NotParsed(Metrics* metrics, const std::string& reason) {
  return metrics->Counter("flamefleet_agent_parser_failures_total",
                          "Requests that the parsing child did not fulfil: the file is not of the "
                          "form or over a bound, or the child died of it.",
                          {{"reason", reason}});
}

static_assert(kStackEnds.size() == FF_STOPS);

constexpr std::array<const char*, kLineOutcomes> kLineResults = {
    "found", "none", "late", "too_slow", "too_large", "split_dwarf", "damaged", "parser_died"};

}  // namespace

PipelineMetrics::PipelineMetrics(Metrics* metrics)
    : samples_(metrics->Counter("flamefleet_agent_samples_total",
                                "CPU samples taken from the kernel's ring.")),
      ring_full_(Dropped(metrics, "ring_full")),
      pending_(Dropped(metrics, "container_pending")),
      untargeted_(Dropped(metrics, "untargeted")),
      other_namespace_(Dropped(metrics, "pid_namespace")),
      unknown_(Dropped(metrics, "container_unknown")),
      window_full_(Dropped(metrics, "window_full")),
      symbolizer_behind_(Dropped(metrics, "symbolizer_behind")),
      unread_samples_(metrics->Counter(
          "flamefleet_agent_samples_unnamed_total",
          "CPU samples whose user frames have no names: their process could not be read.")),
      unreadable_processes_(
          metrics->Counter("flamefleet_agent_processes_unreadable_total",
                           "Sampled processes whose mappings could not be read: ended, no right, "
                           "or no room for them.")),
      unopened_files_(metrics->Counter("flamefleet_agent_files_unopened_total",
                                       "Mapped files that could not be opened for their symbols.")),
      unwind_tables_built_(
          metrics->Counter("flamefleet_agent_unwind_tables_built_total", "Unwind tables made.")),
      unwind_files_absent_(WithoutTable(metrics, "no_eh_frame")),
      unwind_files_damaged_(WithoutTable(metrics, "damaged")),
      unwind_files_too_large_(WithoutTable(metrics, "too_large")),
      unwind_no_room_(WithoutTable(metrics, "no_room")),
      unwind_tables_evicted_(WithoutTable(metrics, "evicted")),
      ended_reports_lost_(metrics->Counter("flamefleet_agent_ended_process_reports_lost_total",
                                           "Ends of processes that the ring had no room for.")),
      unwind_refused_(NotPrepared(metrics, "queue_full")),
      unwind_failed_(NotPrepared(metrics, "kernel")),
      unwind_table_bytes_(
          metrics->Gauge("flamefleet_agent_unwind_table_bytes",
                         "Kernel memory of the unwind tables; counts in the container's limit.")),
      unwind_processes_(metrics->Gauge("flamefleet_agent_unwind_processes",
                                       "Processes that are unwound by tables.")),
      parser_requests_(metrics->Counter("flamefleet_agent_parser_requests_total",
                                        "Files, or parts, that the parsing child was asked for.")),
      parser_refused_(NotParsed(metrics, "refused")),
      parser_deaths_(NotParsed(metrics, "parser_died")),
      parser_starts_(metrics->Counter("flamefleet_agent_parser_starts_total",
                                      "Parsing children started: at need, and after a death.")),
      drain_errors_(metrics->Counter("flamefleet_agent_drain_errors_total",
                                     "Reads of the kernel's ring that failed.")),
      reopened_timers_(
          metrics->Counter("flamefleet_agent_sampling_timers_reopened_total",
                           "Sampling timers that were opened again since programs ran on their "
                           "CPU and they were not heard.")),
      map_bytes_(metrics->Gauge("flamefleet_agent_bpf_map_bytes",
                                "Kernel memory of the BPF maps without the unwind tables; counts "
                                "in the container's limit.")),
      symbol_bytes_(metrics->Gauge("flamefleet_agent_symbol_cache_bytes",
                                   "Memory of the symbol tables that are kept.")),
      names_refused_(metrics->Counter("flamefleet_agent_symbol_names_refused_total",
                                      "Functions that kept their address for a name: the names of "
                                      "one window, or of code made at run time, took too much "
                                      "memory.")),
      other_samples_(metrics->Counter("flamefleet_agent_host_samples_other_total",
                                      "CPU samples of the host's processes that are in the series "
                                      "\"other\": too many names.")) {
  for (const std::string_view end : kStackEnds) {
    stack_ends_.emplace_back(metrics->Counter("flamefleet_agent_user_stacks_total",
                                              "User stacks of CPU samples, by how they ended.",
                                              {{"end", std::string(end)}}));
  }
  for (const char* const result : kLineResults) {
    lines_.emplace_back(metrics->Counter(
        "flamefleet_agent_source_lookups_total",
        "Addresses looked up in DWARF for inlined functions and lines, by result; all but found "
        "have the name of their symbol alone.",
        {{"result", result}}));
  }
}

void PipelineMetrics::Follower::Follow(uint64_t total) {
  if (total > last_) metric_.Increment(static_cast<double>(total - last_));
  last_ = total;
}

void PipelineMetrics::UpdateLines(const LineCounts& lines) {
  for (size_t i = 0; i < lines_.size(); ++i)
    lines_[i].Follow(lines[i]);
}

void PipelineMetrics::UpdateParser(const ParserCounts& parser) {
  parser_requests_.Follow(parser.requests);
  parser_refused_.Follow(parser.refused);
  parser_deaths_.Follow(parser.deaths);
  parser_starts_.Follow(parser.starts);
}

void PipelineMetrics::Update(const SampleCounters& kernel, const Collector& collector,
                             const UnwinderCounts& unwinder) {
  samples_.Follow(collector.counts().samples);
  ring_full_.Follow(kernel[FF_COUNT_RING_FULL]);
  pending_.Follow(kernel[FF_COUNT_CGROUP_PENDING]);
  untargeted_.Follow(collector.counts().untargeted);
  other_namespace_.Follow(kernel[FF_COUNT_OTHER_NAMESPACE]);
  unknown_.Follow(collector.counts().unknown);
  window_full_.Follow(collector.counts().window_full);
  other_samples_.Follow(collector.counts().other);
  unread_samples_.Follow(collector.counts().unread);
  unreadable_processes_.Follow(collector.processes().unreadable());
  unopened_files_.Follow(collector.processes().file_failures());
  for (size_t i = 0; i < stack_ends_.size(); ++i)
    stack_ends_[i].Follow(kernel[FF_COUNT_STOP + i]);
  unwind_tables_built_.Follow(unwinder.tables.built);
  unwind_files_absent_.Follow(unwinder.tables.absent);
  unwind_files_damaged_.Follow(unwinder.tables.damaged);
  unwind_files_too_large_.Follow(unwinder.tables.too_large);
  unwind_no_room_.Follow(unwinder.tables.no_room);
  unwind_tables_evicted_.Follow(unwinder.tables.evicted);
  ended_reports_lost_.Follow(kernel[FF_COUNT_ENDED_RING_FULL]);
  unwind_refused_.Follow(unwinder.refused);
  unwind_failed_.Follow(unwinder.failed);
  unwind_table_bytes_.Set(static_cast<double>(unwinder.table_bytes));
  unwind_processes_.Set(static_cast<double>(unwinder.process_count));
}

}  // namespace flamefleet::agent
