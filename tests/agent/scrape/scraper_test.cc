// SPDX-License-Identifier: Apache-2.0
#include "agent/scrape/scraper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <numeric>
#include <set>
#include <thread>

#include "base/gzip.h"
#include "base/http/server.h"
#include "tests/base/pprof/test_profiles.h"
#include "tests/fakes/fake_clock.h"
#include "tests/support/raw_socket.h"
#include "tests/support/wait.h"

namespace flamefleet::agent {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

class Ledger final : public ScrapeObserver {
 public:
  void OnCollectFailed(const CollectionKey& key, std::string_view reason,
                       const std::string& message) override {
    const std::lock_guard lock(mutex_);
    failures_[key.container] = std::string(reason) + ": " + message;
  }
  void OnNothingToDeliver(const CollectionKey&) override { ++empty; }
  void Take(const FinishedProfile& profile) {
    const std::lock_guard lock(mutex_);
    profiles_.push_back(profile);
  }
  std::string FailureOf(const std::string& container) const {
    const std::lock_guard lock(mutex_);
    const auto found = failures_.find(container);
    return found == failures_.end() ? "" : found->second;
  }
  std::vector<FinishedProfile> Profiles() const {
    const std::lock_guard lock(mutex_);
    return profiles_;
  }
  std::atomic<int> empty = 0;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::string> failures_;
  std::vector<FinishedProfile> profiles_;
};

// Takes connections and answers none of them.
class SilentPod {
 public:
  SilentPod()
      : server_([this](RawSocket& socket) {
          socket.ReceiveUntil("\r\n\r\n");
          const std::lock_guard lock(mutex_);
          waiting_.push_back(std::move(socket));
        }) {}
  uint16_t port() const { return server_.port(); }
  size_t Waiting() const {
    const std::lock_guard lock(mutex_);
    return waiting_.size();
  }

 private:
  mutable std::mutex mutex_;
  std::vector<RawSocket> waiting_;
  RawServer server_;  // last: its thread stops first
};

// A pod: path -> body, with 404 for the rest.
class Pod {
 public:
  explicit Pod(std::map<std::string, std::string> files)
      : server_(*HttpServer::Create({.listen = "127.0.0.1:0"}, [files](const auto& request) {
          const auto found = files.find(request.path);
          if (found == files.end())
            return HttpServerResponse{.status = 404, .body = "no such page"};
          return HttpServerResponse{.body = found->second};
        })) {}
  uint16_t port() const { return server_->port(); }

 private:
  std::unique_ptr<HttpServer> server_;
};

class ScraperTest : public ::testing::Test {
 protected:
  // The container names the job in the ledger.
  static ScrapeJob Job(const std::string& name, uint16_t port, const std::string& path,
                       ProfileType type = ProfileType::kGoroutine) {
    return {.key = {.pod_uid = "uid", .container = name, .type = type},
            .address = "127.0.0.1",
            .port = port,
            .path = path,
            .interval = milliseconds(20),
            .timeout = milliseconds(5'000),
            .backend = "main",
            .labels = {{"service_name", name}}};
  }

  FakeClock clock_;
  Metrics metrics_;
  Ledger ledger_;
  Scraper scraper_{clock_, &metrics_, &ledger_,
                   [this](const FinishedProfile& profile) { ledger_.Take(profile); }};
};

TEST_F(ScraperTest, AProfileComesWithTheJobsLabelsAndOurTime) {
  const Pod pod({{"/goroutine", pprof::ReadProfileFile("hand_goroutine.pb.gz")}});
  scraper_.SetJobs({Job("app", pod.port(), "/goroutine")});
  ASSERT_TRUE(WaitUntil([&] { return ledger_.Profiles().size() >= 2; }));
  const FinishedProfile first = ledger_.Profiles()[0];
  EXPECT_EQ(first.backend, "main");
  EXPECT_EQ(first.labels, (Labels{{"service_name", "app"}}));
  EXPECT_EQ(first.time_ns, clock_.WallNanos());
  EXPECT_GT(first.samples, 0U);
  EXPECT_EQ(pprof::DecodeOrDie(first.pprof).time_ns, first.time_ns);
  // The clock stands still, and still no two profiles share a time.
  EXPECT_EQ(ledger_.Profiles()[1].time_ns, first.time_ns + 1);
}

TEST_F(ScraperTest, CpuProfilesThatTakeLongKeepNoOtherJobWaiting) {
  constexpr size_t kCpuJobs = 20;
  const SilentPod silent;
  const Pod pod({{"/goroutine", pprof::ReadProfileFile("hand_goroutine.pb.gz")}});
  std::vector<ScrapeJob> jobs;
  for (size_t i = 0; i < kCpuJobs; ++i) {
    jobs.push_back(Job("cpu" + std::to_string(i), silent.port(), "/", ProfileType::kCpu));
    jobs.back().timeout = milliseconds(60'000);
  }
  scraper_.SetJobs(jobs);
  ASSERT_TRUE(WaitUntil([&] { return silent.Waiting() == kCpuJobs; }));
  jobs.push_back(Job("app", pod.port(), "/goroutine"));
  scraper_.SetJobs(jobs);
  EXPECT_TRUE(WaitUntil([&] { return ledger_.Profiles().size() >= 2; }));
  EXPECT_EQ(silent.Waiting(), kCpuJobs);
}

TEST_F(ScraperTest, TurnsThatPassWhileAPullRunsAreCounted) {
  CounterMetric missed =
      metrics_.Counter("flamefleet_agent_scrape_turns_missed_total",
                       "Turns of scrape jobs that passed before one could begin.");
  const SilentPod silent;
  ScrapeJob job = Job("slow", silent.port(), "/");
  job.timeout = milliseconds(300);  // fifteen turns
  scraper_.SetJobs({job});
  ASSERT_TRUE(WaitUntil([&] { return silent.Waiting() >= 2; }));
  EXPECT_GE(missed.Value(), 1);
}

TEST_F(ScraperTest, MoreCpuBodiesThanAreReadAtOnceAllCome) {
  const Pod pod({{"/cpu", pprof::ReadProfileFile("hand_goroutine.pb.gz")}});
  std::vector<ScrapeJob> jobs;
  for (size_t i = 0; i < 2 * Scraper::kMaxCpuBodies; ++i)
    jobs.push_back(Job("cpu" + std::to_string(i), pod.port(), "/cpu", ProfileType::kCpu));
  scraper_.SetJobs(jobs);
  ASSERT_TRUE(WaitUntil([&] {
    std::set<std::string> seen;
    for (const FinishedProfile& profile : ledger_.Profiles())
      seen.insert(profile.collection.container);
    return seen.size() == jobs.size();
  }));
}

TEST_F(ScraperTest, TheFirstProfileOfACumulativeTypeIsNothingToDeliver) {
  const Pod pod({{"/mutex", pprof::ReadProfileFile("hand_mutex.pb.gz")}});
  scraper_.SetJobs({Job("app", pod.port(), "/mutex", ProfileType::kMutex)});
  EXPECT_TRUE(WaitUntil([&] { return ledger_.empty >= 2; }));
  EXPECT_TRUE(ledger_.Profiles().empty());
}

TEST_F(ScraperTest, HostileEndpointsFailWithAReasonAndDoNotStopOthers) {
  const Pod pod({{"/goroutine", pprof::ReadProfileFile("hand_goroutine.pb.gz")},
                 {"/html", "<html>not a profile</html>"},
                 {"/garbage", pprof::ReadProfileFile("bad_garbage.bin")},
                 {"/bomb", *Gzip(std::string(64 << 20, '\0'))},
                 {"/empty", ""}});
  RawServer endless([](RawSocket& socket) {
    socket.ReceiveUntil("\r\n\r\n");
    socket.Send("HTTP/1.1 200 OK\r\n\r\n");
    while (socket.Send(std::string(1 << 20, 'x'))) {
    }
  });
  RawServer slow([](RawSocket& socket) {
    while (socket.Send("H"))
      std::this_thread::sleep_for(milliseconds(20));
  });
  RawServer redirect([](RawSocket& socket) {
    socket.ReceiveUntil("\r\n\r\n");
    socket.Send(
        "HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/\r\nContent-Length: 0\r\n\r\n");
  });
  RawServer reset([](RawSocket& socket) { socket.Close(); });
  uint16_t closed = 0;
  {
    closed = RawServer([](RawSocket&) {}).port();
  }
  ScrapeJob slow_job = Job("slow", slow.port(), "/");
  slow_job.timeout = milliseconds(300);
  scraper_.SetJobs({Job("html", pod.port(), "/html"), Job("garbage", pod.port(), "/garbage"),
                    Job("bomb", pod.port(), "/bomb"), Job("empty", pod.port(), "/empty"),
                    Job("missing", pod.port(), "/missing"), Job("endless", endless.port(), "/"),
                    slow_job, Job("redirect", redirect.port(), "/"),
                    Job("reset", reset.port(), "/"), Job("closed", closed, "/"),
                    Job("good", pod.port(), "/goroutine")});
  const std::map<std::string, std::string> expected = {
      {"html", "NotAProfile"},
      {"garbage", "NotAProfile"},
      {"bomb", "ProfileTooLarge"},
      {"empty", "NotAProfile"},
      {"missing", "HTTPError: the endpoint answered 404: no such page"},
      {"endless", "ProfileTooLarge"},
      {"slow", "Timeout"},
      {"redirect", "HTTPError"},
      {"reset", "ConnectionFailed"},
      {"closed", "ConnectionRefused"}};
  for (const auto& [name, reason] : expected) {
    EXPECT_TRUE(WaitUntil([&] { return !ledger_.FailureOf(name).empty(); })) << name;
    EXPECT_THAT(ledger_.FailureOf(name), HasSubstr(reason));
  }
  EXPECT_TRUE(WaitUntil([&] { return !ledger_.Profiles().empty(); }));
}

TEST_F(ScraperTest, ARedirectOnTheSameHostIsFollowed) {
  const std::string profile = pprof::ReadProfileFile("hand_goroutine.pb.gz");
  const auto pod = *HttpServer::Create({.listen = "127.0.0.1:0"}, [&](const auto& request) {
    if (request.path == "/moved/") return HttpServerResponse{.body = profile};
    return HttpServerResponse{.status = 301, .headers = {{"Location", "/moved/"}}};
  });
  scraper_.SetJobs(
      {Job("app", pod->port(), "/moved"), Job("cpu", pod->port(), "/moved", ProfileType::kCpu)});
  std::set<std::string> seen;
  EXPECT_TRUE(WaitUntil([&] {
    for (const FinishedProfile& finished : ledger_.Profiles())
      seen.insert(finished.collection.container);
    return seen.size() == 2;
  })) << ledger_.FailureOf("app")
      << ledger_.FailureOf("cpu");
}

TEST_F(ScraperTest, MemoryIsTakenFromHeapWhereThereIsNoAllocs) {
  const Pod pod({{"/debug/pprof/heap", pprof::ReadProfileFile("hand_goroutine.pb.gz")}});
  scraper_.SetJobs({Job("app", pod.port(), "/debug/pprof/allocs", ProfileType::kMemory)});
  EXPECT_TRUE(WaitUntil([&] { return ledger_.Profiles().size() >= 3; }));
  EXPECT_EQ(ledger_.FailureOf("app"), "");
}

TEST_F(ScraperTest, WhatIsServedAsADeltaIsSentAsItIs) {
  const Pod pod({{"/debug/pprof/delta_mutex", pprof::ReadProfileFile("hand_mutex.pb.gz")}});
  scraper_.SetJobs({Job("app", pod.port(), "/debug/pprof/delta_mutex", ProfileType::kMutex)});
  ASSERT_TRUE(WaitUntil([&] { return ledger_.Profiles().size() >= 2; }));
  const pprof::Profile served = pprof::DecodeOrDie(pprof::ReadProfileFile("hand_mutex.pb.gz"));
  for (const FinishedProfile& profile : ledger_.Profiles()) {
    const pprof::Profile sent = pprof::DecodeOrDie(profile.pprof);
    EXPECT_EQ(std::accumulate(sent.values.begin(), sent.values.end(), int64_t{0}),
              std::accumulate(served.values.begin(), served.values.end(), int64_t{0}));
  }
}

TEST_F(ScraperTest, ATypeThatIsNotServedIsAskedForSeldom) {
  std::atomic<int> asked = 0;
  const std::string profile = pprof::ReadProfileFile("hand_goroutine.pb.gz");
  const auto pod = *HttpServer::Create({.listen = "127.0.0.1:0"}, [&](const auto& request) {
    if (request.path == "/goroutine") return HttpServerResponse{.body = profile};
    ++asked;
    return HttpServerResponse{.status = 404};
  });
  scraper_.SetJobs({Job("absent", pod->port(), "/mutex", ProfileType::kMutex),
                    Job("app", pod->port(), "/goroutine")});
  EXPECT_TRUE(WaitUntil([&] { return asked > 0; }));
  const size_t before = ledger_.Profiles().size();
  EXPECT_TRUE(WaitUntil([&] { return ledger_.Profiles().size() >= before + 10; }));
  EXPECT_EQ(asked, 1);
}

TEST_F(ScraperTest, AChangeThatLeavesTheEndpointKeepsTheJobsPast) {
  // alloc_* of the second profile would be missing again if the past were lost.
  const Pod pod({{"/mutex", pprof::ReadProfileFile("hand_mutex.pb.gz")},
                 {"/goroutine", pprof::ReadProfileFile("hand_goroutine.pb.gz")}});
  scraper_.SetJobs({Job("app", pod.port(), "/goroutine")});
  ASSERT_TRUE(WaitUntil([&] { return !ledger_.Profiles().empty(); }));
  const int64_t last = ledger_.Profiles().back().time_ns;
  ScrapeJob relabelled = Job("app", pod.port(), "/goroutine");
  relabelled.labels["team"] = "payments";
  scraper_.SetJobs({relabelled, Job("other", pod.port(), "/mutex")});
  ASSERT_TRUE(WaitUntil([&] { return ledger_.Profiles().back().labels.contains("team"); }));
  EXPECT_GT(ledger_.Profiles().back().time_ns, last);
}

TEST_F(ScraperTest, AShorterIntervalDoesNotWaitForTheTurnOfTheLongerOne) {
  const Pod pod({{"/goroutine", pprof::ReadProfileFile("hand_goroutine.pb.gz")}});
  ScrapeJob job = Job("app", pod.port(), "/goroutine");
  job.interval = std::chrono::hours(1);
  ASSERT_GT(FirstDelay(job), std::chrono::minutes(2)) << "choose another name";
  scraper_.SetJobs({job});
  job.interval = milliseconds(20);
  scraper_.SetJobs({job});
  EXPECT_TRUE(WaitUntil([&] { return !ledger_.Profiles().empty(); }));
}

TEST_F(ScraperTest, ProfilesFollowAClockThatIsSetBack) {
  const Pod pod({{"/goroutine", pprof::ReadProfileFile("hand_goroutine.pb.gz")}});
  scraper_.SetJobs({Job("app", pod.port(), "/goroutine")});
  ASSERT_TRUE(WaitUntil([&] { return !ledger_.Profiles().empty(); }));
  clock_.StepWall(-7'200 * kNanosPerSecond);
  const int64_t now_ns = clock_.WallNanos();
  EXPECT_TRUE(
      WaitUntil([&] { return ledger_.Profiles().back().time_ns < now_ns + kNanosPerSecond; }));
}

TEST_F(ScraperTest, ARemovedJobGivesNothingMore) {
  const Pod pod({{"/goroutine", pprof::ReadProfileFile("hand_goroutine.pb.gz")}});
  scraper_.SetJobs({Job("app", pod.port(), "/goroutine")});
  ASSERT_TRUE(WaitUntil([&] { return !ledger_.Profiles().empty(); }));
  scraper_.SetJobs({Job("other", pod.port(), "/goroutine")});
  const size_t before = ledger_.Profiles().size();
  ASSERT_TRUE(WaitUntil([&] { return ledger_.Profiles().size() >= before + 5; }));
  // One may have been past the check when it was removed.
  size_t late = 0;
  const auto profiles = ledger_.Profiles();
  for (size_t i = before; i < profiles.size(); ++i) {
    if (profiles[i].collection.container == "app") ++late;
  }
  EXPECT_LE(late, 1U);
}

}  // namespace
}  // namespace flamefleet::agent
