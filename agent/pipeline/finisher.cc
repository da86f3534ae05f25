// SPDX-License-Identifier: Apache-2.0
#include "agent/pipeline/finisher.h"

#include <malloc.h>

#include <utility>

namespace flamefleet::agent {

Finisher::Finisher(const std::string& proc_root, size_t cache_bytes,
                   std::shared_ptr<ParserProcess> parser, CpuPipeline::Sink sink)
    : cache_bytes_(cache_bytes),
      symbolizer_(proc_root, cache_bytes, std::move(parser)),
      sink_(std::move(sink)) {}

void Finisher::SetCacheHalvings(int halvings) {
  symbolizer_.SetMaxBytes(cache_bytes_ >> halvings);
  must_trim_ = halvings > halvings_;
  halvings_ = halvings;
}

void Finisher::Finish(const Batch& batch) {
  const Window& window = *batch.window;
  stacks_of_series_.resize(batch.series.size());
  for (std::vector<uint32_t>& stacks : stacks_of_series_)
    stacks.clear();
  for (uint32_t i = 0; i < window.stacks().size(); ++i)
    stacks_of_series_[window.stacks()[i].series].push_back(i);

  builder_.Prepare(window);
  for (size_t i = 0; i < batch.series.size(); ++i) {
    const std::vector<uint32_t>& stacks = stacks_of_series_[i];
    if (stacks.empty()) continue;
    const CpuTarget& target = *batch.series[i].target;
    FinishedProfile finished{.collection = target.collection,
                             .backend = target.backend,
                             .labels = target.labels,
                             .time_ns = window.start_ns,
                             .stack_ends = batch.series[i].stack_ends};
    for (const uint32_t stack : stacks)
      finished.samples += window.stacks()[stack].count;
    builder_.Build(window, stacks, &profile_);
    encoded_.clear();
    pprof::Encode(profile_, &encoded_);
    compressor_.Compress(encoded_, &compressed_);
    finished.pprof = compressed_;
    sink_(std::move(finished));
  }
  symbolizer_.EndWindow();
  if (std::exchange(must_trim_, false)) ::malloc_trim(0);
}

}  // namespace flamefleet::agent
