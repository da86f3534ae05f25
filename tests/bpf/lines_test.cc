// SPDX-License-Identifier: Apache-2.0
// From a running program with DWARF to a profile with its inlined functions and lines, on the
// kernel of this machine.
#include <gtest/gtest.h>

#include <condition_variable>
#include <fstream>
#include <mutex>
#include <vector>

#include "agent/pipeline/cpu_pipeline.h"
#include "base/metrics.h"
#include "base/pprof/profile.h"
#include "base/pprof/top.h"
#include "tests/bpf/child.h"
#include "tests/support/command.h"
#include "tests/support/skip.h"
#include "tests/support/temp_dir.h"

namespace flamefleet::agent {
namespace {

// The number of the line of the program that has the remark.
int64_t LineOf(const std::string& remark) {
  std::ifstream source(FF_INLINED_SOURCE);
  int64_t number = 1;
  for (std::string line; std::getline(source, line); ++number) {
    if (line.ends_with("// " + remark)) return number;
  }
  ADD_FAILURE() << "no line says " << remark;
  return 0;
}

// All profiles of the program until they have that many samples.
std::vector<FinishedProfile> ProfileProgram(uint64_t samples) {
  const flamefleet::testing::Child program(FF_INLINED, {});
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<FinishedProfile> profiles;
  uint64_t total = 0;
  Metrics metrics;
  const auto pipeline = CpuPipeline::Create({.scope = CpuPipelineOptions::Scope::kHost,
                                             .pids = {program.pid()},
                                             .frequency_hz = 199,
                                             .window = std::chrono::milliseconds(1000)},
                                            &metrics, [&](FinishedProfile profile) {
                                              const std::lock_guard lock(mutex);
                                              total += profile.samples;
                                              profiles.push_back(std::move(profile));
                                              changed.notify_all();
                                            });
  EXPECT_TRUE(pipeline.ok()) << pipeline.status();
  if (!pipeline.ok()) return {};
  {
    std::unique_lock lock(mutex);
    EXPECT_TRUE(changed.wait_for(lock, std::chrono::seconds(60), [&] { return total >= samples; }));
  }
  (*pipeline)->Stop();
  return profiles;
}

std::string FunctionOf(const pprof::Profile& profile, const pprof::Line& line) {
  return std::string(profile.strings.Get(profile.functions[line.function].name));
}

std::string FileOf(const pprof::Profile& profile, const pprof::Line& line) {
  return std::string(profile.strings.Get(profile.functions[line.function].file_name));
}

TEST(Lines, AnInlinedFunctionIsInTheProfileWithItsLineAndItsCallers) {
  int64_t total = 0;
  int64_t inlined = 0;
  int64_t hottest = 0;  // the inlined function itself
  int64_t called = 0;   // what it is inlined into, with all that it calls
  for (const FinishedProfile& finished : ProfileProgram(200)) {
    pprof::Profile profile;
    ASSERT_TRUE(pprof::Decode(finished.pprof, {}, &profile).ok());
    EXPECT_TRUE(profile.mappings.at(0).has_file_names);
    EXPECT_TRUE(profile.mappings.at(0).has_line_numbers);
    EXPECT_TRUE(profile.mappings.at(0).has_inline_frames);
    for (size_t i = 0; i < profile.samples.size(); ++i) {
      total += profile.values[i];
      for (uint32_t k = 0; k < profile.samples[i].location_count; ++k) {
        const pprof::Location& location =
            profile.locations[profile.sample_locations[profile.samples[i].first_location + k]];
        if (location.line_count != 2) continue;
        const pprof::Line& inner = profile.lines[location.first_line];
        const pprof::Line& outer = profile.lines[location.first_line + 1];
        if (FunctionOf(profile, inner) != "shop::Basket::Add") continue;
        EXPECT_EQ(FileOf(profile, inner), FF_INLINED_SOURCE);
        EXPECT_GE(inner.line, LineOf("first hot line"));
        EXPECT_LE(inner.line, LineOf("last hot line") + 1);
        EXPECT_EQ(FunctionOf(profile, outer), "shop::Price");
        EXPECT_EQ(FileOf(profile, outer), FF_INLINED_SOURCE);
        EXPECT_EQ(outer.line, LineOf("call"));
        inlined += profile.values[i];
      }
    }
    // What the store shows as a table.
    for (const pprof::TopFunction& function : pprof::HottestFunctions(profile, 0, 10).functions) {
      if (function.name == "shop::Basket::Add") hottest += function.flat;
      if (function.name == "shop::Price") called += function.cum;
    }
  }
  EXPECT_GT(static_cast<double>(inlined), 0.95 * static_cast<double>(total));
  EXPECT_GT(static_cast<double>(hottest), 0.95 * static_cast<double>(total));
  EXPECT_GT(static_cast<double>(called), 0.95 * static_cast<double>(total));
}

TEST(Lines, GoToolPprofListsThem) {
  if (RunCommand({"go", "version"}).exit_code != 0) FF_SKIP("go is not installed");
  const TempDir directory;
  const std::string path = directory.path() + "/cpu.pb.gz";
  std::vector<FinishedProfile> profiles = ProfileProgram(100);
  ASSERT_FALSE(profiles.empty());
  std::ofstream(path) << profiles.back().pprof;
  const CommandResult lines =
      RunCommand({"go", "tool", "pprof", "-symbolize=none", "-lines", "-top", path});
  EXPECT_NE(lines.out.find("shop::Basket::Add " + std::string(FF_INLINED_SOURCE) + ":"),
            std::string::npos)
      << lines.out << lines.err;
  EXPECT_NE(lines.out.find("(inline)"), std::string::npos) << lines.out;
  const CommandResult list =
      RunCommand({"go", "tool", "pprof", "-symbolize=none", "-list=shop::Price", path});
  const std::string call = std::to_string(LineOf("call")) + ":";
  const size_t at = list.out.find(call);
  ASSERT_NE(at, std::string::npos) << list.out << list.err;
  EXPECT_NE(list.out.substr(at).find("basket.Add(count)"), std::string::npos) << list.out;
}

}  // namespace
}  // namespace flamefleet::agent
