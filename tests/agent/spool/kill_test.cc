// SPDX-License-Identifier: Apache-2.0
// A process that appends to a spool and removes from it is killed at random
// moments: what it had been told is kept is there, whole, and what it had not
// removed is not gone. On this disk, and on a slow one that is killed in the
// middle of a write.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>
#include <random>
#include <set>
#include <sstream>

#include "agent/spool/spool.h"
#include "base/fd.h"
#include "tests/fakes/slow_disk.h"
#include "tests/support/temp_dir.h"

namespace flamefleet::agent {
namespace {

constexpr int kKills = 50;

// Its length and bytes follow from the number.
std::string BodyOf(int64_t number) {
  const std::string mark = std::to_string(number) + ",";
  std::string body;
  const auto size = static_cast<size_t>(1000 + number % 19 * 1000);
  while (body.size() < size)
    body += mark;
  return body;
}

// Says "k NUMBER" when a profile is kept and "r NUMBER" before it removes one.
// Never returns.
[[noreturn]] void WriteUntilKilled(const SpoolOptions& options, int out, int64_t number) {
  const auto say = [out](char what, int64_t about) {
    const std::string line = std::string(1, what) + " " + std::to_string(about) + "\n";
    if (::write(out, line.data(), line.size()) < 0) _exit(1);
  };
  auto spool = Spool::Open(options);
  if (!spool.ok()) _exit(1);
  for (int round = 0;; ++round) {
    std::vector<SpooledProfile> batch;
    for (int i = 0; i < 5; ++i, ++number)
      batch.push_back({.backend = "a", .time_ns = number, .body = BodyOf(number)});
    const auto refused = (*spool)->Append(batch);
    if (!refused.ok() || !refused->empty()) _exit(1);
    for (const SpooledProfile& profile : batch)
      say('k', profile.time_ns);
    for (int i = 0; i < 4; ++i) {
      SpooledProfile profile;
      const Result<bool> taken = (*spool)->TakeOldest("a", &profile);
      if (!taken.ok() || !*taken) _exit(1);
      say('r', profile.time_ns);
      if (!(*spool)->Remove(profile).ok()) _exit(1);
    }
  }
}

class SpoolKill : public ::testing::TestWithParam<std::chrono::microseconds> {};

TEST_P(SpoolKill, NothingKeptIsLostAndNothingIsTorn) {
  const TempDir dir;
  const SpoolOptions options = {.directory = dir.path(), .max_bytes = int64_t{1} << 30};
  std::mt19937 random(std::random_device{}());
  size_t all_kept = 0;
  for (int kill = 0; kill < kKills; ++kill) {
    std::set<int64_t> kept;     // said so
    std::set<int64_t> removed;  // said that they will be
    int pipe_fds[2];
    ASSERT_EQ(::pipe2(pipe_fds, O_CLOEXEC), 0);
    ::fcntl(pipe_fds[1], F_SETPIPE_SZ,
            4096);  // it is killed soon after what was read last
    const pid_t child = ::fork();
    if (child == 0) {
      if (GetParam().count() != 0) UseSlowDisk(GetParam());
      WriteUntilKilled(options, pipe_fds[1], kill * 1'000'000);
    }
    ::close(pipe_fds[1]);
    const UniqueFd said(pipe_fds[0]);
    std::string text;
    // At a random moment of the time in which it works.
    const size_t enough = random() % 800;
    char buffer[512];
    while (text.size() < enough) {
      const ssize_t got = ::read(said.get(), buffer, sizeof buffer);
      if (got <= 0) break;
      text.append(buffer, static_cast<size_t>(got));
    }
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    for (ssize_t got = 0; (got = ::read(said.get(), buffer, sizeof buffer)) > 0;)
      text.append(buffer, static_cast<size_t>(got));
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "it ended by itself";
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line) && !lines.eof();)
      (line[0] == 'k' ? kept : removed).insert(std::stoll(line.substr(2)));

    bool damaged = false;
    const auto spool = Spool::Open(options, &damaged);
    ASSERT_TRUE(spool.ok()) << spool.status();
    ASSERT_FALSE(damaged);
    std::set<int64_t> there;
    for (SpooledProfile profile;;) {
      const Result<bool> taken = (*spool)->TakeOldest("a", &profile);
      ASSERT_TRUE(taken.ok()) << taken.status();
      if (!*taken) break;
      ASSERT_EQ(profile.body, BodyOf(profile.time_ns));
      ASSERT_TRUE(there.insert(profile.time_ns).second);
      ASSERT_TRUE((*spool)->Remove(profile).ok());
    }
    for (const int64_t number : kept)
      ASSERT_TRUE(there.contains(number) || removed.contains(number)) << number;
    all_kept += kept.size();
  }
  EXPECT_GT(all_kept, 500U);
}

INSTANTIATE_TEST_SUITE_P(Disks, SpoolKill,
                         ::testing::Values(std::chrono::microseconds(0),
                                           std::chrono::microseconds(200)),
                         [](const auto& disk) {
                           return disk.param.count() == 0 ? "AsItIs" : "Slow";
                         });

}  // namespace
}  // namespace flamefleet::agent
