// SPDX-License-Identifier: Apache-2.0
// The agent as a program is killed at random moments while it pulls, keeps, sends and removes, on a
// disk that is slow and tears what is written then; the next one goes on with the spool that it
// finds. What had been kept is delivered in the end, whole, and what is missing is the newest of
// each life: what was not written yet. FF_AGENT_KILLS asks for more than the test needs.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <thread>
#include <utility>

#include "base/gzip.h"
#include "base/http/server.h"
#include "base/pprof/profile.h"
#include "base/sqlite.h"
#include "proto/pyroscope/push.pb.h"
#include "tests/agent/run/agent_program.h"
#include "tests/support/temp_dir.h"
#include "tests/support/wait.h"

namespace flamefleet::agent {
namespace {

constexpr int kPods = 32;  // each pulled once a second
constexpr int kFunctions = 50;
constexpr std::chrono::minutes kPatience{5};

int Kills() {
  const char* const text = std::getenv("FF_AGENT_KILLS");
  return text == nullptr ? 5 : std::max(5, std::atoi(text));
}

// A pod and which of its profiles, counted from 0.
using Mark = std::pair<int, int>;

// Each function has the mark in its name.
std::string ProfileOf(Mark mark) {
  pprof::Profile profile;
  profile.sample_types = {{profile.strings.Intern("goroutine"), profile.strings.Intern("count")}};
  for (uint32_t i = 0; i < kFunctions; ++i) {
    char name[64];
    std::snprintf(name, sizeof(name), "pod%d.profile%d.function%u", mark.first, mark.second, i);
    const uint32_t text = profile.strings.Intern(name);
    profile.functions.push_back({.name = text, .system_name = text});
    profile.lines.push_back({.function = i});
    profile.locations.push_back({.address = i + 1, .first_line = i, .line_count = 1});
    profile.sample_locations.push_back(i);
    profile.samples.push_back({.first_location = i, .location_count = 1});
    profile.values.push_back(i + 1);
  }
  std::string raw;
  pprof::Encode(profile, &raw);
  return *Gzip(raw);
}

// Of a PushRequest; {-1, -1} when a byte of the profile or its labels is not as it was.
Mark MarkOf(std::string_view body) {
  constexpr Mark kDamaged = {-1, -1};
  pyroscope::PushRequest push;
  pprof::Profile profile;
  if (!push.ParseFromArray(body.data(), static_cast<int>(body.size())) || push.series_size() != 1 ||
      !pprof::Decode(push.series(0).samples(0).raw_profile(), {}, &profile).ok() ||
      profile.samples.size() != kFunctions) {
    return kDamaged;
  }
  Mark mark = kDamaged;
  std::set<int64_t> values;
  for (size_t i = 0; i < kFunctions; ++i) {
    const pprof::Location& location =
        profile.locations[profile.sample_locations[profile.samples[i].first_location]];
    const std::string name(
        profile.strings.Get(profile.functions[profile.lines[location.first_line].function].name));
    Mark at;
    int64_t function = 0;
    if (std::sscanf(name.c_str(), "pod%d.profile%d.function%" SCNd64, &at.first, &at.second,
                    &function) != 3 ||
        (i > 0 && at != mark) || profile.values[i] != function + 1 ||
        !values.insert(function).second) {
      return kDamaged;
    }
    mark = at;
  }
  const std::string service = "pod" + std::to_string(mark.first);
  return std::ranges::any_of(push.series(0).labels(),
                             [&service](const auto& label) {
                               return label.name() == "service_name" && label.value() == service;
                             })
             ? mark
             : kDamaged;
}

class Pods {
 public:
  Pods() { Listen("127.0.0.1:0"); }

  // Answers nothing any more that was asked until now.
  void ForgetRequests() {
    const uint16_t port = server_->port();
    server_.reset();
    Listen("127.0.0.1:" + std::to_string(port));
  }

  std::string Assignment() const {
    std::string text;
    for (int pod = 0; pod < kPods; ++pod) {
      const std::string name = "pod" + std::to_string(pod);
      text += "pods { uid: '" + name +
              "' ip: '127.0.0.1' pulls { type: PROFILE_TYPE_GOROUTINE port: " +
              std::to_string(server_->port()) + " path: '/" + std::to_string(pod) +
              "' interval_ms: 1000 timeout_ms: 60000 backend: 'main' "
              "labels { key: 'service_name' value: '" +
              name + "' } } } ";
    }
    return text;
  }
  // How many each has served.
  std::map<int, int> Served() const {
    const std::lock_guard lock(mutex_);
    return served_;
  }
  int Count() const {
    int count = 0;
    for (const auto& [pod, served] : Served())
      count += served;
    return count;
  }

 private:
  void Listen(const std::string& address) {
    auto server = HttpServer::Create({.listen = address}, [this](const auto& request) {
      const int pod = std::atoi(request.path.c_str() + 1);
      return HttpServerResponse{.body = ProfileOf({pod, Next(pod)})};
    });
    FF_CHECK(server.ok());
    server_ = *std::move(server);
  }
  int Next(int pod) {
    const std::lock_guard lock(mutex_);
    return served_[pod]++;
  }

  mutable std::mutex mutex_;
  std::map<int, int> served_;  // guarded by mutex_
  std::unique_ptr<HttpServer> server_;
};

class Backend {
 public:
  Backend()
      : server_(*HttpServer::Create({.listen = "127.0.0.1:0", .handler_threads = 4},
                                    [this](const auto& request) {
                                      if (is_away) return HttpServerResponse{.status = 503};
                                      const Mark mark = MarkOf(request.body);
                                      const std::lock_guard lock(mutex_);
                                      ++times_[mark];
                                      return HttpServerResponse{};
                                    })) {}

  std::string Url() const { return "http://127.0.0.1:" + std::to_string(server_->port()); }
  std::map<Mark, int> Acknowledged() const {
    const std::lock_guard lock(mutex_);
    return times_;
  }

  std::atomic<bool> is_away = false;

 private:
  mutable std::mutex mutex_;
  std::map<Mark, int> times_;  // guarded by mutex_
  std::unique_ptr<HttpServer> server_;
};

// What is in the file, as another process sees it; nothing when there is no table yet.
std::set<Mark> ReadSpool(const std::string& path) {
  std::set<Mark> marks;
  auto file = SqliteConnection::Open(path, SqliteConnection::Mode::kReadOnly);
  if (!file.ok()) return marks;
  auto rows = file->Prepare("SELECT body FROM profile");
  if (!rows.ok()) return marks;
  for (Result<bool> row = rows->Step(); row.ok() && *row; row = rows->Step())
    marks.insert(MarkOf(rows->Bytes(0)));
  return marks;
}

// What the next agent will find, which is left as it is: a copy is read.
std::set<Mark> ReadSpoolOfTheDead(const std::string& directory) {
  const TempDir copy;
  for (const char* const name : {"spool.db", "spool.db-wal"}) {
    if (!std::filesystem::exists(directory + "/" + name)) continue;
    std::filesystem::copy_file(directory + "/" + name, copy.path() + "/" + name);
  }
  const std::string path = copy.path() + "/spool.db";
  if (!std::filesystem::exists(path)) return {};
  auto file = SqliteConnection::Open(path, SqliteConnection::Mode::kReadWriteCreate);
  EXPECT_TRUE(file.ok()) << file.status();
  auto check = file->Prepare("PRAGMA integrity_check");
  EXPECT_TRUE(check.ok()) << check.status();
  const Result<bool> row = check->Step();
  EXPECT_TRUE(row.ok() && *row && check->Bytes(0) == "ok") << row.status();
  return ReadSpool(path);
}

std::string Snapshot(const Backend& backend, const Pods& pods) {
  return "snapshot { version: 1 config { sampling_frequency_hz: 97 backends { name: 'main' "
         "endpoint: '" +
         backend.Url() + "' } } " + pods.Assignment() + "}";
}

bool Contains(const std::set<Mark>& marks, const std::map<Mark, int>& others, Mark mark) {
  return marks.contains(mark) || others.contains(mark);
}

bool AreDelivered(const std::set<Mark>& marks, const std::map<Mark, int>& delivered) {
  return std::ranges::all_of(marks, [&](const Mark& mark) { return delivered.contains(mark); });
}

TEST(AgentKill, WhatWasKeptIsDeliveredWholeAndOnlyTheNewestIsMissing) {
  const TempDir directory;
  Pods pods;
  Backend backend;
  const ChannelFiles files;
  const FakeOperator fake(files, Snapshot(backend, pods));
  const AgentProgram::Options options = {
      .directory = directory.path(),
      .prefix = {"env", "LD_PRELOAD=" FF_SLOW_DISK_PRELOAD, "FF_SLOW_DISK_MICROS=500"}};
  std::mt19937 random(std::random_device{}());
  std::set<Mark> kept;  // was in the spool at some time
  int missing = 0;
  int most_missing = 0;
  for (int kill = 0; kill < Kills(); ++kill) {
    backend.is_away = random() % 2 == 0;
    const std::map<int, int> begin = pods.Served();
    const int enough = pods.Count() + static_cast<int>(random() % 96);
    AgentProgram agent(fake, files, options);
    ASSERT_TRUE(WaitUntil([&] { return pods.Count() >= enough; }, kPatience));
    // Between two of its pulls, too.
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 100'000));
    const std::set<Mark> before = ReadSpool(directory.path() + "/spool.db");
    ASSERT_EQ(::kill(agent.pid(), SIGKILL), 0);
    ASSERT_EQ(agent.Wait(), -SIGKILL);
    pods.ForgetRequests();
    kept.insert(before.begin(), before.end());
    const std::set<Mark> after = ReadSpoolOfTheDead(directory.path());
    const std::map<Mark, int> delivered = backend.Acknowledged();
    for (const Mark& mark : kept) {
      ASSERT_TRUE(Contains(after, delivered, mark))
          << "profile " << mark.second << " of pod " << mark.first << " was kept, and is lost";
    }
    kept.insert(after.begin(), after.end());
    // Of a pod's profiles of this life none is missing that is older than one that is there.
    int missing_now = 0;
    for (const auto& [pod, end] : pods.Served()) {
      const auto known = begin.find(pod);
      const int first = known == begin.end() ? 0 : known->second;
      bool is_there = false;
      for (int number = end - 1; number >= first; --number) {
        const bool now = Contains(after, delivered, {pod, number});
        EXPECT_FALSE(is_there && !now) << "profile " << number << " of pod " << pod;
        is_there = is_there || now;
        missing_now += !now;
      }
    }
    missing += missing_now;
    most_missing = std::max(most_missing, missing_now);
  }

  backend.is_away = false;
  AgentProgram agent(fake, files, options);
  agent.AwaitStart();
  EXPECT_TRUE(WaitUntil([&] { return AreDelivered(kept, backend.Acknowledged()); }, kPatience));
  ASSERT_EQ(::kill(agent.pid(), SIGTERM), 0);
  EXPECT_EQ(agent.Wait(), 0);
  int twice = 0;
  for (const auto& [mark, times] : backend.Acknowledged()) {
    EXPECT_LE(0, mark.second) << "a profile came that nobody served";
    twice += times - 1;
  }
  std::printf(
      "%d kills, %d profiles served: %d of them were in no spool yet when the agent was "
      "killed, %d at most at one kill; %d delivered again\n",
      Kills(), pods.Count(), missing, most_missing, twice);
}

// As a rolling update does, when the next pod is there before the last one has gone.
TEST(AgentUpdate, TheNextAgentWaitsForTheLastAndDeliversWhatThatHasKept) {
  const TempDir directory;
  Pods pods;
  Backend backend;
  backend.is_away = true;
  const ChannelFiles files;
  const FakeOperator fake(files, Snapshot(backend, pods));
  AgentProgram last(fake, files, {.directory = directory.path()});
  last.AwaitStart();
  ASSERT_TRUE(WaitUntil([&] { return !ReadSpool(directory.path() + "/spool.db").empty(); }));
  AgentProgram next(fake, files, {.directory = directory.path()});
  next.AwaitLog("another agent runs on this node");
  ASSERT_EQ(::kill(last.pid(), SIGTERM), 0);
  ASSERT_EQ(last.Wait(), 0);
  const std::set<Mark> kept = ReadSpool(directory.path() + "/spool.db");
  EXPECT_FALSE(kept.empty());
  next.AwaitStart();
  backend.is_away = false;
  EXPECT_TRUE(WaitUntil([&] { return AreDelivered(kept, backend.Acknowledged()); }, kPatience));
  EXPECT_TRUE(WaitUntil([&] { return next.BooksBalance(); }, kPatience));
  EXPECT_GT(next.Metric("flamefleet_agent_profiles_recovered_total"), 0);
}

}  // namespace
}  // namespace flamefleet::agent
