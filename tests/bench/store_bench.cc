// SPDX-License-Identifier: Apache-2.0
// store_bench DIR: what a day of one service costs the store, 19 Hz on 16 busy cores, a profile
// each 15 s, and what the same profiles cost as gzip files that google/pprof merges.
//
// Prints: profiles written per second of CPU and packed per second of CPU; bytes per sample
// received and at rest; time of a merge of 24 h and of one hour, and of `go tool pprof -proto` on
// the files of both; largest memory of this process; how long a push waits for the writer, with and
// without something to pack.
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <thread>

#include "base/clock.h"
#include "base/gzip.h"
#include "base/metrics.h"
#include "store/db/database.h"
#include "store/query/query.h"

namespace flamefleet::store {
namespace {

constexpr int kSamplesPerProfile = 19 * 16 * 15;
constexpr int64_t kIntervalNs = 15 * kNanosPerSecond;
constexpr int kProfilesPerDay = 24 * 3600 / 15;
constexpr int kProfilesPerHour = kProfilesPerDay / 24;
constexpr int kFunctions = 3000;
constexpr int kStacks = 5000;  // that the service has in all

// The stacks of a made-up service: a tree whose popular parts are deep and shared; which of them is
// seen in a profile is by Zipf's law.
class Service {
 public:
  Service() {
    for (int i = 0; i < kStacks; ++i) {
      std::vector<uint32_t> stack;
      if (i > 0) {
        const std::vector<uint32_t>& other = stacks_[random_() % stacks_.size()];
        stack.assign(other.begin(), other.begin() + static_cast<ptrdiff_t>(
                                                        other.size() * (random_() % 100) / 100));
      }
      const size_t depth = stack.size() + 2 + random_() % 20;
      while (stack.size() < depth)
        stack.push_back(static_cast<uint32_t>(random_() % kFunctions));
      stacks_.push_back(std::move(stack));
      weights_.push_back(1 / std::pow(i + 1, 1.1));
    }
    pick_ = std::discrete_distribution<int>(weights_.begin(), weights_.end());
  }

  std::string GzipProfile(int64_t time_ns) {
    std::vector<int64_t> counts(kStacks);
    for (int i = 0; i < kSamplesPerProfile; ++i)
      ++counts[static_cast<size_t>(pick_(random_))];
    pprof::Profile p;
    p.sample_types = {{p.strings.Intern("cpu"), p.strings.Intern("nanoseconds")}};
    p.period_type = p.sample_types[0];
    p.period = kNanosPerSecond / 19;
    p.time_ns = time_ns;
    p.duration_ns = kIntervalNs;
    p.mappings = {{.memory_start = 0x400000,
                   .memory_limit = 0x2400000,
                   .file_name = p.strings.Intern("/usr/local/bin/checkout"),
                   .build_id = p.strings.Intern("8c1d2f35b0a94e7d9e6fd8b4"),
                   .has_functions = true}};
    std::vector<uint32_t> locations(kFunctions, pprof::kNone);
    for (size_t number = 0; number < counts.size(); ++number) {
      if (counts[number] == 0) continue;
      const std::vector<uint32_t>& stack = stacks_[number];
      p.samples.push_back({.first_location = static_cast<uint32_t>(p.sample_locations.size()),
                           .location_count = static_cast<uint32_t>(stack.size())});
      for (auto f = stack.rbegin(); f != stack.rend(); ++f) {
        if (locations[*f] == pprof::kNone) {
          locations[*f] = static_cast<uint32_t>(p.locations.size());
          AddLocation(*f, &p);
        }
        p.sample_locations.push_back(locations[*f]);
      }
      p.values.push_back(counts[number] * p.period);
    }
    std::string bytes;
    pprof::Encode(p, &bytes);
    return *Gzip(bytes);
  }

 private:
  static void AddLocation(uint32_t function, pprof::Profile* p) {
    const std::string name = "checkout::module" + std::to_string(function % 97) + "::Handler" +
                             std::to_string(function) + "::Process(std::string const&)";
    p->locations.push_back({.address = 0x400000 + uint64_t{function} * 0x1530,
                            .mapping = 0,
                            .first_line = static_cast<uint32_t>(p->lines.size()),
                            .line_count = 1});
    p->lines.push_back({.function = static_cast<uint32_t>(p->functions.size())});
    p->functions.push_back({.name = p->strings.Intern(name)});
  }

  std::mt19937 random_{1};
  std::vector<std::vector<uint32_t>> stacks_;
  std::vector<double> weights_;
  std::discrete_distribution<int> pick_;
};

double CpuSeconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

long PeakMegabytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss >> 10;
}

double Seconds(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

int64_t DayBytes(const std::string& directory) {
  int64_t bytes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (entry.path().string().find(".db") != std::string::npos) {
      bytes += static_cast<int64_t>(entry.file_size());
    }
  }
  return bytes;
}

// Moves by hand, and on by itself.
class BenchClock final : public Clock {
 public:
  int64_t WallNanos() const override { return wall_ns; }
  int64_t MonotonicNanos() const override { return wall_ns + SystemClock().MonotonicNanos(); }
  std::atomic<int64_t> wall_ns = 20'000 * kNanosPerDay;
};

bool ArePacked(const Metrics& metrics, int profiles) {
  return metrics.RenderText().find("profiles_packed_total " + std::to_string(profiles) + "\n") !=
         std::string::npos;
}

void PrintWaits(const char* what, std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  const auto at = [&](double share) {
    return 1e3 * seconds[static_cast<size_t>(share * static_cast<double>(seconds.size() - 1))];
  };
  std::printf("%zu pushes of one profile %s: %.1f ms median, %.1f ms p99, %.1f ms at most\n",
              seconds.size(), what, at(0.5), at(0.99), at(1));
}

// Pushes one profile after the other, while as many as `to_pack` are packed.
void PushWhile(Service* service, const char* what, const std::string& directory, int to_pack) {
  BenchClock clock;
  Metrics metrics;
  auto database = *Database::Open({.directory = directory}, &clock, &metrics);
  const int64_t begin_ns = clock.wall_ns;
  const auto make = [&](const std::string& name, int64_t time_ns) {
    return NewProfile{.labels = {{kProfileName, "process_cpu"}, {kServiceName, name}},
                      .time_ns = time_ns,
                      .pprof = service->GzipProfile(time_ns)};
  };
  std::vector<NewProfile> old;
  for (int i = 0; i < to_pack; ++i)
    old.push_back(make("old", begin_ns + i * kIntervalNs));
  std::vector<NewProfile> fresh;  // a service each, so that none of them is packed
  constexpr int kPushes = 400;
  for (int i = 0; i < kPushes; ++i)
    fresh.push_back(make("fresh" + std::to_string(i), begin_ns + 20 * kNanosPerHour));
  FF_CHECK(database->Append(old).ok());
  clock.wall_ns += 20 * kNanosPerHour;
  std::vector<double> seconds;
  for (const NewProfile& profile : fresh) {
    if (to_pack > 0 && ArePacked(metrics, to_pack)) break;
    seconds.push_back(Seconds([&] { FF_CHECK(database->Append({profile}).ok()); }));
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  PrintWaits(what, std::move(seconds));
}

std::string FileOf(const std::string& directory, int hour, int number) {
  return directory + "/hour" + std::to_string(hour) + "-" + std::to_string(number) + ".pb.gz";
}

void MergeByPprof(const std::string& directory, const char* what, const std::string& files) {
  const std::string command = "cd " + directory +
                              " && go tool pprof -proto -symbolize=none -output merged.pb.gz " +
                              files + " > pprof.log 2>&1";
  const double seconds = Seconds([&] { FF_CHECK(std::system(command.c_str()) == 0); });
  std::printf("go tool pprof, the files of %s: %.0f ms\n", what, seconds * 1e3);
}

void Run(const std::string& directory) {
  const std::string data = directory + "/data";
  const int64_t begin_ns = 20'000 * kNanosPerDay;
  const Labels labels = {{kProfileName, "process_cpu"}, {kServiceName, "checkout"}};
  Service service;
  int64_t received = 0;
  PushWhile(&service, "while nothing is packed", directory + "/quiet", 0);
  PushWhile(&service, "while 4 hours are packed", directory + "/busy", 4 * kProfilesPerHour);
  BenchClock clock;
  Metrics metrics;
  auto database = *Database::Open({.directory = data}, &clock, &metrics);
  double cpu = 0;
  for (int hour = 0; hour < 24; ++hour) {
    std::vector<NewProfile> profiles;
    for (int i = 0; i < kProfilesPerHour; ++i) {
      const int64_t time_ns = begin_ns + (hour * kProfilesPerHour + i) * kIntervalNs;
      profiles.push_back(
          {.labels = labels, .time_ns = time_ns, .pprof = service.GzipProfile(time_ns)});
      received += static_cast<int64_t>(profiles.back().pprof.size());
      std::ofstream(FileOf(directory, hour, i), std::ios::binary) << profiles.back().pprof;
    }
    const double before = CpuSeconds();
    FF_CHECK(database->Append(profiles).ok());
    clock.wall_ns += kNanosPerHour;
    while (!ArePacked(metrics, (hour + 1) * kProfilesPerHour))
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    cpu += CpuSeconds() - before;
  }
  database.reset();
  const auto samples = static_cast<double>(kProfilesPerDay) * kSamplesPerProfile;
  const auto at_rest = static_cast<double>(DayBytes(data));
  std::printf("stored and packed: %d profiles, %.0f per second of CPU\n", kProfilesPerDay,
              kProfilesPerDay / cpu);
  std::printf("received as gzip: %.1f MB, %.3f bytes per sample, %.0f per profile\n",
              static_cast<double>(received) / 1e6, static_cast<double>(received) / samples,
              static_cast<double>(received) / kProfilesPerDay);
  std::printf("at rest: %.1f MB, %.3f bytes per sample, %.1f times smaller\n", at_rest / 1e6,
              at_rest / samples, static_cast<double>(received) / at_rest);

  database = *Database::Open({.directory = data}, &clock, &metrics);
  const auto merge = [&](const char* what, int64_t from_ns, int64_t until_ns) {
    size_t count = 0;
    const double seconds = Seconds([&] {
      const Result<MergedProfile> merged =
          MergeProfiles(database.get(), SystemClock(), *ParseSelector("process_cpu"),
                        {from_ns, until_ns}, QueryLimits{.max_merge_bytes = 128 << 20});
      FF_CHECK(merged.ok());
      count = merged->profiles;
    });
    std::printf("merge of %s: %zu profiles in %.0f ms\n", what, count, seconds * 1e3);
  };
  merge("24 h", begin_ns, begin_ns + kNanosPerDay - 1);
  merge("24 h that begin and end inside of an hour", begin_ns + kNanosPerHour / 2,
        begin_ns + kNanosPerDay - kNanosPerHour / 2);
  merge("1 h", begin_ns, begin_ns + kNanosPerHour - 1);
  merge("5 min", begin_ns, begin_ns + kNanosPerHour / 12);
  std::printf("largest memory of all this, an hour of profiles included: %ld MB\n",
              PeakMegabytes());
  MergeByPprof(directory, "1 h", "hour0-*.pb.gz");
  MergeByPprof(directory, "24 h", "hour*.pb.gz");
}

}  // namespace
}  // namespace flamefleet::store

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: store_bench DIR    an empty directory\n", stderr);
    return 2;
  }
  flamefleet::store::Run(argv[1]);
}
