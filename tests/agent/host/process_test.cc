// SPDX-License-Identifier: Apache-2.0
#include "agent/host/process.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/clock.h"
#include "tests/fakes/fake_clock.h"
#include "tests/support/wait.h"

namespace flamefleet::agent {
namespace {

std::string Comm() {
  std::string comm = ReadFile("/proc/self/comm", 100).value_or("");
  comm.pop_back();
  return comm;
}

// Field 22 of a process's stat by another way than ours.
uint64_t StartOf(const std::string& pid) {
  std::ifstream stat("/proc/" + pid + "/stat");
  std::string field;
  for (int i = 0; i < 22; ++i)
    stat >> field;  // the name of this program has no spaces
  return std::stoull(field) * 10'000'000;
}

ProcessId Self() {
  return {.pid = static_cast<uint32_t>(::getpid()), .start_boottime = StartOf("self")};
}

TEST(Process, ImageOfThisProcessHoldsItsFunctions) {
  FileTable files(1000);
  RootTable roots;
  const auto image = ReadProcessImage("/proc", Self(), Comm(), &files, &roots);
  ASSERT_TRUE(image.ok()) << image.status();
  const ImageMapping* const here = (*image)->Find(reinterpret_cast<uint64_t>(&ReadProcessImage));
  ASSERT_NE(here, nullptr);
  const std::string program = std::filesystem::read_symlink("/proc/self/exe");
  EXPECT_EQ(here->path, program);
  EXPECT_TRUE(here->file);
  EXPECT_EQ((*image)->executable, std::filesystem::path(program).filename());
}

TEST(Process, ReusedPidIsAnotherProcess) {
  FileTable files(1000);
  RootTable roots;
  ProcessId id = Self();
  id.start_boottime += kNanosPerSecond;
  EXPECT_EQ(ReadProcessImage("/proc", id, Comm(), &files, &roots).status().code(),
            StatusCode::kNotFound);
}

TEST(Process, AnotherProgramInTheSameProcessIsNotItsImage) {
  FileTable files(1000);
  RootTable roots;
  EXPECT_EQ(ReadProcessImage("/proc", Self(), "before exec", &files, &roots).status().code(),
            StatusCode::kNotFound);
}

TEST(Process, IsAliveUntilItsPidIsAnothers) {
  ProcessId id = Self();
  EXPECT_TRUE(IsAlive("/proc", id));
  id.start_boottime += kNanosPerSecond;
  EXPECT_FALSE(IsAlive("/proc", id));
  EXPECT_FALSE(IsAlive("/proc", {.pid = 4'000'000}));
}

TEST(Process, WhoseMainThreadHasEndedIsReadByAnother) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t pid = ::fork();
  if (pid == 0) {
    std::thread([] {
      for (;;)
        ::pause();
    }).detach();
    ::close(ends[0]);
    ::close(ends[1]);  // of all threads: their table is one
    ::syscall(SYS_exit, 0);
  }
  ASSERT_GT(pid, 0);
  ::close(ends[1]);
  char none = 0;
  ASSERT_EQ(::read(ends[0], &none, 1), 0);
  ::close(ends[0]);
  const std::string directory = "/proc/" + std::to_string(pid);
  EXPECT_TRUE(WaitUntil(
      [&] {
        return ReadFile(directory + "/status", 1 << 16)->find("State:\tZ") != std::string::npos;
      },
      std::chrono::minutes(1)));
  const ProcessId id{.pid = static_cast<uint32_t>(pid),
                     .start_boottime = StartOf(std::to_string(pid))};
  FileTable files(1000);
  RootTable roots;
  const auto image = ReadProcessImage("/proc", id, Comm(), &files, &roots);
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
  ASSERT_TRUE(image.ok()) << image.status();
  const ImageMapping* const here = (*image)->Find(reinterpret_cast<uint64_t>(&ReadProcessImage));
  ASSERT_NE(here, nullptr);
  EXPECT_TRUE(here->file);
  EXPECT_TRUE((*image)->root);
  EXPECT_EQ((*image)->executable, std::filesystem::read_symlink("/proc/self/exe").filename());
}

TEST(Process, FindsNothingBetweenMappings) {
  ProcessImage image;
  image.mappings.push_back({.start = 0x1000, .end = 0x2000});
  image.mappings.push_back({.start = 0x3000, .end = 0x4000});
  EXPECT_EQ(image.Find(0xfff), nullptr);
  EXPECT_EQ(image.Find(0x1000), &image.mappings[0]);
  EXPECT_EQ(image.Find(0x1fff), &image.mappings[0]);
  EXPECT_EQ(image.Find(0x2000), nullptr);
  EXPECT_EQ(image.Find(0x3fff), &image.mappings[1]);
  EXPECT_EQ(image.Find(UINT64_MAX), nullptr);
}

TEST(ProcessTable, ReadsAProcessOnce) {
  ProcessTable table("/proc", 1000);
  const auto first = table.Get(Self(), Comm(), 0);
  ASSERT_TRUE(first && first->image);
  const auto image = first->image;
  EXPECT_EQ(table.Get(Self(), Comm(), kNanosPerSecond), first);
  EXPECT_EQ(first->image, image);
  EXPECT_EQ(table.unreadable(), 0u);
}

// A /proc with processes of our making, whose names are "x".
class FakeProc {
 public:
  FakeProc() { std::filesystem::remove_all(path_); }
  ~FakeProc() { std::filesystem::remove_all(path_); }
  FakeProc(const FakeProc&) = delete;
  FakeProc& operator=(const FakeProc&) = delete;

  ProcessId Add(uint32_t pid, const std::string& maps) const {
    std::filesystem::create_directories(FolderOf(pid));
    std::filesystem::remove(FolderOf(pid) + "/exe");
    std::filesystem::create_symlink("/bin/x", FolderOf(pid) + "/exe");
    std::ofstream(FolderOf(pid) + "/maps") << maps;
    std::ofstream(FolderOf(pid) + "/stat")
        << "7 (x) y) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 500 20\n";
    Rename(pid, "x");
    return {.pid = pid, .start_boottime = 5'000'000'000};
  }
  void Rename(uint32_t pid, const std::string& comm) const {
    std::ofstream(FolderOf(pid) + "/comm") << comm << "\n";
  }
  const std::string& path() const { return path_; }

 private:
  std::string FolderOf(uint32_t pid) const { return path_ + "/" + std::to_string(pid); }
  const std::string path_ = ::testing::TempDir() + "ff-proc-" + std::to_string(::getpid());
};

constexpr const char* kOneMapping = "1000-2000 r-xp 00000000 00:00 0 /bin/x\n";

TEST(ProcessTable, KeepsTheImageOfAProcessThatHasEnded) {
  const FakeProc proc;
  ProcessTable table(proc.path(), 10);
  const auto process = table.Get(proc.Add(7, kOneMapping), "x", 0);
  ASSERT_TRUE(process && process->image);
  std::filesystem::remove_all(proc.path());
  table.Refresh(process.get(), 2 * kNanosPerSecond);
  EXPECT_TRUE(process->image);
}

// It is in /proc until it is waited for, but has no mappings any more.
TEST(ProcessTable, KeepsTheImageOfAProcessThatIsEnding) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    for (;;)
      ::pause();
  }
  ASSERT_GT(pid, 0);
  const auto id =
      ProcessId{.pid = static_cast<uint32_t>(pid), .start_boottime = StartOf(std::to_string(pid))};
  ProcessTable table("/proc", 1000);
  const auto process = table.Get(id, Comm(), 0);
  ASSERT_TRUE(process && process->image);
  const auto image = process->image;
  ASSERT_EQ(::kill(pid, SIGKILL), 0);
  siginfo_t ended{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(pid), &ended, WEXITED | WNOWAIT), 0);
  table.Refresh(process.get(), 2 * kNanosPerSecond);
  EXPECT_EQ(process->image, image);
  ASSERT_EQ(::waitpid(pid, nullptr, 0), pid);
}

TEST(ProcessTable, AProcessThatRenamedItselfIsStillReadAgain) {
  const FakeProc proc;
  ProcessTable table(proc.path(), 10);
  const ProcessId id = proc.Add(7, kOneMapping);
  const auto process = table.Get(id, "x", 0);
  ASSERT_TRUE(process && process->image);
  proc.Add(7, std::string(kOneMapping) + "3000-4000 r-xp 00000000 00:00 0 /lib/y\n");
  proc.Rename(7, "my title");
  ASSERT_EQ(table.Get(id, "my title", 2 * kNanosPerSecond), process);
  table.Refresh(process.get(), 2 * kNanosPerSecond);
  EXPECT_EQ(process->image->mappings.size(), 2u);
}

std::string LongMappings(int count) {
  std::string maps;
  for (int i = 0; i < count; ++i) {
    char range[64];
    std::snprintf(range, sizeof(range), "%x000-%x000 r-xp 00000000 00:00 0 ", i + 1, i + 2);
    maps += range + ("/" + std::string(4000, 'x')) + "\n";
  }
  return maps;
}

TEST(ProcessTable, PathsOfAnImageAreCutAtTheirBound) {
  const FakeProc proc;
  ProcessTable table(proc.path(), 10);
  const auto process = table.Get(proc.Add(7, LongMappings(1000)), "x", 0);
  ASSERT_TRUE(process && process->image);
  ASSERT_EQ(process->image->mappings.size(), 1000u);
  EXPECT_EQ(process->image->mappings.front().path.size(), 4001u);
  EXPECT_EQ(process->image->mappings.back().path, "[...]");
  EXPECT_LE(process->image->Bytes(), kMaxImagePathBytes + 256 * 1024);
}

TEST(ProcessTable, ImagesBeyondTheirBoundAreNotKeptUntilOthersGo) {
  const FakeProc proc;
  const FakeClock still;  // no read takes time
  ProcessTable table(proc.path(), 10, still);
  const std::string maps = LongMappings(64);
  const auto first = table.Get(proc.Add(1, maps), "x", 0);
  ASSERT_TRUE(first && first->image);
  const auto fit = static_cast<uint32_t>(kMaxImagesBytes / first->image->Bytes());
  for (uint32_t pid = 2; pid <= fit; ++pid)
    ASSERT_TRUE(table.Get(proc.Add(pid, maps), "x", 0)->image) << pid;
  const ProcessId last = proc.Add(fit + 1, maps);
  EXPECT_FALSE(table.Get(last, "x", 0)->image);
  EXPECT_EQ(table.unreadable(), 1u);
  table.End(first->id);
  table.EndWindow();
  EXPECT_TRUE(table.Get(last, "x", 2 * kNanosPerSecond)->image);
}

// Each reading takes a second.
class SlowClock final : public Clock {
 public:
  int64_t WallNanos() const override { return 0; }
  int64_t MonotonicNanos() const override { return now_ns_ += kNanosPerSecond; }

 private:
  mutable int64_t now_ns_ = 0;
};

TEST(ProcessTable, ReadingThatTakesLongWaitsForTheNextPeriod) {
  const FakeProc proc;
  const SlowClock clock;
  ProcessTable table(proc.path(), 10, clock);
  EXPECT_TRUE(table.Get(proc.Add(1, kOneMapping), "x", 0)->image);
  const ProcessId second = proc.Add(2, kOneMapping);
  EXPECT_FALSE(table.Get(second, "x", 0)->image);
  EXPECT_FALSE(table.Get(second, "x", kReadPeriodNanos - 1)->image);
  EXPECT_TRUE(table.Get(second, "x", kReadPeriodNanos)->image);
  EXPECT_EQ(table.unreadable(), 0u);
}

TEST(ProcessTable, CountsWhatItCannotRead) {
  ProcessTable table("/proc", 10);
  const auto process = table.Get({.pid = 4'000'000}, "gone", 0);
  ASSERT_TRUE(process);
  EXPECT_FALSE(process->image);
  EXPECT_EQ(table.unreadable(), 1u);
}

TEST(ProcessTable, ForgetsProcessesThatAreNotSampled) {
  ProcessTable table("/proc", 10);
  table.Get({.pid = 4'000'000}, "gone", 0);
  for (uint64_t i = 0; i <= kIdleWindows; ++i) {
    EXPECT_EQ(table.size(), 1u);
    table.EndWindow();
  }
  EXPECT_EQ(table.size(), 0u);
}

TEST(ProcessTable, ForgetsAnEndedProcessWithItsWindow) {
  ProcessTable table("/proc", 10);
  const ProcessId id{.pid = 4'000'000};
  table.Get(id, "gone", 0);
  table.End(id);
  EXPECT_EQ(table.size(), 1u);  // its last samples are in this window
  table.EndWindow();
  EXPECT_EQ(table.size(), 0u);
}

// Both programs may have the same name, and the second one another layout.
TEST(ProcessTable, WhatWasReadAfterAnExecIsNoImageOfTheProgramBeforeIt) {
  const FakeProc proc;
  FakeClock clock;
  clock.Advance(kNanosPerSecond);
  ProcessTable table(proc.path(), 10, clock);
  const ProcessId id = proc.Add(7, kOneMapping);
  const auto process = table.Get(id, "x", 0);
  ASSERT_TRUE(process && process->image);
  const int64_t read_ns = clock.MonotonicNanos();
  table.End(id, read_ns + 1);
  EXPECT_TRUE(process->image) << "it was read before";
  table.End(id);
  EXPECT_TRUE(process->image) << "an exit changes nothing";
  table.End(id, read_ns - 1);
  EXPECT_FALSE(process->image);
  EXPECT_EQ(table.unreadable(), 1u);
}

TEST(ProcessTable, RefusesMoreThanItsBound) {
  ProcessTable table("/none", 10);
  for (uint32_t pid = 1; pid <= kMaxProcesses; ++pid)
    ASSERT_TRUE(table.Get({.pid = pid}, "", 0));
  EXPECT_FALSE(table.Get({.pid = kMaxProcesses + 1}, "", 0));
  EXPECT_TRUE(table.Get({.pid = 1}, "", 0));
}

}  // namespace
}  // namespace flamefleet::agent
