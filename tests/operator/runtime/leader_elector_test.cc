// SPDX-License-Identifier: Apache-2.0
// LeaderElector against a server that keeps one lease and its version; time is the test's. Two
// processes on a real API server: leader_apiserver_test.cc.
#include "operator/runtime/leader_elector.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "base/http/server.h"
#include "base/mutex.h"
#include "tests/fakes/fake_clock.h"

namespace flamefleet {
namespace {

using nlohmann::json;
using std::chrono::seconds;

TEST(LeaseRecord, IsFreeWithoutAHolderOrAfterItsOwnDuration) {
  const LeaseRecord held{.holder = "x", .duration_seconds = 30};
  EXPECT_FALSE(IsFree(held, seconds(29), seconds(15)));
  EXPECT_TRUE(IsFree(held, seconds(30), seconds(15)));
  EXPECT_TRUE(IsFree({.holder = "", .duration_seconds = 30}, seconds(0), seconds(15)));
  // Nonsense neither frees a lease at once nor keeps it for ever.
  for (const int64_t nonsense : {int64_t{0}, int64_t{-5}}) {
    const LeaseRecord odd{.holder = "x", .duration_seconds = nonsense};
    EXPECT_FALSE(IsFree(odd, seconds(14), seconds(15)));
    EXPECT_TRUE(IsFree(odd, seconds(15), seconds(15)));
  }
  const LeaseRecord eternal{.holder = "x", .duration_seconds = INT64_MAX};
  EXPECT_TRUE(IsFree(eternal, std::chrono::hours(1), seconds(15)));
}

TEST(LeaseRecord, ItsTimesHaveSixDigits) {
  EXPECT_EQ(FormatMicroTime(1'000'001'002'003), "1970-01-01T00:16:40.001002Z");
}

TEST(LeaseRecord, WhatIsNoLeaseIsAnErrorAndWrongFieldsAreEmpty) {
  EXPECT_FALSE(DecodeLease("[]").ok());
  EXPECT_FALSE(DecodeLease("{").ok());
  const auto odd = DecodeLease(
      R"({"metadata":{"resourceVersion":"7"},"spec":{"holderIdentity":5,"leaseDurationSeconds":"x"}})");
  ASSERT_TRUE(odd.ok());
  EXPECT_EQ(odd->version, "7");
  EXPECT_EQ(odd->record, LeaseRecord());
}

TEST(LeaseOptions, DurationsMustFitEachOther) {
  LeaseOptions options;
  EXPECT_TRUE(CheckLeaseOptions(options).ok());
  options.renew_deadline = options.lease_duration;
  EXPECT_FALSE(CheckLeaseOptions(options).ok());
  options.renew_deadline = seconds(2);
  EXPECT_FALSE(CheckLeaseOptions(options).ok());  // 2 s of retry_period
  options.lease_duration = std::chrono::milliseconds(2500);
  EXPECT_FALSE(CheckLeaseOptions(options).ok());
}

class LeaderElectorTest : public testing::Test {
 protected:
  LeaderElectorTest() {
    HttpServerOptions options;
    options.listen = "127.0.0.1:0";
    auto server = HttpServer::Create(
        options, [this](const HttpServerRequest& request) { return Handle(request); });
    FF_CHECK(server.ok());
    server_ = *std::move(server);
    ClientConfig config;
    config.base_url = "http://127.0.0.1:" + std::to_string(server_->port());
    auto client = RestClient::Create(config, clock_, metrics_);
    FF_CHECK(client.ok());
    client_ = *std::move(client);
    LeaseOptions lease;
    lease.ns = "ns";
    lease.name = "lease";
    lease.identity = "me";
    lease.retry_period =
        std::chrono::milliseconds(1);  // of real time; the rest is the fake clock's
    elector_ = std::make_unique<LeaderElector>(*client_, lease, clock_, metrics_);
  }
  ~LeaderElectorTest() override { Stop(); }

  HttpServerResponse Handle(const HttpServerRequest& request) {
    MutexLock lock(&mutex_);
    ++requests_;
    if (broken_) return {500, "application/json", "{}", {}};
    if (request.method == "GET") {
      if (lease_.is_null()) return {404, "application/json", "{}", {}};
      return {200, "application/json", lease_.dump(), {}};
    }
    json body = json::parse(request.body);
    const std::string version = body["metadata"].value("resourceVersion", "");
    const std::string current = lease_.is_null() ? "" : lease_["metadata"]["resourceVersion"];
    if (version != current) return {409, "application/json", R"({"reason":"Conflict"})", {}};
    Put(std::move(body));
    return {200, "application/json", lease_.dump(), {}};
  }
  void Put(json lease) {
    lease_ = std::move(lease);
    lease_["metadata"]["resourceVersion"] = std::to_string(++version_);
  }
  void SetHolder(const std::string& holder) {
    MutexLock lock(&mutex_);
    Put({{"metadata", json::object()},
         {"spec", {{"holderIdentity", holder}, {"leaseDurationSeconds", 15}}}});
  }
  std::string Holder() {
    MutexLock lock(&mutex_);
    return lease_.is_null() ? "" : lease_["spec"]["holderIdentity"];
  }
  void SetBroken(bool broken) {
    MutexLock lock(&mutex_);
    broken_ = broken;
  }
  // Waits until the elector has looked at the server some more times.
  void WaitForTries() {
    MutexLock lock(&mutex_);
    const int enough = requests_ + 4;
    for (int waits = 0; requests_ < enough && waits < 6000; ++waits)
      WaitFor(never_, mutex_, std::chrono::milliseconds(5));
    EXPECT_GE(requests_, enough);
  }
  bool Eventually(const std::function<bool()>& holds) {
    for (int waits = 0; waits < 6000; ++waits) {
      if (holds()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return false;
  }
  void Start() {
    thread_ = std::jthread([this](const std::stop_token& stop) {
      const Status ended = elector_->Run(stop, [this](const std::stop_token& term_over) {
        ++terms_;
        EXPECT_TRUE(elector_->leading() || term_over.stop_requested());
        while (!term_over.stop_requested())
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
        --terms_;
        return OkStatus();
      });
      EXPECT_TRUE(ended.ok()) << ended;
    });
  }
  void Stop() {
    thread_.request_stop();
    if (thread_.joinable()) thread_.join();
  }

  FakeClock clock_;
  Metrics metrics_;
  Mutex mutex_;
  CondVar never_;
  json lease_;
  int version_ = 0;
  int requests_ = 0;
  bool broken_ = false;
  std::atomic<int> terms_ = 0;  // now
  std::unique_ptr<HttpServer> server_;
  std::unique_ptr<RestClient> client_;
  std::unique_ptr<LeaderElector> elector_;
  std::jthread thread_;
};

TEST_F(LeaderElectorTest, TheFirstOneLeadsAndGivesTheLeaseBack) {
  EXPECT_FALSE(elector_->MayWrite().ok());
  Start();
  ASSERT_TRUE(Eventually([&] { return terms_ == 1; }));
  EXPECT_TRUE(elector_->MayWrite().ok());
  EXPECT_EQ(Holder(), "me");
  Stop();
  EXPECT_FALSE(elector_->MayWrite().ok());
  EXPECT_EQ(Holder(), "");
}

TEST_F(LeaderElectorTest, ALeaseIsTakenOnlyWhenItDidNotChangeForItsDuration) {
  SetHolder("other");
  Start();
  WaitForTries();
  EXPECT_EQ(terms_, 0);
  clock_.Advance(std::chrono::nanoseconds(seconds(14)).count());
  SetHolder("yet another");  // it lives
  WaitForTries();
  clock_.Advance(std::chrono::nanoseconds(seconds(14)).count());
  WaitForTries();
  EXPECT_EQ(terms_, 0);
  EXPECT_EQ(elector_->holder(), "yet another");
  clock_.Advance(std::chrono::nanoseconds(seconds(1)).count());
  EXPECT_TRUE(Eventually([&] { return terms_ == 1; }));
}

TEST_F(LeaderElectorTest, ALeaseThatWasGivenBackIsTakenAtOnce) {
  SetHolder("other");
  Start();
  WaitForTries();
  SetHolder("");
  EXPECT_TRUE(Eventually([&] { return terms_ == 1; }));
}

TEST_F(LeaderElectorTest, DeletingTheLeaseDoesNotMakeTwoLeaders) {
  SetHolder("other");
  Start();
  WaitForTries();
  {
    MutexLock lock(&mutex_);
    lease_ = json();
  }
  WaitForTries();
  EXPECT_EQ(terms_, 0);
  clock_.Advance(std::chrono::nanoseconds(seconds(15)).count());
  EXPECT_TRUE(Eventually([&] { return terms_ == 1; }));
}

TEST_F(LeaderElectorTest, WhoWasFrozenMayNotWriteThoughNobodyToldIt) {
  Start();
  ASSERT_TRUE(Eventually([&] { return terms_ == 1; }));
  SetBroken(true);
  WaitForTries();
  EXPECT_TRUE(elector_->MayWrite().ok());
  clock_.Advance(std::chrono::nanoseconds(seconds(10)).count());
  EXPECT_FALSE(elector_->MayWrite().ok());
  EXPECT_TRUE(Eventually([&] { return terms_ == 0; }));
}

TEST_F(LeaderElectorTest, AnAnswerThatDoesNotComeForAWhileCostsNothing) {
  Start();
  ASSERT_TRUE(Eventually([&] { return terms_ == 1; }));
  SetBroken(true);
  clock_.Advance(std::chrono::nanoseconds(seconds(9)).count());
  WaitForTries();
  EXPECT_EQ(terms_, 1);
  SetBroken(false);
  WaitForTries();
  clock_.Advance(std::chrono::nanoseconds(seconds(9)).count());
  EXPECT_TRUE(elector_->MayWrite().ok());
}

TEST_F(LeaderElectorTest, WhoseLeaseWasTakenStopsAndDoesNotFreeIt) {
  Start();
  ASSERT_TRUE(Eventually([&] { return terms_ == 1; }));
  SetHolder("other");
  EXPECT_TRUE(Eventually([&] { return terms_ == 0; }));
  EXPECT_FALSE(elector_->MayWrite().ok());
  Stop();
  EXPECT_EQ(Holder(), "other");
}

}  // namespace
}  // namespace flamefleet
