// SPDX-License-Identifier: Apache-2.0
// The agent as a program, in a memory cgroup of 64 MiB: its parsing child, what the kernel keeps
// for both (BPF maps) and the pages of its files are in it, as in a container's. Around it: 200
// busy processes of 20 programs in containers, pods that serve profiles as large as they can, and a
// full spool, for the backend is away at first.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>

#include "agent/push/push_request.h"
#include "agent/spool/spool.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/gzip.h"
#include "base/http/server.h"
#include "base/pprof/profile.h"
#include "proto/pyroscope/push.pb.h"
#include "tests/agent/run/agent_program.h"
#include "tests/bpf/child.h"
#include "tests/support/skip.h"
#include "tests/support/wait.h"

namespace flamefleet::agent {
namespace {

using testing::Child;
using testing::TestCgroup;

constexpr int64_t kLimitBytes = 64 << 20;
constexpr int kFrequencyHz = 97;
constexpr size_t kPrograms = 20;
constexpr size_t kProcessesOfEach = 10;
constexpr int64_t kSpoolBytes = 64 << 20;
constexpr size_t kWindows = 2;  // whole ones that are looked at
constexpr std::chrono::minutes kPatience{5};

// Programs that people run, and that never end by themselves.
const std::vector<std::vector<std::string>>& Commands() {
  static const std::vector<std::vector<std::string>> commands = {
      {"bash", "-c", "while :; do :; done"},
      {"dash", "-c", "while :; do :; done"},
      {"perl", "-e", "1 while 1"},
      {"python3", "-c", "while True: pass"},
      {"node", "-e", "for (;;) {}"},
      {"mawk", "BEGIN { while (1) i++ }"},
      {"sqlite3", ":memory:",
       "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c) "
       "SELECT count(*) FROM c"},
      {"openssl", "dgst", "-sha256", "/dev/zero"},
      {"xz"},
      {"gzip"},
      {"bzip2"},
      {"zstd"},
      {"base64"},
      {"md5sum"},
      {"sha1sum"},
      {"sha224sum"},
      {"sha256sum"},
      {"sha384sum"},
      {"sha512sum"},
      {"b2sum"},
      {"cksum"},
      {"od"},
      {"tr", "a", "b"},
      {"wc"},
  };
  return commands;
}

// The first path of the program in the system's folders; empty: it is not here.
std::string PathOf(const std::string& program) {
  for (const char* const folder : {"/usr/bin/", "/bin/"}) {
    if (::access((folder + program).c_str(), X_OK) == 0) return folder + program;
  }
  return "";
}

class MemoryCgroup {
 public:
  explicit MemoryCgroup(int64_t limit)
      : directory_("/sys/fs/cgroup/memory/ff-memory-" + std::to_string(::getpid())) {
    is_usable_ = ::mkdir(directory_.c_str(), 0755) == 0 &&
                 Write("memory.limit_in_bytes", std::to_string(limit));
    // Without swap, as a kubelet wants it; where the kernel does not account it there is none.
    Write("memory.memsw.limit_in_bytes", std::to_string(limit));
  }
  ~MemoryCgroup() {
    WaitUntil([this] { return ::rmdir(directory_.c_str()) == 0 || errno != EBUSY; });
  }
  MemoryCgroup(const MemoryCgroup&) = delete;
  MemoryCgroup& operator=(const MemoryCgroup&) = delete;

  bool is_usable() const { return is_usable_; }
  // Runs a command in it.
  std::vector<std::string> Prefix() const {
    return {"sh", "-c", "echo $$ > " + directory_ + "/cgroup.procs && exec \"$@\"", "sh"};
  }
  int64_t Number(const std::string& file) const {
    return std::strtoll(Read(file).c_str(), nullptr, 10);
  }
  int64_t Stat(const std::string& file, const std::string& key) const {
    std::istringstream lines(Read(file));
    int64_t number = 0;
    for (std::string name; lines >> name >> number;) {
      if (name == key) return number;
    }
    ADD_FAILURE() << file << " has no " << key;
    return 0;
  }
  // What could not be given back at once.
  int64_t Used() const {
    return Number("memory.usage_in_bytes") - Stat("memory.stat", "total_inactive_file") -
           Stat("memory.stat", "total_active_file");
  }

 private:
  bool Write(const std::string& file, const std::string& text) const {
    std::FILE* const out = std::fopen((directory_ + "/" + file).c_str(), "w");
    if (out == nullptr) return false;
    const bool is_written = std::fputs(text.c_str(), out) >= 0;
    return std::fclose(out) == 0 && is_written;
  }
  std::string Read(const std::string& file) const {
    return ReadFile(directory_ + "/" + file, 64 << 10).value_or("");
  }

  const std::string directory_;
  bool is_usable_ = false;
};

// A container with its processes, all of one program.
class Container {
 public:
  Container(size_t number, const std::vector<std::string>& command)
      : name(command[0]),
        uid(Uid(number)),
        id(Id(number)),
        cgroup_("kubepods/pod" + uid + "/" + id) {
    // Like everything else here it gives way to the agent, which would wait for seconds.
    std::string text = "exec nice -n 19 " + PathOf(name);
    for (size_t i = 1; i < command.size(); ++i)
      text += " '" + command[i] + "'";
    text += " < /dev/zero > /dev/null 2>&1";
    for (size_t i = 0; i < kProcessesOfEach; ++i)
      processes_.push_back(
          std::make_unique<Child>("/bin/sh", std::vector<std::string>{"-c", text}, &cgroup_));
  }

  void Kill() const {
    for (const auto& process : processes_)
      ::kill(static_cast<pid_t>(process->pid()), SIGKILL);
  }
  std::string Assignment() const {
    return "pods { uid: '" + uid + "' containers { name: 'main' id: '" + id +
           "' backend: 'main' labels { key: 'service_name' value: '" + name + "' } } } ";
  }
  int64_t CpuNanos() const {
    int64_t sum = 0;
    for (const auto& process : processes_) {
      clockid_t clock{};
      timespec used{};
      if (clock_getcpuclockid(static_cast<pid_t>(process->pid()), &clock) != 0 ||
          clock_gettime(clock, &used) != 0) {
        ADD_FAILURE() << name << " has ended";
      }
      sum += used.tv_sec * kNanosPerSecond + used.tv_nsec;
    }
    return sum;
  }

  const std::string name;
  const std::string uid;
  const std::string id;

 private:
  static std::string Uid(size_t number) {
    char text[64];
    std::snprintf(text, sizeof(text), "0aa5a3c1-0000-4000-9000-%012zx", number);
    return text;
  }
  static std::string Id(size_t number) {
    char text[80];
    std::snprintf(text, sizeof(text), "%064zx", number + 0x1000);
    return text;
  }

  const TestCgroup cgroup_;
  std::vector<std::unique_ptr<Child>> processes_;
};

// All at once, for each of them takes a while to get the CPU that it needs to end.
struct Load {
  Load() = default;
  ~Load() {
    for (const auto& container : containers)
      container->Kill();
  }
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;

  const TestCgroup parent{"kubepods"};  // removed after those in it
  std::vector<std::unique_ptr<Container>> containers;
};

// What the kernel says that the containers have used, as a function of time.
class Accounts {
 public:
  explicit Accounts(const Load& load)
      : load_(load), thread_([this](const std::stop_token& stop) {
          while (!stop.stop_requested()) {
            Read();
            std::this_thread::sleep_for(std::chrono::milliseconds(50));
          }
        }) {}

  // Between two readings it grew steadily.
  double At(int64_t wall_ns) const {
    const std::lock_guard lock(mutex_);
    const auto after = readings_.lower_bound(wall_ns);
    if (after == readings_.begin() || after == readings_.end()) return -1;
    const auto before = std::prev(after);
    const double share = static_cast<double>(wall_ns - before->first) /
                         static_cast<double>(after->first - before->first);
    return before->second + share * (after->second - before->second);
  }

 private:
  void Read() {
    const int64_t begin = SystemClock().WallNanos();
    double sum = 0;
    for (const auto& container : load_.containers)
      sum += static_cast<double>(container->CpuNanos());
    const std::lock_guard lock(mutex_);
    readings_[(begin + SystemClock().WallNanos()) / 2] = sum;
  }

  const Load& load_;
  mutable std::mutex mutex_;
  std::map<int64_t, double> readings_;  // guarded by mutex_
  std::jthread thread_;
};

// Takes profiles once it is there, and adds up those of the containers.
class Backend {
 public:
  struct Window {
    int64_t end_ns = 0;
    int64_t total = 0;
    std::set<std::string> services;
  };

  explicit Backend(std::set<std::string> services)
      : services_(std::move(services)),
        server_(*HttpServer::Create({.listen = "127.0.0.1:0", .max_body_bytes = 16 << 20},
                                    [this](const HttpServerRequest& request) {
                                      if (!is_there) return HttpServerResponse{.status = 503};
                                      Take(request.body);
                                      return HttpServerResponse{};
                                    })) {}

  std::string Url() const { return "http://127.0.0.1:" + std::to_string(server_->port()); }
  std::atomic<bool> is_there = false;

  // Those that all services are in, by their beginning; the first is left out, for some had not
  // begun.
  std::map<int64_t, Window> Whole() const {
    const std::lock_guard lock(mutex_);
    std::map<int64_t, Window> whole;
    for (const auto& [begin, window] : windows_) {
      if (begin != windows_.begin()->first && window.services == services_) whole[begin] = window;
    }
    return whole;
  }
  int64_t others() const {
    const std::lock_guard lock(mutex_);
    return others_;
  }

 private:
  void Take(const std::string& body) {
    pyroscope::PushRequest push;
    ASSERT_TRUE(push.ParseFromString(body));
    std::string service;
    for (const auto& label : push.series(0).labels()) {
      if (label.name() == "service_name") service = label.value();
    }
    const std::lock_guard lock(mutex_);
    if (!services_.contains(service)) {
      ++others_;
      return;
    }
    pprof::Profile profile;
    const Status status = pprof::Decode(push.series(0).samples(0).raw_profile(), {}, &profile);
    ASSERT_TRUE(status.ok()) << status;
    Window& window = windows_[profile.time_ns];
    window.end_ns = profile.time_ns + profile.duration_ns;
    window.services.insert(service);
    for (const int64_t value : profile.values)
      window.total += value;
  }

  const std::set<std::string> services_;
  mutable std::mutex mutex_;
  std::map<int64_t, Window> windows_;  // guarded by mutex_
  int64_t others_ = 0;                 // guarded by mutex_
  std::unique_ptr<HttpServer> server_;
};

// As many stacks as fit in the bytes that the agent takes.
std::string LargeProfile(size_t stacks) {
  pprof::Profile profile;
  profile.sample_types = {{profile.strings.Intern("alloc_space"), profile.strings.Intern("bytes")},
                          {profile.strings.Intern("inuse_space"), profile.strings.Intern("bytes")}};
  for (uint32_t i = 0; i < stacks; ++i) {
    const uint32_t name = profile.strings.Intern("f" + std::to_string(i));
    profile.functions.push_back({.name = name, .system_name = name});
    profile.lines.push_back({.function = i});
    profile.locations.push_back({.address = i + 1, .first_line = i, .line_count = 1});
    profile.sample_locations.push_back(i);
    profile.samples.push_back({.first_location = i, .location_count = 1});
    profile.values.insert(profile.values.end(), {i + 1, i + 1});
  }
  std::string raw;
  pprof::Encode(profile, &raw);
  return *Gzip(raw);
}

// Waits in the spool since an hour: as many as have place.
void FillSpool(const std::string& directory) {
  const auto spool = Spool::Open({.directory = directory, .max_bytes = kSpoolBytes});
  ASSERT_TRUE(spool.ok()) << spool.status();
  const FinishedProfile profile = {.labels = {{"service_name", "from-before"}},
                                   .pprof = LargeProfile(400)};
  std::string body;
  EncodePushRequest(profile, &body);
  const int64_t then = SystemClock().WallNanos() - 3600 * kNanosPerSecond;
  for (bool is_full = false; !is_full;) {
    std::vector<SpooledProfile> batch;
    for (int i = 0; i < 100; ++i) {
      batch.push_back(
          {.collection = {"gone", "main"}, .backend = "main", .time_ns = then + i, .body = body});
    }
    const auto refused = (*spool)->Append(batch);
    ASSERT_TRUE(refused.ok()) << refused.status();
    is_full = !refused->empty();
  }
}

TEST(AgentMemory, TheLimitHoldsWith200ProcessesAndAFullSpoolAndNothingIsMissing) {
  const MemoryCgroup cgroup(kLimitBytes);
  if (!cgroup.is_usable()) FF_SKIP("there is no memory cgroup of v1 to make here");
  // What fits, what does not, and what is too much before it is unpacked.
  const std::string fits = LargeProfile(20'000);
  const std::string large = LargeProfile(200'000);
  const std::string endless(32 << 20, 'x');
  const auto pod =
      *HttpServer::Create({.listen = "127.0.0.1:0"}, [&](const HttpServerRequest& request) {
        return HttpServerResponse{.body = request.path == "/fits"    ? fits
                                          : request.path == "/large" ? large
                                                                     : endless};
      });
  const TempDir directory;
  FillSpool(directory.path());
  Load load;
  std::vector<std::unique_ptr<Container>>& containers = load.containers;
  std::set<std::string> services;
  std::string pods;
  for (const auto& command : Commands()) {
    if (PathOf(command[0]).empty() || containers.size() == kPrograms) continue;
    containers.push_back(std::make_unique<Container>(containers.size(), command));
    services.insert(containers.back()->name);
    pods += containers.back()->Assignment();
  }
  ASSERT_GE(containers.size(), kPrograms - 5);

  for (int i = 0; i < 9; ++i) {
    pods +=
        "pods { uid: 'p" + std::to_string(i) +
        "' ip: '127.0.0.1' pulls { type: PROFILE_TYPE_MEMORY port: " + std::to_string(pod->port()) +
        " path: '" + std::vector{"/fits", "/large", "/endless"}.at(static_cast<size_t>(i) % 3) +
        "' interval_ms: 2000 timeout_ms: 20000 backend: 'main' } } ";
  }

  Backend backend(services);
  const ChannelFiles files;
  const FakeOperator fake(files, "snapshot { version: 1 config { sampling_frequency_hz: " +
                                     std::to_string(kFrequencyHz) +
                                     " "
                                     "backends { name: 'main' endpoint: '" +
                                     backend.Url() + "' } } " + pods + "}");
  const Accounts accounts(load);
  AgentProgram agent(
      fake, files,
      {.directory = directory.path(), .spool_size = "64Mi", .prefix = cgroup.Prefix()});
  agent.AwaitStart();
  const auto killed = [&] { return cgroup.Stat("memory.oom_control", "oom_kill") != 0; };
  int64_t most = 0;
  const auto wait = [&](const auto& condition) {
    return WaitUntil(
               [&] {
                 most = std::max(most, cgroup.Used());
                 if (killed()) return true;
                 return condition();
               },
               kPatience) &&
           !killed();
  };
  const double full = agent.Metric("flamefleet_agent_profiles_waiting");
  EXPECT_GT(full, 100);
  ASSERT_TRUE(wait([&] {
    return agent.Metric("flamefleet_agent_profiles_produced_total") >=
           static_cast<double>(services.size());
  }));
  backend.is_there = true;
  ASSERT_TRUE(wait([&] { return backend.Whole().size() >= kWindows; }));

  EXPECT_TRUE(wait([&] { return agent.BooksBalance(); }));
  double used = 0;
  double profiled = 0;
  for (const auto& [begin, window] : backend.Whole()) {
    if (accounts.At(window.end_ns) < 0) continue;
    used += accounts.At(window.end_ns) - accounts.At(begin);
    profiled += static_cast<double>(window.total);
  }
  std::printf("%zu processes of %zu programs, %.0f profiles waiting: %.1f MiB at most of %" PRId64
              " (%.1f with pages of files), reclaimed %" PRId64
              " times; the profiles have %.2f %% of %.1f s of CPU time; %" PRId64
              " of others delivered\n",
              containers.size() * kProcessesOfEach, containers.size(), full,
              static_cast<double>(most) / (1 << 20), kLimitBytes >> 20,
              static_cast<double>(cgroup.Number("memory.max_usage_in_bytes")) / (1 << 20),
              cgroup.Number("memory.failcnt"), 100 * profiled / used, used / 1e9, backend.others());
  // Two points, and what chance may do to that many samples.
  const double samples = profiled * kFrequencyHz / static_cast<double>(kNanosPerSecond);
  EXPECT_NEAR(profiled / used, 1, 0.02 + 5.5 / std::sqrt(samples));
}

}  // namespace
}  // namespace flamefleet::agent
