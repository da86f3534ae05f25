// SPDX-License-Identifier: Apache-2.0
// Profiles of programs of Node, Go, Rust and Java whose profile is known, as in fidelity_test.cc.
#include <fnmatch.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <mutex>
#include <numeric>
#include <string>
#include <vector>

#include "agent/pipeline/cpu_pipeline.h"
#include "base/fd.h"
#include "base/metrics.h"
#include "bpf/profiler.h"
#include "tests/bpf/child.h"
#include "tests/fidelity/stacks.h"
#include "tests/support/command.h"
#include "tests/support/skip.h"
#include "tests/support/temp_dir.h"
#include "tests/support/wait.h"

namespace flamefleet::agent {
namespace {

using flamefleet::testing::Child;
using flamefleet::testing::Stack;
using flamefleet::testing::StacksOf;
using flamefleet::testing::WantedSamples;

// See fidelity_test.cc: 1000 samples make 8 points of what chance allows, 64000 make 1.
constexpr uint64_t kSamples = 1000;
constexpr double kSigmas = 5.5;
constexpr double kShare = 0.70;
// In its first and last instructions a function has no frame yet or no more, which frame pointers
// cannot tell: its caller is missing then.
constexpr double kMaxWrong = 0.01;
constexpr double kMaxWrongOfJava = 0.03;  // it does more before it has one: 0.7 % seen
constexpr double kGoal = 0.995;           // of the stacks are right, where there are tables

// What the names of the known chain look like: of the function in which 70 % are, of the other one,
// of who calls them, innermost first, and of the one that they call.
struct Known {
  std::string seventy;
  std::string thirty;
  std::vector<std::string> callers;
  std::string leaf;
  double max_wrong = kMaxWrong;
  double least_complete = 0;
};

bool Match(const std::string& name, const std::string& pattern) {
  return ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

class Shares {
 public:
  explicit Shares(Known known) : known_(std::move(known)) {}

  // Counts from the first profile on whose stacks are right: until then code is still being made,
  // or its names are.
  void Add(const FinishedProfile& profile) {
    Shares more = *this;
    for (const Stack& stack : StacksOf(profile))
      more.AddStack(stack);
    more.complete_ += profile.stack_ends[FF_STOP_COMPLETE];
    const uint64_t new_known = more.known() - known();
    const uint64_t new_wrong = more.wrong_ - wrong_;
    const bool is_right = new_known > 0 && static_cast<double>(new_wrong) <=
                                               known_.max_wrong * static_cast<double>(new_known);
    if (is_settled_ || is_right)
      *this = more;
    else
      example_ = more.example_;
    is_settled_ = is_settled_ || is_right;
  }

  uint64_t known() const { return seventy_ + thirty_; }
  uint64_t samples() const { return samples_; }
  uint64_t complete() const { return complete_; }
  uint64_t wrong() const { return wrong_; }
  double share() const { return static_cast<double>(seventy_) / static_cast<double>(known()); }
  const std::string& example() const { return example_; }

 private:
  void AddStack(const Stack& stack) {
    samples_ += stack.count;
    const auto burner = std::ranges::find_if(stack.names, [this](const std::string& name) {
      return Match(name, known_.seventy) || Match(name, known_.thirty);
    });
    // In their callers, or in the runtime, unless it is the leaf and they are missing.
    const bool is_burnt = burner != stack.names.end();
    if (!is_burnt && std::ranges::none_of(stack.names, [this](const std::string& name) {
          return Match(name, known_.leaf);
        }))
      return;
    if (is_burnt) {
      (Match(*burner, known_.seventy) ? seventy_ : thirty_) += stack.count;
      const std::vector<std::string> callers(burner + 1, stack.names.end());
      if (callers.size() >= known_.callers.size() &&
          std::equal(known_.callers.begin(), known_.callers.end(), callers.begin(),
                     [](const auto& pattern, const auto& name) { return Match(name, pattern); }))
        return;
    }
    wrong_ += stack.count;
    example_.clear();
    for (const std::string& name : stack.names)
      example_ += name + " ";
  }

  Known known_;
  bool is_settled_ = false;
  uint64_t samples_ = 0;
  uint64_t complete_ = 0;
  uint64_t seventy_ = 0;
  uint64_t thirty_ = 0;
  uint64_t wrong_ = 0;
  std::string example_;
};

void ExpectKnownProfile(const Child& child, const Known& known) {
  const uint64_t wanted = WantedSamples(kSamples);
  std::mutex mutex;
  Shares shares(known);
  Metrics metrics;
  auto pipeline = CpuPipeline::Create({.scope = CpuPipelineOptions::Scope::kHost,
                                       .pids = {child.pid()},
                                       .frequency_hz = 997,
                                       .window = std::chrono::milliseconds(1000)},
                                      &metrics, [&](const FinishedProfile& profile) {
                                        const StackEnds& ends = profile.stack_ends;
                                        EXPECT_EQ(std::accumulate(ends.begin(), ends.end(), 0U),
                                                  profile.samples);
                                        const std::lock_guard lock(mutex);
                                        shares.Add(profile);
                                      });
  ASSERT_TRUE(pipeline.ok()) << pipeline.status();
  const auto has_all = [&] {
    const std::lock_guard lock(mutex);
    return shares.known() >= wanted;
  };
  WaitUntil(has_all, std::chrono::minutes(4) * (wanted / kSamples));
  (*pipeline)->Stop();
  ASSERT_GE(shares.known(), wanted)
      << "too few in time, or none that are whole and named: " << shares.example();
  const auto count = static_cast<double>(shares.known());
  const double error = std::sqrt(kShare * (1 - kShare) / count);
  const double wrong = static_cast<double>(shares.wrong()) / count;
  const double complete =
      static_cast<double>(shares.complete()) / static_cast<double>(shares.samples());
  std::printf("%.0f samples of %.0f  share %.4f +- %.4f  complete %.4f  wrong %.4f\n", count,
              static_cast<double>(shares.samples()), shares.share(), error, complete, wrong);
  EXPECT_NEAR(shares.share(), kShare, kSigmas * error);
  EXPECT_LE(wrong, known.max_wrong) << shares.example();
  EXPECT_GE(complete, known.least_complete);
}

std::string PerfMapOf(uint32_t pid) {
  return "/tmp/perf-" + std::to_string(pid) + ".map";
}

// What a runtime writes there stays when it ends.
class PerfMapGuard {
 public:
  explicit PerfMapGuard(uint32_t pid) : path_(PerfMapOf(pid)) {}
  ~PerfMapGuard() { std::filesystem::remove(path_); }
  PerfMapGuard(const PerfMapGuard&) = delete;
  PerfMapGuard& operator=(const PerfMapGuard&) = delete;

 private:
  const std::string path_;
};

// Code made at run time, baseline code alone: what is optimised inlines the functions.
void ExpectKnownProfileOfNode(const std::string& option) {
  const TempDir directory;
  const Child node("/usr/bin/env", {"-C", directory.path(), "node", option, "--no-opt",
                                    "--always-sparkplug", FF_FIDELITY_SOURCES "/shares.js"});
  const PerfMapGuard guard(node.pid());
  ExpectKnownProfile(node, {.seventy = "JS:*Seventy *shares.js*",
                            .thirty = "JS:*Thirty *shares.js*",
                            .callers = {"JS:*Middle *", "JS:*Outer *", "JS:* *shares.js:1:1"}});
}

TEST(Runtimes, NodeIsNamedByItsPerfMap) {
  ExpectKnownProfileOfNode("--perf-basic-prof");
}

TEST(Runtimes, NodeIsNamedByItsJitDump) {
  ExpectKnownProfileOfNode("--perf-prof");
}

void ExpectKnownProfileOfGo(const std::string& linking) {
  if (RunCommand({"go", "version"}).exit_code != 0) FF_SKIP("go is not installed");
  const TempDir directory;
  const std::string program = directory.path() + "/shares";
  const CommandResult built = RunCommand(
      {"go", "build", "-o", program, "-ldflags=" + linking, FF_FIDELITY_SOURCES "/shares.go"});
  ASSERT_EQ(built.exit_code, 0) << built.err;
  const Child go(program, {});
  ExpectKnownProfile(
      go, {.seventy = "main.Seventy",
           .thirty = "main.Thirty",
           .callers = {"main.Middle", "main.Outer", "main.main", "runtime.main", "runtime.goexit*"},
           .leaf = "main.Spin",
           .max_wrong = 1 - kGoal,
           .least_complete = kGoal});
}

TEST(Runtimes, GoHasTheCallersOfFunctionsWithoutAFrame) {
  ExpectKnownProfileOfGo("");
}

TEST(Runtimes, StrippedGoHasThemAsWell) {
  ExpectKnownProfileOfGo("-s -w");
}

TEST(Runtimes, RustIsNamedDownToItsEntry) {
  if (RunCommand({"rustc", "--version"}).exit_code != 0) FF_SKIP("rustc is not installed");
  const TempDir directory;
  const std::string program = directory.path() + "/shares";
  const CommandResult built =
      RunCommand({"rustc", "-O", "-o", program, FF_FIDELITY_SOURCES "/shares.rs"});
  ASSERT_EQ(built.exit_code, 0) << built.err;
  const Child rust(program, {});
  ExpectKnownProfile(rust, {.seventy = "shares::seventy",
                            .thirty = "shares::thirty",
                            .callers = {"shares::middle", "shares::outer", "shares::main",
                                        "std::sys::*__rust_begin_short_backtrace*"},
                            .leaf = "shares::spin",
                            .max_wrong = 1 - kGoal,
                            .least_complete = kGoal});
}

// Whether the Java machine has written a map of its code that has this function.
bool HasWrittenMap(uint32_t pid, const std::string& function) {
  RunCommand({"jcmd", std::to_string(pid), "Compiler.perfmap"});
  const Result<std::string> map = ReadFile(PerfMapOf(pid), size_t{16} << 20);
  return map.ok() && map->find(function) != std::string::npos;
}

// Code made at run time by frame pointers; all of it compiled before it runs first.
TEST(Runtimes, JavaIsNamedByAPerfMap) {
  if (RunCommand({"javac", "-version"}).exit_code != 0) FF_SKIP("a JDK is not installed");
  const TempDir directory;
  const CommandResult built =
      RunCommand({"javac", "-d", directory.path(), FF_FIDELITY_SOURCES "/Shares.java"});
  ASSERT_EQ(built.exit_code, 0) << built.err;
  const Child java("/usr/bin/env",
                   {"java", "-Xcomp", "-XX:TieredStopAtLevel=1", "-XX:+PreserveFramePointer",
                    "-XX:+UseSerialGC", "-XX:CompileCommand=quiet",
                    "-XX:CompileCommand=dontinline,Shares.*", "-cp", directory.path(), "Shares"});
  const PerfMapGuard guard(java.pid());
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(3);
  bool has_map = false;
  while (!has_map && std::chrono::steady_clock::now() < deadline)
    has_map = HasWrittenMap(java.pid(), "Shares.random(");
  EXPECT_TRUE(has_map);
  ExpectKnownProfile(java, {.seventy = "*Shares.seventy(*",
                            .thirty = "*Shares.thirty(*",
                            .callers = {"*Shares.middle(*", "*Shares.outer(*", "*Shares.main(*"},
                            .leaf = "*Shares.spin(*",
                            .max_wrong = kMaxWrongOfJava});
}

}  // namespace
}  // namespace flamefleet::agent
