// SPDX-License-Identifier: Apache-2.0
// What the pods of a large cluster cost the operator: memory after the first list and at most
// during the next, then CPU while pods change, and the lag from an event to the assignment of its
// node. Of the operator run the cache, the triggers, and the controllers of nodes and pools; what
// they write goes to a server that takes everything. `podcache informer` prints the same of
// controller-runtime's cache alone; tests/bench/pod_cache runs both against `podcache serve`.
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "base/http/client.h"
#include "base/http/server.h"
#include "base/mutex.h"
#include "base/thread.h"
#include "operator/control/control_server.h"
#include "operator/controllers.h"
#include "operator/kube/reflector.h"
#include "operator/security/store_keys.h"
#include "operator/triggers.h"

namespace flamefleet {
namespace {

using nlohmann::json;
using std::chrono::steady_clock;

// Until what is left over from a list is gone.
constexpr std::chrono::seconds kSettle{10};
constexpr std::chrono::milliseconds kPoll{100};
constexpr const char* kSent = "resource.opentelemetry.io/service.name";

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

// NodeController, and how long after it was sent each change was in the assignment of its node.
class TimedNodes final : public Controller {
 public:
  explicit TimedNodes(const ControllerContext& context) : context_(context), nodes_(context) {}
  std::string name() const override { return nodes_.name(); }
  Result<Outcome> Reconcile(const std::string& node, const std::stop_token& stop) override {
    const auto pods = context_.cache.pods.ListNode(node);
    auto outcome = nodes_.Reconcile(node, stop);
    const int64_t now_ns = context_.clock.WallNanos();
    MutexLock lock(&mutex_);
    for (const PodStore::Pointer& pod : pods) {
      const auto sent = pod->annotations.find(kSent);
      if (sent == pod->annotations.end() || sent->second == seen_[pod->meta.uid]) continue;
      seen_[pod->meta.uid] = sent->second;
      lags_ms_.push_back(static_cast<double>(now_ns - std::stoll(sent->second)) / 1e6);
    }
    return outcome;
  }
  std::vector<double> Lags() {
    MutexLock lock(&mutex_);
    return lags_ms_;
  }

 private:
  const ControllerContext& context_;
  NodeController nodes_;
  Mutex mutex_;
  std::map<std::string, std::string> seen_ FF_GUARDED_BY(mutex_);  // times by pod
  std::vector<double> lags_ms_ FF_GUARDED_BY(mutex_);
};

std::unique_ptr<HttpServer> TakeEverything() {
  HttpServerOptions options;
  options.listen = "127.0.0.1:0";
  auto server = HttpServer::Create(options, [](const HttpServerRequest& request) {
    return HttpServerResponse{200, "application/json", request.body, {}};
  });
  FF_CHECK(server.ok());
  return *std::move(server);
}

std::unique_ptr<RestClient> ClientOf(const std::string& url, Metrics& metrics) {
  ClientConfig config;
  config.base_url = url;
  auto client = RestClient::Create(config, SystemClock(), metrics);
  FF_CHECK(client.ok());
  return *std::move(client);
}

class Bench {
 public:
  explicit Bench(const std::string& url)
      : client_(ClientOf(url, metrics_)),
        writes_(ClientOf("http://127.0.0.1:" + std::to_string(server_->port()), metrics_)) {
    auto control = HttpClient::Create({.base_url = url});
    FF_CHECK(control.ok());
    control_ = *std::move(control);
    ReflectorOptions options;
    options.resource = kPods;
    reflector_ =
        std::make_unique<Reflector>(*client_, options, cache_.pods, SystemClock(), metrics_);
    FF_CHECK(
        cache_.pools.Upsert({{"metadata", {{"name", "default"}}}, {"spec", json::object()}}).ok());
    FF_CHECK(
        cache_.backends
            .Upsert({{"metadata", {{"name", "main"}}},
                     {"spec",
                      {{"default", true}, {"type", "Pyroscope"}, {"endpoint", "http://p:4040"}}}})
            .ok());
    worker_.Register(pools_);
    worker_.Register(backends_);
    worker_.Register(nodes_);
  }

  void Run(int changes, int rate) {
    const auto started = steady_clock::now();
    const std::jthread thread =
        StartThread("watch-pods", [this](const std::stop_token& stop) { reflector_->Run(stop); });
    const std::jthread working =
        StartThread("worker", [this](const std::stop_token& stop) { worker_.Run(stop); });
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
    while (nodes_.Lags().size() < static_cast<size_t>(changes) && steady_clock::now() < deadline)
      std::this_thread::sleep_for(kPoll);
    const double used = CpuSeconds() - cpu;
    const double elapsed = std::chrono::duration<double>(steady_clock::now() - started).count();
    std::vector<double> lags = nodes_.Lags();
    std::ranges::sort(lags);
    std::printf("changes %zu\ncpu_percent_of_core %.2f\nlag_p50_ms %.3f\nlag_p99_ms %.3f\n",
                lags.size(), 100 * used / elapsed, Percentile(lags, 50), Percentile(lags, 99));
    for (const char* controller : {"node", "pool", "backend"}) {
      const double times = ReconcileTime("count", controller);
      std::printf("%s_reconciles %.0f\n%s_reconcile_ms %.1f\n", controller, times, controller,
                  times == 0 ? 0 : 1000 * ReconcileTime("sum", controller) / times);
    }
  }

  // Of all reconciles so far.
  double ReconcileTime(const std::string& what, const std::string& controller) {
    const std::string series = "\ncontroller_runtime_reconcile_time_seconds_" + what +
                               "{controller=\"" + controller + "\"} ";
    const std::string text = metrics_.RenderText();
    const size_t at = text.find(series);
    return at == std::string::npos ? 0 : std::stod(text.substr(at + series.size()));
  }

  std::string Control(const std::string& method, const std::string& target) {
    HttpRequest request{.method = method, .target = target};
    request.idle_timeout = request.total_timeout = std::chrono::hours(1);
    const Result<HttpResponse> answer = control_->Send(request);
    FF_CHECK(answer.ok());
    return answer->body;
  }

  Metrics metrics_;
  ClusterCache cache_{"flamefleet-system", metrics_};
  WorkQueue queue_{SystemClock(), metrics_, "bench"};
  Triggers triggers_{cache_, queue_, "flamefleet-system"};
  std::unique_ptr<HttpServer> server_ = TakeEverything();
  std::unique_ptr<RestClient> client_;
  std::unique_ptr<RestClient> writes_;
  std::unique_ptr<HttpClient> control_;
  std::unique_ptr<Reflector> reflector_;
  control::ControlServer agents_{
      SystemClock(), metrics_,
      [](const std::string&, const std::stop_token&) { return security::Admission(); },
      [](const std::string&) {}};
  OwnWrites own_writes_{[](const Resource&) { return std::string(); }};
  Applier applier_{*writes_, own_writes_, metrics_};
  StatusWriter status_{*writes_, own_writes_, SystemClock(), metrics_};
  EventRecorder events_{*writes_, SystemClock(), metrics_, "bench"};
  std::map<std::string, std::shared_ptr<const plan::NodeAssignment>> assignments_;
  PodSums pod_sums_;
  security::StoreKeys store_keys_{*writes_, SystemClock(), "flamefleet-system"};
  const ControllerContext context_{
      cache_,  agents_, assignments_, pod_sums_,     applier_,
      status_, events_, store_keys_,  SystemClock(), {"flamefleet-system", "i", ""}};
  PoolController pools_{context_};
  BackendController backends_{context_};
  TimedNodes nodes_{context_};
  Worker worker_{queue_, own_writes_, SystemClock(), metrics_};
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
