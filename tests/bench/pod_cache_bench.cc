// SPDX-License-Identifier: Apache-2.0
// What the pods of a large cluster cost the operator's cache: memory after the first list and at
// most during the next, then CPU and lag while pods change. `podcache informer` prints the same of
// controller-runtime's cache; tests/bench/pod_cache runs both against `podcache serve`.
#include <sys/resource.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "base/http/client.h"
#include "base/mutex.h"
#include "base/thread.h"
#include "operator/cache/pod_store.h"
#include "operator/kube/reflector.h"
#include "operator/runtime/work_queue.h"

namespace flamefleet {
namespace {

using std::chrono::steady_clock;

// Until what is left over from a list is gone.
constexpr std::chrono::seconds kSettle{10};
constexpr std::chrono::milliseconds kPoll{100};
constexpr const char* kSent = "pyroscope.io/bench-sent-ns";

// A line of /proc/self/status.
double Mib(const std::string& key) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(key + ":")) return std::stod(line.substr(key.size() + 1)) / 1024;
  }
  return 0;
}

double CpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

double Percentile(const std::vector<double>& sorted, size_t percent) {
  return sorted.empty() ? 0 : sorted[(sorted.size() - 1) * percent / 100];
}

// The pods as the operator keeps them, and the time that each change took to become a key.
class Bench {
 public:
  explicit Bench(const std::string& url) {
    ClientConfig config;
    config.base_url = url;
    auto client = RestClient::Create(config, SystemClock(), metrics_);
    auto control = HttpClient::Create({.base_url = url});
    FF_CHECK(client.ok() && control.ok());
    client_ = *std::move(client);
    control_ = *std::move(control);
    pods_.Listen([this](const api::Pod* before, const api::Pod* after) { OnPod(before, after); });
    ReflectorOptions options;
    options.resource = kPods;
    reflector_ = std::make_unique<Reflector>(*client_, options, pods_, SystemClock(), metrics_);
  }

  void Run(int changes, int rate) {
    const auto started = steady_clock::now();
    const std::jthread thread =
        StartThread("watch-pods", [this](const std::stop_token& stop) { reflector_->Run(stop); });
    while (!reflector_->synced())
      std::this_thread::sleep_for(kPoll);
    std::printf("sync_s %.1f\n",
                std::chrono::duration<double>(steady_clock::now() - started).count());
    std::this_thread::sleep_for(kSettle);
    std::printf("rss_synced_mib %.0f\nrss_peak_sync_mib %.0f\n", Mib("VmRSS"), Mib("VmHWM"));

    std::ofstream("/proc/self/clear_refs") << "5";  // VmHWM begins anew
    const std::string lists = Control("GET", "/lists");
    Control("POST", "/gone");
    while (Control("GET", "/lists") == lists)
      std::this_thread::sleep_for(kPoll);
    std::this_thread::sleep_for(kSettle);
    std::printf("rss_peak_relist_mib %.0f\nrss_after_relist_mib %.0f\n", Mib("VmHWM"),
                Mib("VmRSS"));
    if (changes > 0) Change(changes, rate);
  }

 private:
  void Change(int changes, int rate) {
    const double cpu = CpuSeconds();
    const auto started = steady_clock::now();
    Control("POST", "/change?count=" + std::to_string(changes) + "&rate=" + std::to_string(rate));
    const auto deadline = steady_clock::now() + std::chrono::minutes(1);
    while (Lags().size() < static_cast<size_t>(changes) && steady_clock::now() < deadline)
      std::this_thread::sleep_for(kPoll);
    const double used = CpuSeconds() - cpu;
    const double elapsed = std::chrono::duration<double>(steady_clock::now() - started).count();
    std::vector<double> lags = Lags();
    std::ranges::sort(lags);
    std::printf("changes %zu\ncpu_percent_of_core %.2f\nlag_p50_ms %.3f\nlag_p99_ms %.3f\n",
                lags.size(), 100 * used / elapsed, Percentile(lags, 50), Percentile(lags, 99));
  }

  void OnPod(const api::Pod* before, const api::Pod* after) {
    if (after == nullptr) return;
    queue_.Add("node/" + after->node, std::chrono::nanoseconds(0));
    const auto sent = after->annotations.find(kSent);
    if (before == nullptr || sent == after->annotations.end()) return;
    int64_t sent_ns = 0;
    std::from_chars(sent->second.data(), sent->second.data() + sent->second.size(), sent_ns);
    MutexLock lock(&mutex_);
    lags_ms_.push_back(static_cast<double>(SystemClock().WallNanos() - sent_ns) / 1e6);
  }

  std::vector<double> Lags() {
    MutexLock lock(&mutex_);
    return lags_ms_;
  }

  std::string Control(const std::string& method, const std::string& target) {
    HttpRequest request{.method = method, .target = target};
    request.idle_timeout = request.total_timeout = std::chrono::hours(1);
    const Result<HttpResponse> answer = control_->Send(request);
    FF_CHECK(answer.ok());
    return answer->body;
  }

  Metrics metrics_;
  Mutex store_mutex_;
  PodStore pods_{store_mutex_, metrics_.Gauge("pods", "Pods.")};
  WorkQueue queue_{SystemClock(), metrics_, "bench"};
  std::unique_ptr<RestClient> client_;
  std::unique_ptr<HttpClient> control_;
  std::unique_ptr<Reflector> reflector_;
  Mutex mutex_;
  std::vector<double> lags_ms_ FF_GUARDED_BY(mutex_);
};

int Main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "Usage: pod_cache_bench URL CHANGES RATE\n");
    return 2;
  }
  Bench(argv[1]).Run(std::stoi(argv[2]), std::stoi(argv[3]));
  return 0;
}

}  // namespace
}  // namespace flamefleet

int main(int argc, char** argv) {
  return flamefleet::Main(argc, argv);
}
