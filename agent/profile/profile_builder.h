// SPDX-License-Identifier: Apache-2.0
// ProfileBuilder: from counted stacks of addresses to a pprof of named functions.
//
// The profile is ordered: main program first and kernel last among the mappings, locations by
// address, samples by stack from the root. Equal profiles are equal bytes, and gzip finds more to
// share. Processes that run the same file at different addresses share its mapping and locations:
// their addresses are moved to where the first of them has it.
//
// A caller's location is its return address minus one: inside the call, as pprof wants it.
//
// Samples of a thread that is told apart have the labels thread_name and thread_id.
//
// Thread: one owner. Units: sample values are nanoseconds of CPU time: count x period. Bounds:
// those of the Window. Reused: a second Build allocates little.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "agent/stack/window.h"
#include "agent/symbol/symbolizer.h"
#include "base/hash.h"
#include "base/pprof/profile.h"

namespace flamefleet::agent {

class ProfileBuilder {
 public:
  explicit ProfileBuilder(Symbolizer* symbolizer) : symbolizer_(symbolizer) {}

  // Looks up the source lines of all stacks of `window`, so that Build knows them; see
  // Symbolizer::ResolveLines.
  void Prepare(const Window& window);

  // Fills `profile` (cleared first) with the stacks of `window` whose numbers are in `stacks`.
  void Build(const Window& window, std::span<const uint32_t> stacks, pprof::Profile* profile);

 private:
  // What tells one pprof mapping from another: the file (or the name of what is not a file), and
  // the part of it.
  using MappingKey = std::tuple<const MappedFile*, std::string, uint64_t>;
  struct Place {
    uint32_t mapping = pprof::kNone;
    uint64_t address = 0;
    uint32_t first_line = 0;  // in place_lines_; the innermost of inlined functions
    uint32_t line_count = 0;
  };
  struct FrameKey {
    uint32_t image;  // kKernelImage for kernel frames
    uint64_t pc;
    friend bool operator==(const FrameKey&, const FrameKey&) = default;
  };
  // Seeded: the profiled process chooses its addresses.
  struct FrameKeyHash {
    SeededHash hash;
    size_t operator()(const FrameKey& key) const { return hash(hash(key.image) ^ key.pc); }
  };
  struct SampleRow {
    uint32_t first = 0;  // in sample_places_
    uint32_t size = 0;
    uint32_t thread = kNoThread;
    int64_t value = 0;
  };

  void AddStack(const Window& window, const Window::Stack& stack);
  uint32_t PlaceOf(const Window& window, uint32_t image, uint64_t pc);
  uint32_t AddPlace(const Place& place, std::span<const Symbolizer::Frame> frames);
  uint32_t FunctionOf(const Symbolizer::Frame& frame);
  uint32_t UserMapping(const ProcessImage& image, const ImageMapping& mapping);
  uint32_t KernelMapping();
  void OrderMappings();
  void OrderLocations();
  void WriteSamples(const Window& window);
  void AddThreadLabels(const ThreadLabel& thread);

  Symbolizer* const symbolizer_;
  pprof::Profile* profile_ = nullptr;  // during Build

  // Of the profile being built. Places are locations before they are ordered.
  std::map<MappingKey, uint32_t> mapping_numbers_;
  std::vector<int> mapping_ranks_;  // 0 main program, 1 library, 2 kernel; by mapping
  uint32_t kernel_mapping_ = pprof::kNone;
  std::unordered_map<FrameKey, uint32_t, FrameKeyHash> frame_places_;
  std::map<std::tuple<uint32_t, uint64_t, uint32_t>, uint32_t> place_numbers_;
  // By name, system name and file.
  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, uint32_t> function_numbers_;
  std::vector<Place> places_;
  std::vector<pprof::Line> place_lines_;
  std::vector<SampleRow> rows_;
  std::vector<uint32_t> sample_places_;  // innermost first; after OrderLocations: location numbers
};

}  // namespace flamefleet::agent
