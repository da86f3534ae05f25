// SPDX-License-Identifier: Apache-2.0
// Finisher: from a full window to one compressed profile per series: names, encodes, compresses.
//
// Thread: one owner (ff-symbolize). Bounds: `cache_bytes` of names; buffers as large as the largest
// profile.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "agent/compress/gzip_compressor.h"
#include "agent/pipeline/collector.h"
#include "agent/pipeline/cpu_pipeline.h"
#include "agent/profile/profile_builder.h"
#include "agent/symbol/symbolizer.h"
#include "base/pprof/profile.h"

namespace flamefleet::agent {

class Finisher {
 public:
  Finisher(const std::string& proc_root, size_t cache_bytes, std::shared_ptr<ParserProcess> parser,
           CpuPipeline::Sink sink);

  void Finish(const Batch& batch);
  // Whether inlined functions and lines are looked up.
  void SetLines(bool wanted) { symbolizer_.SetLines(wanted); }

  void SetDebugFileFinder(DebugFileFinder finder) {
    symbolizer_.SetDebugFileFinder(std::move(finder));
  }

  // Each halving is for all caches.
  void SetCacheHalvings(int halvings);
  void SetReadsNewFiles(bool reads) { symbolizer_.SetReadsNewFiles(reads); }

  size_t SymbolBytes() const { return symbolizer_.Bytes(); }
  uint64_t NamesRefused() const { return symbolizer_.names_refused(); }
  const LineCounts& line_counts() const { return symbolizer_.line_counts(); }

 private:
  const size_t cache_bytes_;
  int halvings_ = 0;
  bool must_trim_ = false;  // what the window frees goes back to the kernel
  Symbolizer symbolizer_;
  ProfileBuilder builder_{&symbolizer_};
  GzipCompressor compressor_;
  const CpuPipeline::Sink sink_;

  std::vector<std::vector<uint32_t>> stacks_of_series_;
  pprof::Profile profile_;
  std::string encoded_;
  std::string compressed_;
};

}  // namespace flamefleet::agent
