// SPDX-License-Identifier: Apache-2.0
// What the store has acknowledged is there: after kill -9, after a full disk.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <thread>

#include "base/clock.h"
#include "tests/store/store_client.h"
#include "tests/store/store_process.h"
#include "tests/support/command.h"
#include "tests/support/skip.h"
#include "tests/support/temp_dir.h"
#include "tests/support/wait.h"

namespace flamefleet::store {
namespace {

using ::testing::HasSubstr;
using ::testing::IsSupersetOf;

constexpr int64_t kProfileTotal = 60'000'000;  // of CpuProfileAt

// Each profile is its own service, so that /series tells which are there.
class Ledger {
 public:
  void Acknowledged(const std::string& service) {
    const std::lock_guard lock(mutex_);
    services_.insert(service);
  }
  size_t Size() const {
    const std::lock_guard lock(mutex_);
    return services_.size();
  }
  std::set<std::string> services() const {
    const std::lock_guard lock(mutex_);
    return services_;
  }

 private:
  mutable std::mutex mutex_;
  std::set<std::string> services_;
};

// "2026-11-29.db"
std::string DayFile(int64_t time_ns) {
  return FormatRfc3339(time_ns).substr(0, 10) + ".db";
}

Reply PushService(uint16_t port, const std::string& service) {
  return Push(port, PushBody(SeriesLabels(service), {CpuProfileAt(SystemClock().WallNanos())}));
}

// By flamefleet-store itself, which is not running.
void ExpectWhole(const std::string& directory) {
  const CommandResult check = RunCommand({FF_STORE_BINARY, "check", directory});
  EXPECT_EQ(check.exit_code, 0) << check.out << check.err;
}

// Every acknowledged profile is listed, and what is listed can be read and merged, whole.
void ExpectAllThere(uint16_t port, const std::set<std::string>& acknowledged) {
  const nlohmann::json values =
      nlohmann::json::parse(Get(port, "/labels/service_name/values").body, nullptr, false);
  ASSERT_TRUE(values.is_object());
  const auto stored = values.at("values").get<std::vector<std::string>>();
  EXPECT_THAT(stored, IsSupersetOf(acknowledged));
  const nlohmann::json top =
      nlohmann::json::parse(Get(port, "/top", {{"format", "json"}}).body, nullptr, false);
  ASSERT_TRUE(top.is_object());
  EXPECT_EQ(top.at("profiles"), stored.size());
  EXPECT_EQ(top.at("total"), kProfileTotal * static_cast<int64_t>(stored.size()));
}

// How often a store is killed: `usual` times, or as FF_STORE_KILLS says (make soak).
int Kills(int usual) {
  const char* const text = std::getenv("FF_STORE_KILLS");
  return text == nullptr ? usual : std::atoi(text);
}

TEST(Durability, NothingAcknowledgedIsLostByKill9UnderLoad) {
  const int kills = Kills(20);
  constexpr int kClients = 8;
  TempDir dir;
  StoreProcess store(dir.path());
  Ledger ledger;
  std::mt19937 random(20);
  for (int round = 0; round < kills; ++round) {
    ASSERT_TRUE(store.Start()) << "round " << round;
    if (ledger.Size() > 0) ExpectAllThere(store.port(), ledger.services());
    const size_t kill_at = ledger.Size() + 20 + random() % 200;
    std::atomic<bool> dead = false;
    std::vector<std::jthread> clients;
    for (int client = 0; client < kClients; ++client) {
      clients.emplace_back([&, client] {
        for (int i = 0; !dead; ++i) {
          const std::string service =
              "r" + std::to_string(round) + "c" + std::to_string(client) + "i" + std::to_string(i);
          if (PushService(store.port(), service).status == 200) ledger.Acknowledged(service);
        }
      });
    }
    EXPECT_TRUE(WaitUntil([&] { return ledger.Size() >= kill_at; }));
    store.Kill();
    dead = true;
    ExpectWhole(dir.path());
  }
  ASSERT_TRUE(store.Start());
  ExpectAllThere(store.port(), ledger.services());
  EXPECT_EQ(store.Stop(), 0);
}

double PackedProfiles(uint16_t port) {
  const std::string text = Get(port, "/metrics").body;
  const std::string name = "\nflamefleet_store_profiles_packed_total ";
  const size_t at = text.find(name);
  return at == std::string::npos ? -1 : std::stod(text.substr(at + name.size()));
}

TEST(Durability, NothingIsLostByKill9WhileProfilesArePacked) {
  const int kills = Kills(10);
  constexpr int kServices = 3;  // of each round
  constexpr int kProfiles = 100;
  TempDir dir;
  StoreProcess store(dir.path());
  std::mt19937 random(7);
  // Of hours that are over: packed as soon as the store starts.
  const int64_t begin_ns = SystemClock().WallNanos() - 3 * 3600 * kNanosPerSecond;
  int64_t stored = 0;
  for (int round = 0; round <= kills; ++round) {
    ASSERT_TRUE(store.Start()) << "round " << round;
    if (round > 0) {
      const auto packed = static_cast<double>(1 + random() % 150);  // in the midst of it, or after
      EXPECT_TRUE(WaitUntil([&] { return PackedProfiles(store.port()) >= packed; }));
      store.Kill();
      ExpectWhole(dir.path());
      ASSERT_TRUE(store.Start()) << "round " << round;
      const nlohmann::json top = nlohmann::json::parse(
          Get(store.port(), "/top", {{"format", "json"}, {"from", "now-5h"}}).body, nullptr, false);
      ASSERT_TRUE(top.is_object());
      EXPECT_EQ(top.at("profiles"), stored);
      EXPECT_EQ(top.at("total"), kProfileTotal * stored);
    }
    for (int service = 0; service < kServices; ++service) {
      std::vector<std::string> profiles;
      for (int i = 0; i < kProfiles; ++i)
        profiles.push_back(CpuProfileAt(begin_ns + i * kNanosPerSecond));
      const std::string name = "r" + std::to_string(round) + "s" + std::to_string(service);
      ASSERT_EQ(Push(store.port(), PushBody(SeriesLabels(name), profiles)).status, 200);
      stored += kProfiles;
    }
    store.Kill();
  }
}

// A small file system of memory, as long as it lives.
class SmallDisk {
 public:
  explicit SmallDisk(const char* size)
      : mounted_(::mount("tmpfs", dir_.path().c_str(), "tmpfs", 0,
                         (std::string("size=") + size).c_str()) == 0) {}
  ~SmallDisk() {
    if (mounted_) ::umount2(dir_.path().c_str(), MNT_DETACH);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  bool mounted() const { return mounted_; }
  const std::string& path() const { return dir_.path(); }

 private:
  TempDir dir_;
  bool mounted_;
};

class FullDiskTest : public ::testing::Test {
 protected:
  // Pushes until the store says that the disk is full.
  Reply FillDisk(uint16_t port) {
    constexpr int kMoreThanFits = 20'000;
    for (int i = 0; i < kMoreThanFits; ++i) {
      const std::string service = "s" + std::to_string(next_++);
      Reply reply = PushService(port, service);
      if (reply.status != 200) return reply;
      ledger_.Acknowledged(service);
    }
    return {};
  }

  Ledger ledger_;
  int next_ = 0;
};

TEST_F(FullDiskTest, IsToldAndOverWhenSpaceReturns) {
  SmallDisk disk("6m");
  if (!disk.mounted()) FF_SKIP("mounting a tmpfs needs root");
  const std::string filler = disk.path() + "/filler";
  std::ofstream(filler) << std::string(3 << 20, 'x');
  StoreProcess store(disk.path() + "/data");
  ASSERT_TRUE(store.Start());

  const Reply full = FillDisk(store.port());
  EXPECT_EQ(full.status, 503) << full.body;
  EXPECT_THAT(full.body, HasSubstr("unavailable"));
  EXPECT_THAT(full.body, HasSubstr("full"));
  EXPECT_TRUE(full.headers.contains("retry-after"));
  ASSERT_GT(ledger_.Size(), 10U);
  ExpectAllThere(store.port(), ledger_.services());

  // Killed and started again while the disk is full.
  store.Kill();
  ASSERT_TRUE(store.Start());
  ExpectAllThere(store.port(), ledger_.services());
  EXPECT_EQ(FillDisk(store.port()).status, 503);
  EXPECT_THAT(Get(store.port(), "/metrics").body, HasSubstr("{reason=\"disk_full\"} 1"));

  std::filesystem::remove(filler);
  const std::string service = "after";
  EXPECT_EQ(PushService(store.port(), service).status, 200);
  ledger_.Acknowledged(service);
  ExpectAllThere(store.port(), ledger_.services());
  EXPECT_EQ(store.Stop(), 0);
}

TEST(ReadOnlyDisk, IsNamedAndNothingIsLost) {
  SmallDisk disk("6m");
  if (!disk.mounted()) FF_SKIP("mounting a tmpfs needs root");
  const std::string data = disk.path() + "/data";
  StoreProcess store(data);
  ASSERT_TRUE(store.Start());
  ASSERT_EQ(PushService(store.port(), "shop").status, 200);
  ASSERT_EQ(store.Stop(), 0);
  const auto remount = [&](unsigned long flags) {
    return ::mount(nullptr, disk.path().c_str(), nullptr, MS_REMOUNT | flags, nullptr);
  };
  ASSERT_EQ(remount(MS_RDONLY), 0);
  const CommandResult refused =
      RunCommand({FF_STORE_BINARY, "--data", data, "--listen", "127.0.0.1:0"});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, HasSubstr("Read-only file system"));
  EXPECT_THAT(refused.err, HasSubstr(data));
  ASSERT_EQ(remount(0), 0);
  ASSERT_TRUE(store.Start());
  ExpectAllThere(store.port(), {"shop"});
}

// Writes over half of the pages of a database file, as a bad disk would: some are in use for sure.
void DamagePages(const std::string& path, std::mt19937* random) {
  constexpr size_t kPage = 4096;
  const auto pages = static_cast<size_t>(std::filesystem::file_size(path) / kPage);
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  for (size_t i = 0; i < pages / 2; ++i) {
    file.seekp(static_cast<std::streamoff>((*random)() % pages * kPage));
    file << std::string(kPage, '\xa5');
  }
}

TEST(Durability, DamagedPagesAreFoundAndTheOtherDayIsServedWhole) {
  constexpr int kRounds = 5;
  constexpr int kServices = 30;
  std::mt19937 random(3);
  const int64_t day_ns = 24 * 3600 * kNanosPerSecond;
  const int64_t yesterday_ns = SystemClock().WallNanos() / day_ns * day_ns - day_ns / 2;
  for (int round = 0; round < kRounds; ++round) {
    TempDir dir;
    StoreProcess store(dir.path());
    ASSERT_TRUE(store.Start());
    Ledger today;
    for (int i = 0; i < kServices; ++i) {
      const std::string service = "s" + std::to_string(i);
      const std::vector<std::string> old = {CpuProfileAt(yesterday_ns)};
      ASSERT_EQ(Push(store.port(), PushBody(SeriesLabels("old-" + service), old)).status, 200);
      ASSERT_EQ(PushService(store.port(), service).status, 200);
      today.Acknowledged(service);
    }
    ASSERT_EQ(store.Stop(), 0);
    DamagePages(dir.path() + "/" + DayFile(yesterday_ns), &random);
    const CommandResult check = RunCommand({FF_STORE_BINARY, "check", dir.path()});
    EXPECT_EQ(check.exit_code, 1) << check.out;
    EXPECT_THAT(check.out, HasSubstr(DayFile(yesterday_ns))) << "round " << round;
    ASSERT_TRUE(store.Start());
    // A query that meets the damage answers with what is whole, or not at all; the store lives.
    EXPECT_NE(Get(store.port(), "/top", {{"from", "now-3d"}, {"until", "now"}}).status, 0);
    const std::string midnight = std::to_string(yesterday_ns / day_ns * day_ns + day_ns);
    const nlohmann::json top = nlohmann::json::parse(
        Get(store.port(), "/top", {{"format", "json"}, {"from", midnight}}).body, nullptr, false);
    ASSERT_TRUE(top.is_object());
    EXPECT_EQ(top.at("total"), kProfileTotal * kServices);
    EXPECT_EQ(PushService(store.port(), "after").status, 200);
    EXPECT_EQ(store.Stop(), 0);
  }
}

TEST(StoreBinary, ExportWritesEachSeriesAsPprofReadsIt) {
  if (PprofTool().empty()) FF_SKIP("go tool pprof needs Go");
  TempDir dir;
  const std::string data = dir.path() + "/data";
  const std::string out = dir.path() + "/out";
  StoreProcess store(data);
  ASSERT_TRUE(store.Start());
  const int64_t now_ns = SystemClock().WallNanos();
  const int64_t hour_ns = 3600 * kNanosPerSecond;
  const std::vector<std::string> both = {CpuProfileAt(now_ns - 2 * hour_ns), CpuProfileAt(now_ns)};
  Labels more = SeriesLabels("../shop");
  ASSERT_EQ(Push(store.port(), PushBody(more, both)).status, 200);
  more["pod"] = "shop-1";  // another series, though the first one's labels are all in it
  ASSERT_EQ(Push(store.port(), PushBody(more, {both[1]})).status, 200);
  const std::vector<std::string> command = {FF_STORE_BINARY, "export", "--data", data,
                                            "--out",         out};
  const CommandResult busy = RunCommand(command);
  EXPECT_EQ(busy.exit_code, 1);
  EXPECT_THAT(busy.err, HasSubstr("another flamefleet-store uses it"));
  ASSERT_EQ(store.Stop(), 0);

  const auto expect = [&](const std::vector<std::string>& flags, const std::string& first_total) {
    std::filesystem::remove_all(out);
    std::vector<std::string> all = command;
    all.insert(all.end(), flags.begin(), flags.end());
    const CommandResult done = RunCommand(all);
    EXPECT_EQ(done.exit_code, 0) << done.err;
    EXPECT_THAT(done.out, HasSubstr("1-process_cpu-___shop.pb.gz\t{"));
    EXPECT_THAT(done.out, HasSubstr("\"pod\":\"shop-1\""));
    const auto top = [&](const std::string& name) {
      return RunCommand({PprofTool(), "-top", "-symbolize=none", out + "/" + name}).out;
    };
    const bool pod_first = done.out.find("shop-1") < done.out.find('\n');
    EXPECT_THAT(top(pod_first ? "2-process_cpu-___shop.pb.gz" : "1-process_cpu-___shop.pb.gz"),
                HasSubstr("of " + first_total + " total"));
    EXPECT_THAT(top(pod_first ? "1-process_cpu-___shop.pb.gz" : "2-process_cpu-___shop.pb.gz"),
                HasSubstr("of 60ms total"));
  };
  expect({}, "120ms");
  expect({"--from", "now-1h"}, "60ms");
  std::vector<std::string> nothing = command;
  nothing.insert(nothing.end(), {"--query", "memory"});
  EXPECT_THAT(RunCommand(nothing).err, HasSubstr("nothing was stored that matches"));
}

TEST(StoreBinary, OtherCredentialsInTheFileCountWithoutARestart) {
  TempDir dir;
  const std::string file = dir.path() + "/auth";
  const auto put = [&](const std::string& text) {
    std::ofstream(file + ".new") << text;
    std::filesystem::rename(file + ".new", file);  // whole at once, as the kubelet does it
  };
  put("read bearer first\n");
  StoreProcess store(dir.path() + "/data", {"--auth-file", file});
  ASSERT_TRUE(store.Start());
  const auto status = [&](const std::string& token) {
    return Send(store.port(), "GET", "/types", {{"Authorization", "Bearer " + token}}).status;
  };
  EXPECT_EQ(status("first"), 200);
  EXPECT_EQ(status("second"), 401);
  put("read bearer second\n");
  EXPECT_TRUE(WaitUntil([&] { return status("second") == 200; }));
  EXPECT_EQ(status("first"), 401);
  std::filesystem::remove(file);
  EXPECT_EQ(status("second"), 200);
  put("read bearer third\n");
  EXPECT_TRUE(WaitUntil([&] { return status("third") == 200; }));
}

TEST(StoreBinary, WrongFlagsAreUsageErrors) {
  const auto run = [](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), FF_STORE_BINARY);
    return RunCommand(arguments);
  };
  const auto expect = [&](const std::vector<std::string>& arguments, const std::string& message) {
    const CommandResult result = run(arguments);
    EXPECT_EQ(result.exit_code, 2) << result.err;
    EXPECT_THAT(result.err, HasSubstr(message));
  };
  expect({}, "--data is missing");
  expect({"--data", "x", "--retention", "0s"}, "--retention");
  expect({"--data", "x", "--max-size", "10G"}, "--max-size: size '10G'");
  expect({"--data", "x", "--log-level", "loud"}, "log level 'loud'");
  expect({"--data", "x", "--tls-cert", "x"}, "--tls-cert and --tls-key");
  expect({"--data", "x", "--read-listen", ":4040"}, "--read-listen must be on loopback");
  expect({"--nonsense"}, "nonsense");
  const CommandResult help = run({"--help"});
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_THAT(help.out, HasSubstr("--retention"));
  EXPECT_EQ(run({"--data", "/proc/none", "--listen", "127.0.0.1:0"}).exit_code, 1);
}

}  // namespace
}  // namespace flamefleet::store
