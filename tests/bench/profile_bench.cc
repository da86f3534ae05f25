// SPDX-License-Identifier: Apache-2.0
// From stacks to compressed bytes, beside the libraries one would use instead.
//
// The profile is made, with the sizes of a real one: a node of two CPUs for 22 s at 97 Hz.
#include <benchmark/benchmark.h>
#include <zlib.h>

#include <cstdlib>
#include <random>
#include <string>

#include "agent/compress/gzip_compressor.h"
#include "agent/stack/window.h"
#include "base/fd.h"
#include "base/pprof/profile.h"
#include "base/status.h"
#include "proto/pprof/profile.pb.h"
#include "tests/bench/ratios.h"

namespace flamefleet {
namespace {

constexpr uint32_t kStacks = 3770;
constexpr uint32_t kLocations = 4946;
constexpr uint32_t kFunctions = 1572;
constexpr uint32_t kDepth = 30;

pprof::Profile MakeProfile() {
  std::mt19937 random(1);
  pprof::Profile profile;
  const pprof::ValueType type{.type = profile.strings.Intern("cpu"),
                              .unit = profile.strings.Intern("nanoseconds")};
  profile.sample_types = {type};
  profile.period_type = type;
  profile.period = 10'309'278;
  profile.mappings.push_back({.memory_start = 0x400000,
                              .memory_limit = 0x900000,
                              .file_name = profile.strings.Intern("/usr/bin/program")});
  for (uint32_t i = 0; i < kFunctions; ++i) {
    const std::string name = "library::module_" + std::to_string(random() % 90) + "::Class" +
                             std::to_string(random() % 400) + "::Function" + std::to_string(i);
    profile.functions.push_back(
        {.name = profile.strings.Intern(name), .system_name = profile.strings.Intern("_Z" + name)});
  }
  for (uint32_t i = 0; i < kLocations; ++i) {
    profile.locations.push_back(
        {.address = 0x400000 + uint64_t{i} * 37, .mapping = 0, .first_line = i, .line_count = 1});
    profile.lines.push_back({.function = static_cast<uint32_t>(random() % kFunctions)});
  }
  // Neighbours in the order of samples share their outer frames, as in an ordered profile.
  std::vector<uint32_t> stack(kDepth);
  for (uint32_t& location : stack)
    location = static_cast<uint32_t>(random() % kLocations);
  for (uint32_t i = 0; i < kStacks; ++i) {
    const uint32_t changed = random() % 8 + 1;
    for (uint32_t k = 0; k < changed; ++k)
      stack[k] = static_cast<uint32_t>(random() % kLocations);
    profile.samples.push_back(
        {.first_location = static_cast<uint32_t>(profile.sample_locations.size()),
         .location_count = kDepth});
    profile.sample_locations.insert(profile.sample_locations.end(), stack.begin(), stack.end());
    profile.values.push_back(profile.period * (random() % 3 + 1));
  }
  return profile;
}

const pprof::Profile& TheProfile() {
  static const pprof::Profile profile = MakeProfile();
  return profile;
}

const std::string& TheBytes() {
  static const std::string bytes = [] {
    std::string out;
    pprof::Encode(TheProfile(), &out);
    return out;
  }();
  return bytes;
}

// Per iteration of the state: time per sample and allocations, both as columns.
void CountPerProfile(benchmark::State& state, uint64_t allocations_before) {
  const auto iterations = static_cast<double>(state.iterations());
  state.counters["allocs/profile"] =
      static_cast<double>(bench::Allocations() - allocations_before) / iterations;
  state.counters["time/sample"] = benchmark::Counter(
      kStacks * iterations, benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

void Encode(benchmark::State& state) {
  const pprof::Profile& profile = TheProfile();
  std::string out = TheBytes();
  const uint64_t before = bench::Allocations();
  for ([[maybe_unused]] auto _ : state) {
    out.clear();
    pprof::Encode(profile, &out);
    benchmark::DoNotOptimize(out.data());
  }
  CountPerProfile(state, before);
}
BENCHMARK(Encode);

void FillMessage(const pprof::Profile& profile, perftools::profiles::Profile* message) {
  for (const pprof::ValueType& type : profile.sample_types) {
    auto* const out = message->add_sample_type();
    out->set_type(type.type);
    out->set_unit(type.unit);
  }
  for (size_t i = 0; i < profile.samples.size(); ++i) {
    auto* const out = message->add_sample();
    const pprof::Sample& sample = profile.samples[i];
    for (uint32_t k = 0; k < sample.location_count; ++k)
      out->add_location_id(profile.sample_locations[sample.first_location + k] + 1);
    out->add_value(profile.values[i]);
  }
  for (uint32_t i = 0; i < profile.locations.size(); ++i) {
    auto* const out = message->add_location();
    out->set_id(i + 1);
    out->set_mapping_id(profile.locations[i].mapping + 1);
    out->set_address(profile.locations[i].address);
    out->add_line()->set_function_id(profile.lines[i].function + 1);
  }
  for (uint32_t i = 0; i < profile.functions.size(); ++i) {
    auto* const out = message->add_function();
    out->set_id(i + 1);
    out->set_name(profile.functions[i].name);
    out->set_system_name(profile.functions[i].system_name);
  }
  for (uint32_t i = 0; i < profile.strings.Size(); ++i) {
    const std::string_view text = profile.strings.Get(i);
    message->add_string_table(text.data(), text.size());
  }
}

void EncodeLibprotobuf(benchmark::State& state) {
  const pprof::Profile& profile = TheProfile();
  perftools::profiles::Profile message;
  std::string out;
  const uint64_t before = bench::Allocations();
  for ([[maybe_unused]] auto _ : state) {
    message.Clear();
    FillMessage(profile, &message);
    message.SerializeToString(&out);
    benchmark::DoNotOptimize(out.data());
  }
  CountPerProfile(state, before);
}
BENCHMARK(EncodeLibprotobuf);

void ReportCompression(benchmark::State& state, size_t compressed) {
  state.SetBytesProcessed(static_cast<int64_t>(TheBytes().size()) *
                          static_cast<int64_t>(state.iterations()));
  state.counters["bytes"] = static_cast<double>(compressed);
  state.counters["ratio"] =
      static_cast<double>(TheBytes().size()) / static_cast<double>(compressed);
}

void Igzip(benchmark::State& state) {
  agent::GzipCompressor compressor;
  std::string out;
  compressor.Compress(TheBytes(), &out);
  const uint64_t before = bench::Allocations();
  for ([[maybe_unused]] auto _ : state) {
    compressor.Compress(TheBytes(), &out);
    benchmark::DoNotOptimize(out.data());
  }
  CountPerProfile(state, before);
  ReportCompression(state, out.size());
}
BENCHMARK(Igzip);

// zlib at its best: one stream, reset between profiles.
void ZlibAt(benchmark::State& state, int level) {
  z_stream stream{};
  constexpr int kGzip = 15 + 16;
  FF_CHECK(deflateInit2(&stream, level, Z_DEFLATED, kGzip, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  const std::string& input = TheBytes();
  std::string out(deflateBound(&stream, input.size()), '\0');
  size_t size = 0;
  for ([[maybe_unused]] auto _ : state) {
    deflateReset(&stream);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(input.data()));
    stream.avail_in = static_cast<uInt>(input.size());
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = static_cast<uInt>(out.size());
    FF_CHECK(deflate(&stream, Z_FINISH) == Z_STREAM_END);
    size = stream.total_out;
  }
  deflateEnd(&stream);
  ReportCompression(state, size);
}
void Zlib1(benchmark::State& state) {
  ZlibAt(state, 1);
}
void Zlib6(benchmark::State& state) {
  ZlibAt(state, 6);
}
BENCHMARK(Zlib1);
BENCHMARK(Zlib6);

// Counting the samples of a window that is reused.
void CountStacks(benchmark::State& state) {
  const pprof::Profile& profile = TheProfile();
  std::vector<std::vector<uint64_t>> stacks;
  for (const pprof::Sample& sample : profile.samples) {
    std::vector<uint64_t>& stack = stacks.emplace_back();
    for (uint32_t k = 0; k < sample.location_count; ++k)
      stack.push_back(
          profile.locations[profile.sample_locations[sample.first_location + k]].address);
  }
  agent::Window window;
  bool is_new = false;
  for (const auto& stack : stacks)
    window.Add({.user_frames = stack}, &is_new);
  const uint64_t before = bench::Allocations();
  for ([[maybe_unused]] auto _ : state) {
    window.Clear();
    for (const auto& stack : stacks)
      window.Add({.user_frames = stack}, &is_new);
  }
  CountPerProfile(state, before);
}
BENCHMARK(CountStacks);

}  // namespace
}  // namespace flamefleet

// With FF_PROFILE_OUT, a file, what is compressed goes there: gzippeers compresses it too.
int main(int argc, char** argv) {
  if (const char* const path = std::getenv("FF_PROFILE_OUT"))
    FF_CHECK(flamefleet::WriteFileAtomically(path, flamefleet::TheBytes(), 0600).ok());
  return flamefleet::bench::RunAndPrintRatios(
      argc, argv, {{"Encode", "EncodeLibprotobuf"}, {"Igzip", "Zlib1"}, {"Igzip", "Zlib6"}});
}
