// SPDX-License-Identifier: Apache-2.0
// The scraper against a real program in Node that serves its own profiles (nodeprogram.cjs).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <mutex>

#include "agent/scrape/scraper.h"
#include "tests/support/child_process.h"
#include "tests/support/command.h"
#include "tests/support/temp_dir.h"
#include "tests/support/wait.h"

namespace flamefleet::agent {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

// Profiles, and why there are none, by type.
class Pulled final : public ScrapeObserver {
 public:
  void OnCollectFailed(const CollectionKey& key, std::string_view reason,
                       const std::string& message) override {
    const std::lock_guard lock(mutex_);
    failures_ += std::string(MetricName(key.type)) + " " + std::string(reason) + " " + message;
  }
  void OnNothingToDeliver(const CollectionKey&) override {}
  void Take(const FinishedProfile& profile) {
    const std::lock_guard lock(mutex_);
    pprofs_.try_emplace(profile.collection.type, profile.pprof);
  }
  std::string Of(ProfileType type) const {
    const std::lock_guard lock(mutex_);
    const auto found = pprofs_.find(type);
    return found == pprofs_.end() ? "" : found->second;
  }
  std::string failures() const {
    const std::lock_guard lock(mutex_);
    return failures_;
  }

 private:
  mutable std::mutex mutex_;
  std::map<ProfileType, std::string> pprofs_;  // guarded by mutex_
  std::string failures_;                       // guarded by mutex_
};

TEST(NodeProgram, ItsCpuAndMemoryArePulledAndGoToolPprofNamesItsFunctions) {
  ChildProcess program(
      {"env", "FF_NODE_MODULES=" FF_NODE_MODULES, FF_NODE, "tests/agent/scrape/nodeprogram.cjs"});
  const auto port = static_cast<uint16_t>(std::stoi(program.AwaitLine("port ")));
  Metrics metrics;
  Pulled pulled;
  Scraper scraper(SystemClock(), &metrics, &pulled,
                  [&pulled](const FinishedProfile& profile) { pulled.Take(profile); });
  ScrapeJob cpu = {.key = {.pod_uid = "uid", .type = ProfileType::kCpu},
                   .address = "127.0.0.1",
                   .port = port,
                   .path = "/debug/pprof/profile",
                   .interval = seconds(3),
                   .timeout = seconds(60)};
  ScrapeJob memory = cpu;
  memory.key.type = ProfileType::kMemory;
  memory.path = "/debug/pprof/allocs";  // Node has heap alone
  scraper.SetJobs({cpu, memory});
  const TempDir directory;
  for (const auto& [type, function] : std::map<ProfileType, std::string>{
           {ProfileType::kCpu, "burnInNode"}, {ProfileType::kMemory, "keepInNode"}}) {
    ASSERT_TRUE(WaitUntil([&] { return !pulled.Of(type).empty(); }, seconds(120)))
        << pulled.failures();
    const std::string path = directory.path() + "/" + function;
    std::ofstream(path, std::ios::binary) << pulled.Of(type);
    EXPECT_THAT(RunCommand({"go", "tool", "pprof", "-top", "-nodefraction=0", path}).out,
                HasSubstr(function));
  }
}

}  // namespace
}  // namespace flamefleet::agent
