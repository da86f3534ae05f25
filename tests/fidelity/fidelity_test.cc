// SPDX-License-Identifier: Apache-2.0
// Profiles of programs whose profile is known: shares, whole stacks, names. All run at once, under
// one pipeline, as on a node.
#include <fnmatch.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "agent/pipeline/cpu_pipeline.h"
#include "base/metrics.h"
#include "tests/bpf/child.h"
#include "tests/fidelity/stacks.h"

namespace flamefleet::agent {
namespace {

using flamefleet::testing::Child;
using flamefleet::testing::Stack;
using flamefleet::testing::StacksOf;
using flamefleet::testing::WantedSamples;

using Names = std::vector<std::string>;  // innermost first; '*' stands for any text

// A sample falls into Seventy with probability 0.7, whatever those before it did: between two
// samples of a program, 1 ms of its CPU time apart, are some 20 stretches of random length. So of n
// samples the share has the standard error sqrt(0.7 * 0.3 / n). kSigmas of them are exceeded by
// chance once in 26 million programs. That makes 5.0 points after 2500 samples, and the goal, 1
// point, after 63525: see docs/performance.md for how to run this with as many.
constexpr uint64_t kSamples = 2500;
constexpr double kSigmas = 5.5;
constexpr uint32_t kFrequencyHz = 997;
constexpr double kGoal = 0.995;  // of the stacks are complete
constexpr double kShare = 0.70;

const Names kMain = {"main", "*", "__libc_start_main*", "_start"};
const Names kChain = {"Middle", "Hop", "Outer"};

Names Join(Names names, const Names& more) {
  names.insert(names.end(), more.begin(), more.end());
  return names;
}

struct Program {
  std::string name;  // of the executable, which is the service
  Names inner;       // what must call Seventy and Thirty
  Names outer;       // what the stack must end with
  bool has_gap;      // whether something unknown may be between the two
};

bool Match(const std::string& name, const std::string& pattern) {
  return ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

// What a program's profiles say, from the first on that has nothing but whole stacks with right
// names: until then its tables, or those of its last library, were not there.
struct Seen {
  bool is_settled = false;
  uint64_t samples = 0;
  uint64_t complete = 0;
  uint64_t seventy = 0;
  uint64_t thirty = 0;
  uint64_t wrong = 0;
  std::string example;  // of a wrong stack

  void Add(const FinishedProfile& profile, const Program& program);
  void AddStack(const Stack& stack, const Program& program);
  double Share() const {
    return static_cast<double>(seventy) / static_cast<double>(seventy + thirty);
  }
  double ShareError() const {
    return std::sqrt(kShare * (1 - kShare) / static_cast<double>(seventy + thirty));
  }
};

void Seen::AddStack(const Stack& stack, const Program& program) {
  const Names& names = stack.names;
  samples += stack.count;
  if (!names.empty() && names.back() == "_start") complete += stack.count;
  const auto burner = std::find_if(names.begin(), names.end(), [](const std::string& name) {
    return name == "Seventy" || name == "Thirty";
  });
  if (burner == names.end()) return;
  (*burner == "Seventy" ? seventy : thirty) += stack.count;
  const Names callers(burner + 1, names.end());
  const size_t least = program.inner.size() + program.outer.size();
  const bool has_size = program.has_gap ? callers.size() >= least : callers.size() == least;
  if (has_size &&
      std::equal(program.inner.begin(), program.inner.end(), callers.begin(),
                 [](const auto& a, const auto& b) { return Match(b, a); }) &&
      std::equal(program.outer.rbegin(), program.outer.rend(), callers.rbegin(),
                 [](const auto& a, const auto& b) { return Match(b, a); }))
    return;
  wrong += stack.count;
  example.clear();
  for (const std::string& name : names)
    example += name + " ";
}

void Seen::Add(const FinishedProfile& profile, const Program& program) {
  Seen more = *this;
  for (const Stack& stack : StacksOf(profile))
    more.AddStack(stack, program);
  const bool is_right = more.seventy > seventy && more.thirty > thirty && more.wrong == wrong &&
                        more.complete - complete == more.samples - samples;
  more.is_settled = is_settled || is_right;
  if (more.is_settled)
    *this = more;
  else
    example = more.example;
}

class Fidelity : public ::testing::Test {
 protected:
  // Adds up what the pipeline gives until each program has its samples.
  void Run(const std::vector<Program>& programs, const std::vector<uint32_t>& pids) {
    for (const Program& program : programs)
      programs_[program.name] = program;
    Metrics metrics;
    auto pipeline =
        CpuPipeline::Create({.scope = CpuPipelineOptions::Scope::kHost,
                             .pids = pids,
                             .frequency_hz = kFrequencyHz,
                             .window = std::chrono::milliseconds(1000)},
                            &metrics, [this](const FinishedProfile& profile) { Take(profile); });
    ASSERT_TRUE(pipeline.ok()) << pipeline.status();
    const auto deadline =
        std::chrono::steady_clock::now() + std::chrono::minutes(8) * (wanted_ / kSamples);
    while (!HasAll() && std::chrono::steady_clock::now() < deadline)
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    (*pipeline)->Stop();
    for (const auto& [name, program] : programs_) {
      EXPECT_GE(seen_[name].samples, wanted_)
          << name << " gave too few in time, or none whose stacks are whole and named: "
          << seen_[name].example;
    }
  }

  void Take(const FinishedProfile& profile) {
    const std::lock_guard lock(mutex_);
    const auto program = programs_.find(profile.labels.at("service_name"));
    if (program == programs_.end()) return;
    seen_[program->first].Add(profile, program->second);
  }

  bool HasAll() {
    const std::lock_guard lock(mutex_);
    return std::ranges::all_of(
        programs_, [this](const auto& program) { return seen_[program.first].samples >= wanted_; });
  }

  const uint64_t wanted_ = WantedSamples(kSamples);
  std::mutex mutex_;
  std::map<std::string, Program> programs_;
  std::map<std::string, Seen> seen_;
};

TEST_F(Fidelity, SharesStacksAndNamesOfKnownProgramsAreRight) {
  const std::string directory = FF_SHARES_DIRECTORY;
  std::vector<std::unique_ptr<Child>> children;
  std::vector<uint32_t> pids;
  const auto start = [&](const std::string& name, const std::vector<std::string>& arguments) {
    children.push_back(std::make_unique<Child>(directory + name, arguments));
    pids.push_back(children.back()->pid());
  };
  for (const char* const name :
       {"shares_plain", "shares_fixed", "shares_static", "shares_stripped", "shares_with_fp"})
    start(name, {"plain"});
  start("shares_signal", {"signal"});
  start("shares_deep", {"deep"});
  start("shares_late", {"late", FF_SHARES_LATE});
  start("shares_exec", {"exec", directory + "shares_after"});

  std::vector<Program> programs;
  for (const char* const name : {"shares_plain", "shares_fixed", "shares_static", "shares_stripped",
                                 "shares_with_fp", "shares_after"})
    programs.push_back({name, kChain, kMain, false});
  programs.push_back(
      {"shares_signal", Join(kChain, {"*OnSignal*"}), Join({"Interrupted"}, kMain), true});
  programs.push_back({"shares_deep", Join(kChain, Names(60, "Recurse")), kMain, false});
  programs.push_back({"shares_late", Join(kChain, {"LateCall"}), kMain, false});
  Run(programs, pids);

  for (const auto& [name, seen] : seen_) {
    const auto known = static_cast<double>(seen.seventy + seen.thirty);
    const auto samples = static_cast<double>(seen.samples);
    std::printf("%-16s %6.0f samples  share %.4f +- %.4f  complete %.4f  wrong %.4f\n",
                name.c_str(), samples, seen.Share(), seen.ShareError(),
                static_cast<double>(seen.complete) / samples,
                static_cast<double>(seen.wrong) / samples);
    EXPECT_NEAR(seen.Share(), kShare, kSigmas * seen.ShareError()) << name;
    EXPECT_GT(known / samples, 0.95) << name;  // the rest is their callers', and poll
    EXPECT_GE(static_cast<double>(seen.complete) / samples, kGoal) << name;
    EXPECT_LE(static_cast<double>(seen.wrong) / samples, 1 - kGoal) << name << ": " << seen.example;
  }
}

}  // namespace
}  // namespace flamefleet::agent
