// SPDX-License-Identifier: Apache-2.0
#include "agent/push/pusher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <thread>

#include "tests/fakes/slow_disk.h"
#include "tests/support/fake_backend.h"
#include "tests/support/raw_socket.h"
#include "tests/support/temp_dir.h"
#include "tests/support/wait.h"

namespace flamefleet::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

// Keeps what it is told.
class Ledger final : public DeliveryObserver {
 public:
  void OnDelivered(const CollectionKey&) override { ++delivered; }
  void OnNotDelivered(const CollectionKey&, std::string_view reason,
                      const std::string& message) override {
    const std::lock_guard lock(mutex_);
    reasons_.emplace_back(std::string(reason) + ": " + message);
  }
  std::vector<std::string> Reasons() const {
    const std::lock_guard lock(mutex_);
    return reasons_;
  }
  std::atomic<int> delivered = 0;

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> reasons_;
};

class PusherTest : public ::testing::Test {
 protected:
  static FinishedProfile Profile(int number, const std::string& backend = "main") {
    return {.collection = {.pod_uid = "uid", .container = "app", .type = ProfileType::kCpu},
            .backend = backend,
            .labels = {{"service_name", "shop"}, {"pod", "shop-" + std::to_string(number)}},
            .time_ns = number,
            .pprof = "pprof " + std::to_string(number)};
  }
  double Metric(const std::string& name, const MetricLabels& labels = {}) {
    const std::string help =
        labels.empty() ? HelpOf(name) : "Profiles that were not delivered, by reason.";
    return name.ends_with("_waiting") ? metrics_.Gauge(name, help).Value()
                                      : metrics_.Counter(name, help, labels).Value();
  }
  static std::string HelpOf(const std::string& name) {
    if (name.ends_with("produced_total"))
      return "Profiles that were collected and handed to delivery.";
    if (name.ends_with("delivered_total")) return "Profiles that a backend acknowledged.";
    return "Profiles that wait for a backend or are being sent.";
  }
  double Dropped(const std::string& reason) {
    return Metric("flamefleet_agent_profiles_dropped_total", {{"reason", reason}});
  }
  // produced = delivered + dropped + waiting, once the books are closed.
  void ExpectBalance(double produced, double delivered, double dropped, double waiting) {
    const auto all = [this] {
      double sum = 0;
      for (const char* reason : {"QueueFull", "Expired", "BackendRefused", "ProfileTooLarge",
                                 "NoBackend", "SpoolDamaged", "AgentStopped"}) {
        sum += Dropped(reason);
      }
      return sum;
    };
    EXPECT_TRUE(WaitUntil([&] {
      return Metric("flamefleet_agent_profiles_waiting") == waiting && all() == dropped &&
             Metric("flamefleet_agent_profiles_delivered_total") == delivered;
    }));
    EXPECT_EQ(Metric("flamefleet_agent_profiles_produced_total"), produced);
    EXPECT_EQ(Metric("flamefleet_agent_profiles_delivered_total"), delivered);
    EXPECT_EQ(Metric("flamefleet_agent_profiles_waiting"), waiting);
    EXPECT_EQ(all(), dropped);
    EXPECT_EQ(produced, delivered + dropped + waiting);
  }
  // Of a minute ago and older by `number` seconds: no fresh ones.
  static FinishedProfile OldProfile(int number) {
    FinishedProfile profile = Profile(number);
    profile.time_ns = SystemClock().WallNanos() - (120 + number) * kNanosPerSecond;
    return profile;
  }
  std::unique_ptr<Spool> OpenSpool(int64_t max_bytes = 16 << 20) {
    auto spool = Spool::Open({.directory = dir_.path(), .max_bytes = max_bytes});
    EXPECT_TRUE(spool.ok()) << spool.status();
    return *std::move(spool);
  }
  static std::string BodyOf(const HttpServerRequest& request) {
    return FakeBackend::SeriesOf(request).samples(0).raw_profile();
  }

  TempDir dir_;
  Metrics metrics_;
  Ledger ledger_;
  LaneOptions options_{.first_backoff = milliseconds(5), .max_backoff = milliseconds(20)};
};

TEST_F(PusherTest, APushIsOneSeriesWithSortedLabels) {
  FakeBackend backend;
  Pusher pusher(options_, nullptr, &metrics_, &ledger_);
  ASSERT_TRUE(pusher.SetBackends({{"main", backend.Url()}}).ok());
  pusher.Push(Profile(1));
  ASSERT_TRUE(pusher.Drain(seconds(20)));
  const HttpServerRequest request = backend.Requests().at(0);
  EXPECT_EQ(request.method, "POST");
  EXPECT_EQ(request.path, "/push.v1.PusherService/Push");
  EXPECT_EQ(request.Header("content-type"), "application/proto");
  EXPECT_EQ(FakeBackend::LabelsOf(request),
            "__delta__=false,__name__=process_cpu,pod=shop-1,service_name=shop");
  EXPECT_EQ(FakeBackend::SeriesOf(request).samples(0).raw_profile(), "pprof 1");
  EXPECT_TRUE(WaitUntil([&] { return ledger_.delivered == 1; }));
  ExpectBalance(1, 1, 0, 0);
}

TEST_F(PusherTest, ARetryRepeatsTheSameBytes) {
  FakeBackend backend(
      [](int number) { return HttpServerResponse{.status = number < 2 ? 503 : 200}; });
  Pusher pusher(options_, nullptr, &metrics_, &ledger_);
  ASSERT_TRUE(pusher.SetBackends({{"main", backend.Url()}}).ok());
  pusher.Push(Profile(1));
  ASSERT_TRUE(pusher.Drain(seconds(20)));
  const auto requests = backend.Requests();
  ASSERT_EQ(requests.size(), 3U);
  EXPECT_EQ(requests[1].body, requests[0].body);
  EXPECT_EQ(requests[2].body, requests[0].body);
  EXPECT_THAT(ledger_.Reasons().at(0), HasSubstr("BackendUnreachable: the backend answered 503"));
  ExpectBalance(1, 1, 0, 0);
}

TEST_F(PusherTest, ARefusedProfileIsDroppedAndTheNextOneGoesOn) {
  FakeBackend backend([](int number) {
    return HttpServerResponse{.status = number == 0 ? 400 : 200, .body = "bad label"};
  });
  Pusher pusher(options_, nullptr, &metrics_, &ledger_);
  ASSERT_TRUE(pusher.SetBackends({{"main", backend.Url()}}).ok());
  pusher.Push(Profile(1));
  ASSERT_TRUE(pusher.Drain(seconds(20)));
  pusher.Push(Profile(2));
  ASSERT_TRUE(pusher.Drain(seconds(20)));
  EXPECT_TRUE(WaitUntil([&] { return ledger_.delivered == 1; }));
  EXPECT_TRUE(WaitUntil([&] { return Dropped("BackendRefused") == 1; }));
  EXPECT_THAT(ledger_.Reasons().at(0), HasSubstr("400: bad label"));
  ExpectBalance(2, 1, 1, 0);
}

TEST_F(PusherTest, AProfileThatTheBackendCannotReadIsGivenUp) {
  FakeBackend backend([](int) { return HttpServerResponse{.status = 500}; });
  Pusher pusher(options_, nullptr, &metrics_, &ledger_);
  ASSERT_TRUE(pusher.SetBackends({{"main", backend.Url()}}).ok());
  pusher.Push(Profile(1));
  ASSERT_TRUE(pusher.Drain(seconds(20)));
  EXPECT_EQ(backend.Count(), static_cast<size_t>(kMaxServerErrors));
  EXPECT_TRUE(WaitUntil([&] { return Dropped("BackendRefused") == 1; }));
}

TEST_F(PusherTest, WhatWaitedForABackendIsDeliveredWhenItComesBack) {
  uint16_t port = 0;
  { port = FakeBackend().port(); }
  const std::string address = "127.0.0.1:" + std::to_string(port);
  Pusher pusher(options_, nullptr, &metrics_, &ledger_);
  ASSERT_TRUE(pusher.SetBackends({{"main", "http://" + address}}).ok());
  for (int i = 0; i < 50; ++i)
    pusher.Push(Profile(i));
  EXPECT_TRUE(WaitUntil([&] { return !ledger_.Reasons().empty(); }));
  ExpectBalance(50, 0, 0, 50);
  FakeBackend backend([](int) { return HttpServerResponse{}; }, address);
  ASSERT_TRUE(pusher.Drain(seconds(60)));
  EXPECT_TRUE(WaitUntil([&] { return ledger_.delivered == 50; }));
  ExpectBalance(50, 50, 0, 0);
}

TEST_F(PusherTest, ABackendThatDoesNotAnswerHoldsUpNoOther) {
  RawServer dead([](RawSocket& socket) { socket.Close(); });
  FakeBackend alive;
  Pusher pusher(options_, nullptr, &metrics_, &ledger_);
  ASSERT_TRUE(pusher.SetBackends({{"dead", dead.Url()}, {"alive", alive.Url()}}).ok());
  for (int i = 0; i < 10; ++i) {
    pusher.Push(Profile(i, "dead"));
    pusher.Push(Profile(i, "alive"));
  }
  EXPECT_TRUE(WaitUntil([&] { return alive.Count() == 10; }));
}

TEST_F(PusherTest, SeveralPushesAreUnderWayAtOnce) {
  std::mutex mutex;
  std::condition_variable changed;
  size_t inside = 0;
  FakeBackend backend([&](int) {
    std::unique_lock lock(mutex);
    ++inside;
    changed.notify_all();
    changed.wait(lock, [&] { return inside >= static_cast<size_t>(Lane::kSenders); });
    return HttpServerResponse{};
  });
  Pusher pusher(options_, nullptr, &metrics_, &ledger_);
  ASSERT_TRUE(pusher.SetBackends({{"main", backend.Url()}}).ok());
  for (size_t i = 0; i < static_cast<size_t>(Lane::kSenders); ++i)
    pusher.Push(Profile(static_cast<int>(i)));
  EXPECT_TRUE(pusher.Drain(seconds(20)));
}

TEST_F(PusherTest, AFullSpoolLosesTheOldestAndCountsThem) {
  options_.first_backoff = options_.max_backoff = seconds(3600);
  RawServer dead([](RawSocket& socket) { socket.Close(); });
  auto spool = Spool::Open({.max_bytes = 1 << 20});
  Pusher pusher(options_, *std::move(spool), &metrics_, &ledger_);
  ASSERT_TRUE(pusher.SetBackends({{"main", dead.Url()}}).ok());
  for (int i = 0; i < 50; ++i) {
    FinishedProfile profile = OldProfile(50 - i);
    profile.pprof.resize(100'000);
    pusher.Push(profile);
  }
  EXPECT_TRUE(WaitUntil([&] { return Dropped("QueueFull") >= 40; }));
  const double full = Dropped("QueueFull");
  ExpectBalance(50, 0, full, 50 - full);
}

TEST_F(PusherTest, AStopLosesWhatIsInMemoryAndKeepsWhatIsOnDisk) {
  FakeBackend away([](int) { return HttpServerResponse{.status = 503}; });
  options_.first_backoff = options_.max_backoff = seconds(3600);
  {
    Pusher pusher(options_, nullptr, &metrics_, &ledger_);
    ASSERT_TRUE(pusher.SetBackends({{"main", away.Url()}}).ok());
    pusher.Push(Profile(1));
  }
  ExpectBalance(1, 0, 1, 0);
  EXPECT_EQ(Dropped("AgentStopped"), 1);
  {
    Pusher pusher(options_, OpenSpool(), &metrics_, &ledger_);
    ASSERT_TRUE(pusher.SetBackends({{"main", away.Url()}}).ok());
    pusher.Push(Profile(2));
  }
  EXPECT_EQ(Dropped("AgentStopped"), 1);
  FakeBackend backend;
  Pusher pusher(options_, OpenSpool(), &metrics_, &ledger_);
  ASSERT_TRUE(pusher.SetBackends({{"main", backend.Url()}}).ok());
  ASSERT_TRUE(pusher.Drain(seconds(20)));
  EXPECT_EQ(BodyOf(backend.Requests().at(0)), "pprof 2");
  EXPECT_EQ(metrics_
                .Counter("flamefleet_agent_profiles_recovered_total",
                         "Profiles that an earlier agent left in the spool.")
                .Value(),
            1);
}

// Collection goes on, and what it gives waits in memory.
TEST_F(PusherTest, ADiskThatStallsHoldsUpNoPush) {
  constexpr int kProfiles = 20;
  UseSlowDisk(std::chrono::microseconds(0));
  FakeBackend backend;
  Pusher pusher(options_, OpenSpool(), &metrics_, &ledger_);
  ASSERT_TRUE(pusher.SetBackends({{"main", backend.Url()}}).ok());
  StallDisk(true);
  pusher.Push(Profile(0));
  EXPECT_TRUE(WaitUntil([] { return StalledWrites() > 0; }));
  std::atomic<int> pushed = 0;
  std::jthread collector([&] {
    for (int i = 1; i <= kProfiles; ++i, ++pushed)
      pusher.Push(Profile(i));
  });
  EXPECT_TRUE(WaitUntil([&] { return pushed == kProfiles; }));
  EXPECT_EQ(Metric("flamefleet_agent_profiles_waiting"), 1 + kProfiles);
  StallDisk(false);
  ExpectBalance(1 + kProfiles, 1 + kProfiles, 0, 0);
}

TEST_F(PusherTest, FreshProfilesOvertakeTheBacklogWhichComesAtItsRate) {
  options_.backlog_per_second = 1;
  FakeBackend backend;
  Pusher pusher(options_, nullptr, &metrics_, &ledger_);
  ASSERT_TRUE(pusher.SetBackends({{.name = "main", .endpoint = backend.Url(), .hold = true}}).ok());
  for (int i = 0; i < 20; ++i)
    pusher.Push(OldProfile(20 - i));
  FinishedProfile fresh = Profile(99);
  fresh.time_ns = SystemClock().WallNanos();
  pusher.Push(fresh);
  EXPECT_TRUE(WaitUntil([&] {
    const auto backlogs = pusher.Backlogs();
    return backlogs.contains("main") && backlogs.at("main").profiles == 21;
  }));
  ASSERT_TRUE(pusher.SetBackends({{"main", backend.Url()}}).ok());
  ASSERT_TRUE(WaitUntil([&] { return backend.Count() >= 3; }));
  std::vector<std::string> bodies;
  for (const auto& request : backend.Requests())
    bodies.push_back(BodyOf(request));
  // Senders run side by side: which of the first arrives first is not ours to say.
  bodies.resize(3);
  EXPECT_THAT(bodies, ::testing::Contains("pprof 99"));
  EXPECT_THAT(bodies, ::testing::Contains("pprof 20"));
  EXPECT_LT(backend.Count(), 20U);
}

TEST_F(PusherTest, WhatIsOlderThanTheIngestionWindowIsDropped) {
  FakeBackend backend;
  Pusher pusher(options_, nullptr, &metrics_, &ledger_);
  ASSERT_TRUE(pusher
                  .SetBackends({{.name = "main",
                                 .endpoint = backend.Url(),
                                 .ingestion_window_ns = 3600 * kNanosPerSecond}})
                  .ok());
  pusher.Push(OldProfile(0));
  pusher.Push(OldProfile(3600));
  ASSERT_TRUE(pusher.Drain(seconds(20)));
  EXPECT_TRUE(WaitUntil([&] { return Dropped("Expired") == 1; }));
  ExpectBalance(2, 1, 1, 0);
}

TEST_F(PusherTest, AHeldBackendKeepsItsProfilesUntilItsCredentialsAreKnown) {
  FakeBackend backend;
  Pusher pusher(options_, nullptr, &metrics_, &ledger_);
  ASSERT_TRUE(pusher.SetBackends({{.name = "main", .endpoint = backend.Url(), .hold = true}}).ok());
  pusher.Push(Profile(1));
  EXPECT_TRUE(WaitUntil([&] { return !ledger_.Reasons().empty(); }));
  EXPECT_EQ(backend.Count(), 0U);
  ASSERT_TRUE(
      pusher.SetBackends({{.name = "main", .endpoint = backend.Url(), .authorization = "Bearer t"}})
          .ok());
  ASSERT_TRUE(pusher.Drain(seconds(20)));
  EXPECT_EQ(backend.Requests().at(0).Header("authorization"), "Bearer t");
}

TEST_F(PusherTest, NewCredentialsAreTriedAtOnce) {
  options_.first_backoff = options_.max_backoff = seconds(3600);
  FakeBackend backend(
      [](int number) { return HttpServerResponse{.status = number == 0 ? 401 : 200}; });
  Pusher pusher(options_, nullptr, &metrics_, &ledger_);
  BackendConfig config = {.name = "main", .endpoint = backend.Url(), .authorization = "Bearer old"};
  ASSERT_TRUE(pusher.SetBackends({config}).ok());
  pusher.Push(Profile(1));
  ASSERT_TRUE(WaitUntil([&] { return !ledger_.Reasons().empty(); }));
  EXPECT_THAT(ledger_.Reasons().at(0), HasSubstr("BackendUnauthorized"));
  config.authorization = "Bearer new";
  ASSERT_TRUE(pusher.SetBackends({config}).ok());
  ASSERT_TRUE(pusher.Drain(seconds(20)));
  ExpectBalance(1, 1, 0, 0);
}

TEST_F(PusherTest, ACollectionWhoseBackendIsInTroubleHearsOfItAtOnce) {
  options_.first_backoff = options_.max_backoff = seconds(3600);
  FakeBackend away([](int) { return HttpServerResponse{.status = 503}; });
  Pusher pusher(options_, nullptr, &metrics_, &ledger_);
  ASSERT_TRUE(pusher.SetBackends({{"main", away.Url()}}).ok());
  pusher.Push(Profile(1));
  ASSERT_TRUE(WaitUntil([&] { return ledger_.Reasons().size() == 1; }));
  pusher.Push(Profile(2));  // nobody tries to send it
  EXPECT_EQ(ledger_.Reasons().size(), 2U);
  EXPECT_EQ(away.Count(), 1U);
}

TEST_F(PusherTest, AnUnknownBackendIsADropWithItsName) {
  Pusher pusher(options_, nullptr, &metrics_, &ledger_);
  pusher.Push(Profile(1, "nowhere"));
  EXPECT_THAT(ledger_.Reasons().at(0), HasSubstr("NoBackend: backend 'nowhere'"));
  ExpectBalance(1, 0, 1, 0);
}

TEST_F(PusherTest, AnEndpointThatIsNoneIsNamedAndTheOthersWork) {
  FakeBackend backend;
  Pusher pusher(options_, nullptr, &metrics_, &ledger_);
  const Status status = pusher.SetBackends({{"bad", "pyroscope:4040"}, {"main", backend.Url()}});
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(ErrorMessage(status), HasSubstr("backend bad"));
  pusher.Push(Profile(1));
  EXPECT_TRUE(WaitUntil([&] { return backend.Count() == 1; }));
}

}  // namespace
}  // namespace flamefleet::agent
