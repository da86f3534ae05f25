// SPDX-License-Identifier: Apache-2.0
// The scraper's parts against a real Go program with net/http/pprof (goprogram/).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <thread>

#include "agent/scrape/rewrite.h"
#include "agent/scrape/scrape_job.h"
#include "base/http/fetch.h"
#include "tests/base/pprof/test_profiles.h"
#include "tests/support/child_process.h"
#include "tests/support/command.h"
#include "tests/support/skip.h"
#include "tests/support/temp_dir.h"

namespace flamefleet::agent {
namespace {

// The sum of one sample type over the stacks that pass through `function`.
int64_t SumThrough(const pprof::Profile& profile, const std::string& type,
                   const std::string& function) {
  size_t column = 0;
  while (profile.strings.Get(profile.sample_types[column].type) != type)
    ++column;
  int64_t sum = 0;
  for (size_t s = 0; s < profile.samples.size(); ++s) {
    const pprof::Sample& sample = profile.samples[s];
    bool passes = false;
    for (uint32_t l = 0; l < sample.location_count; ++l) {
      const auto& location = profile.locations[profile.sample_locations[sample.first_location + l]];
      for (uint32_t i = 0; i < location.line_count; ++i) {
        const auto& line = profile.lines[location.first_line + i];
        passes |= profile.strings.Get(profile.functions[line.function].name) == function;
      }
    }
    if (passes) sum += profile.values[s * profile.sample_types.size() + column];
  }
  return sum;
}

class GoProgramTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    directory_ = std::make_unique<TempDir>();
    const CommandResult built = RunCommand({"go", "build", "-C", "tests/agent/scrape/goprogram",
                                            "-o", directory_->path() + "/goprogram", "."});
    built_ = built.exit_code == 0;
    problem_ = built.err;
  }
  static void TearDownTestSuite() { directory_.reset(); }

  void SetUp() override {
    if (!built_) FF_SKIP("the Go program was not built: " + problem_);
    program_ =
        std::make_unique<ChildProcess>(std::vector<std::string>{directory_->path() + "/goprogram"});
    port_ = static_cast<uint16_t>(std::stoi(program_->AwaitLine("port ")));
  }

  void Work(const std::string& what, int count) const {
    const auto response = Fetch({.address = "127.0.0.1",
                                 .port = port_,
                                 .target = "/" + what + "?count=" + std::to_string(count),
                                 .timeout = std::chrono::seconds(60)},
                                {});
    ASSERT_TRUE(response.ok()) << response.status();
    ASSERT_EQ(response->status, 200);
  }

  std::string Get(ProfileType type, const std::string& path) const {
    const ScrapeJob job = {.key = {.type = type},
                           .address = "127.0.0.1",
                           .port = port_,
                           .path = path,
                           .interval = std::chrono::milliseconds(2'000),
                           .timeout = std::chrono::milliseconds(60'000)};
    const auto response = Fetch(FetchOptionsOf(job), {});
    EXPECT_TRUE(response.ok()) << response.status();
    EXPECT_EQ(response->status, 200) << response->body;
    return response->body;
  }

  // Scrapes once; an empty profile when there is nothing to send.
  pprof::Profile Scrape(ProfileType type, const std::string& path, Delta* delta) const {
    const auto rewritten = RewriteProfile(Get(type, path), 1, std::chrono::seconds(1), delta);
    EXPECT_TRUE(rewritten.ok()) << rewritten.status();
    return *rewritten ? pprof::DecodeOrDie((*rewritten)->pprof) : pprof::Profile();
  }

  static inline std::unique_ptr<TempDir> directory_;
  static inline bool built_ = false;
  static inline std::string problem_;
  std::unique_ptr<ChildProcess> program_;
  uint16_t port_ = 0;
};

TEST_F(GoProgramTest, EachAllocationIsInExactlyOneProfile) {
  Delta delta;
  Work("widgets", 100);
  pprof::Profile profile = Scrape(ProfileType::kMemory, "/debug/pprof/allocs", &delta);
  EXPECT_EQ(SumThrough(profile, "alloc_objects", "main.makeWidgets"), 0);
  EXPECT_GE(SumThrough(profile, "inuse_space", "main.makeWidgets"), 100 * 2048);
  for (const int count : {7, 300, 41}) {
    Work("widgets", count);
    profile = Scrape(ProfileType::kMemory, "/debug/pprof/allocs", &delta);
    // The widgets themselves; the slice that holds them is allocated a few more times.
    const int64_t objects = SumThrough(profile, "alloc_objects", "main.makeWidgets");
    EXPECT_GE(objects, count);
    EXPECT_LE(objects, count + 16);
    EXPECT_GE(SumThrough(profile, "alloc_space", "main.makeWidgets"), count * 2048);
    EXPECT_GE(SumThrough(profile, "inuse_space", "main.makeWidgets"), count * 2048);
  }
}

TEST_F(GoProgramTest, ContentionIsCountedOnce) {
  Delta delta;
  Work("contend", 5);
  Scrape(ProfileType::kMutex, "/debug/pprof/mutex", &delta);
  Work("contend", 20);
  const pprof::Profile profile = Scrape(ProfileType::kMutex, "/debug/pprof/mutex", &delta);
  EXPECT_EQ(SumThrough(profile, "contentions", "main.contend"), 20);
  EXPECT_GT(SumThrough(profile, "delay", "main.contend"), 0);
}

TEST_F(GoProgramTest, BlockedAndWaitingGoroutinesAreSeen) {
  Delta delta;
  Work("contend", 1);
  Scrape(ProfileType::kBlock, "/debug/pprof/block", &delta);
  Work("contend", 10);
  const pprof::Profile block = Scrape(ProfileType::kBlock, "/debug/pprof/block", &delta);
  // Each of the ten goroutines waits for the mutex, and may wait once more to say that it is done.
  EXPECT_GE(SumThrough(block, "contentions", "main.contend.func1"), 10);
  EXPECT_LE(SumThrough(block, "contentions", "main.contend.func1"), 20);
  Delta none;
  const pprof::Profile goroutines =
      Scrape(ProfileType::kGoroutine, "/debug/pprof/goroutine", &none);
  EXPECT_GE(SumThrough(goroutines, "goroutine", "main.main"), 1);
}

TEST_F(GoProgramTest, ACpuProfileNamesTheFunctionAndGoToolPprofReadsIt) {
  std::jthread load([this] { Work("burn", 3'000); });
  Delta delta;
  const auto rewritten = RewriteProfile(Get(ProfileType::kCpu, "/debug/pprof/profile"), 1,
                                        std::chrono::seconds(1), &delta);
  ASSERT_TRUE(rewritten.ok()) << rewritten.status();
  ASSERT_TRUE(rewritten->has_value());
  EXPECT_GT(SumThrough(pprof::DecodeOrDie((*rewritten)->pprof), "cpu", "main.burn"), 0);
  const TempDir directory;
  const std::string file = directory.path() + "/cpu.pb.gz";
  ASSERT_TRUE(WriteFileAtomically(file, (*rewritten)->pprof, 0600).ok());
  EXPECT_THAT(RunCommand({"go", "tool", "pprof", "-top", file}).out,
              ::testing::HasSubstr("main.burn"));
}

TEST_F(GoProgramTest, ASecondCpuProfileAtOnceIsInUse) {
  const FetchOptions options = {.address = "127.0.0.1",
                                .port = port_,
                                .target = "/debug/pprof/profile?seconds=1",
                                .timeout = std::chrono::seconds(30)};
  const auto is_refused = [&options] {
    const auto response = Fetch(options, {});
    EXPECT_TRUE(response.ok()) << response.status();
    return response.ok() && response->status != 200 &&
           FailureOfAnswer(*response).reason == "ProfilingInUse";
  };
  // Either of the two may come first; on a busy machine they may miss each other.
  constexpr int kMaxRounds = 20;
  bool first_refused = false;
  bool second_refused = false;
  for (int i = 0; i < kMaxRounds && !first_refused && !second_refused; ++i) {
    std::jthread first([&] { first_refused = is_refused(); });
    second_refused = is_refused();
  }
  EXPECT_NE(first_refused, second_refused);
}

}  // namespace
}  // namespace flamefleet::agent
