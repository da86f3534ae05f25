// SPDX-License-Identifier: Apache-2.0
#include "operator/operator.h"

#include <atomic>

#include "base/http/server.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/mutex.h"
#include "base/thread.h"
#include "operator/channel_keys.h"
#include "operator/control/control_server.h"
#include "operator/controllers.h"
#include "operator/debug_state.h"
#include "operator/fleet_publisher.h"
#include "operator/fleet_report.h"
#include "operator/own_image.h"
#include "operator/plan/names.h"
#include "operator/process_metrics.h"
#include "operator/security/store_keys.h"
#include "operator/security/token_reviewer.h"
#include "operator/triggers.h"

namespace flamefleet {
namespace {

// How often the start looks whether the caches are filled.
constexpr std::chrono::milliseconds kSyncInterval{50};
// Of a check of a token: an agent waits for it, and tries again.
constexpr std::chrono::seconds kReviewTimeout{5};
// How long the start waits for the Secrets of backends. After it agents are told to keep the
// profiles of those whose Secret is not read.
constexpr std::chrono::seconds kSecretsTimeout{10};

}  // namespace

class Operator::Impl {
 public:
  Impl(OperatorOptions options, const Clock& clock) : options_(std::move(options)), clock_(clock) {}

  Status Start();
  Status Run(const std::stop_token& stop);

 private:
  HttpServerResponse Answer(const HttpServerRequest& request);
  HttpServerResponse Readiness() const;
  HttpServerResponse AnswerDebug(const HttpServerRequest& request) const;
  Status ServeHttp();
  std::vector<plan::Backend> ManagedStores() const;
  void SetServing(const control::ControlServer* agents);
  Result<plan::ObjectSettings> FindSettings(const std::stop_token& stop);
  // A term as the leader.
  Status Serve(const plan::ObjectSettings& settings, const std::stop_token& term_over);

  const OperatorOptions options_;
  const Clock& clock_;
  std::atomic<bool> serving_ = false;
  Metrics metrics_;
  ProcessMetrics process_metrics_{metrics_};
  std::unique_ptr<RestClient> lease_client_;
  std::unique_ptr<LeaderElector> elector_;
  std::unique_ptr<RestClient> client_;
  ClusterCache cache_{options_.ns, metrics_, options_.watched};
  WorkQueue queue_{clock_, metrics_, "operator"};
  Triggers triggers_{cache_, queue_, options_.ns};
  mutable Mutex term_mutex_;
  // While this process leads; else nullptr.
  const control::ControlServer* agents_ FF_GUARDED_BY(term_mutex_) = nullptr;
  // Last: they read the above.
  std::unique_ptr<HttpServer> http_;
  std::unique_ptr<HttpServer> debug_http_;
};

Status Operator::Impl::Start() {
  LeaseOptions lease = options_.lease;
  lease.ns = options_.ns;
  FF_RETURN_IF_ERROR(CheckLeaseOptions(lease));
  RestClientOptions for_lease;
  for_lease.timeout =
      std::chrono::duration_cast<std::chrono::milliseconds>(lease.renew_deadline / 2);
  for_lease.max_tries = 1;
  FF_ASSIGN_OR_RETURN(lease_client_,
                      RestClient::Create(options_.client, clock_, metrics_, for_lease));
  elector_ = std::make_unique<LeaderElector>(*lease_client_, lease, clock_, metrics_);
  RestClientOptions for_all;
  for_all.may_write = [this] { return elector_->MayWrite(); };
  FF_ASSIGN_OR_RETURN(client_, RestClient::Create(options_.client, clock_, metrics_, for_all));
  return ServeHttp();
}

Status Operator::Impl::ServeHttp() {
  HttpServerOptions http;
  http.listen = options_.listen;
  FF_ASSIGN_OR_RETURN(http_, HttpServer::Create(http, [this](const HttpServerRequest& request) {
                        return Answer(request);
                      }));
  if (options_.debug_listen.empty()) return OkStatus();
  FF_RETURN_IF_ERROR(CheckLoopback(options_.debug_listen));
  HttpServerOptions debug;
  debug.listen = options_.debug_listen;
  debug.max_connections = 4;
  debug.handler_threads = 1;
  FF_ASSIGN_OR_RETURN(debug_http_,
                      HttpServer::Create(debug, [this](const HttpServerRequest& request) {
                        return AnswerDebug(request);
                      }));
  return OkStatus();
}

HttpServerResponse Operator::Impl::AnswerDebug(const HttpServerRequest& request) const {
  if (request.path != "/debug/state") return {404, "text/plain", "there is /debug/state\n", {}};
  MutexLock lock(&term_mutex_);
  return {200, "application/json", DebugState(cache_, queue_, *elector_, agents_), {}};
}

HttpServerResponse Operator::Impl::Answer(const HttpServerRequest& request) {
  if (request.path == "/healthz") return {200, "text/plain", "ok\n", {}};
  if (request.path == "/readyz") return Readiness();
  if (request.path == "/metrics") {
    queue_.UpdateMetrics();
    process_metrics_.Update();
    return {200, "text/plain; version=0.0.4", metrics_.RenderText(), {}};
  }
  return {404, "text/plain", "there is /healthz, /readyz and /metrics\n", {}};
}

HttpServerResponse Operator::Impl::Readiness() const {
  const auto answer = [](int status, const std::string& text) {
    return HttpServerResponse{status, "text/plain", text + "\n", {}};
  };
  if (!cache_.synced()) return answer(503, "the objects of the cluster are not read yet");
  if (serving_) return answer(200, "ok: leading");
  if (elector_->leading()) return answer(503, "the agents' port is not open yet");
  const std::string holder = elector_->holder();
  if (holder.empty()) return answer(503, "nobody holds the lease yet");
  return answer(200, "ok: standing by for " + holder);
}

void Operator::Impl::SetServing(const control::ControlServer* agents) {
  MutexLock lock(&term_mutex_);
  agents_ = agents;
  serving_ = agents != nullptr;
}

Result<plan::ObjectSettings> Operator::Impl::FindSettings(const std::stop_token& stop) {
  if (!options_.image.empty()) return plan::ObjectSettings{options_.ns, options_.image, ""};
  if (options_.pod.empty()) {
    return InvalidArgumentError("find the image of the agents: neither --image nor --pod is given");
  }
  FF_ASSIGN_OR_RETURN(OwnImage own, ReadOwnImage(*client_, options_.ns, options_.pod, stop));
  return plan::ObjectSettings{options_.ns, std::move(own.image), std::move(own.pull_policy)};
}

Status Operator::Impl::Run(const std::stop_token& stop) {
  FF_ASSIGN_OR_RETURN(const plan::ObjectSettings settings, FindSettings(stop));
  queue_.Close();
  cache_.Start(*client_, clock_);
  while (!cache_.synced()) {
    if (WaitForStop(stop, kSyncInterval)) return OkStatus();
  }
  const auto patience = std::chrono::steady_clock::now() + kSecretsTimeout;
  while (!cache_.secrets.synced() && std::chrono::steady_clock::now() < patience) {
    if (WaitForStop(stop, kSyncInterval)) return OkStatus();
  }
  Log(LogLevel::kInfo, "cache filled", {{"namespace", options_.ns}, {"image", settings.image}});
  const Status ended = elector_->Run(stop, [&](const std::stop_token& term_over) {
    const Status served = Serve(settings, term_over);
    queue_.Close();
    return served;
  });
  cache_.Stop();
  return ended;
}

Status Operator::Impl::Serve(const plan::ObjectSettings& settings,
                             const std::stop_token& term_over) {
  RestClientOptions for_reviews;
  for_reviews.timeout = kReviewTimeout;
  for_reviews.max_tries = 1;
  FF_ASSIGN_OR_RETURN(const std::unique_ptr<RestClient> reviews,
                      RestClient::Create(options_.client, clock_, metrics_, for_reviews));
  security::TokenReviewer reviewer(
      "system:serviceaccount:" + options_.ns + ":" + plan::kAgentServiceAccount, clock_, metrics_,
      [&](const std::string& body, const std::stop_token& done) {
        return reviews->CreateObject(kTokenReviews, "", "", body, done);
      },
      [this](const std::string& name, const std::string& uid) {
        const auto pod = cache_.pods.Get({options_.ns, name});
        return pod != nullptr && pod->meta.uid == uid ? pod->node : std::string();
      });
  control::ControlServer agents(
      clock_, metrics_,
      [&](const std::string& token, const std::stop_token& done) {
        return reviewer.Check(token, done);
      },
      [this, &agents](const std::string& node) {
        triggers_.OnReport(node, agents.ReportOf(node));
      });
  ChannelKeys keys({*client_, clock_, options_.ns, plan::OperatorNames(options_.ns)}, agents,
                   metrics_);
  OwnWrites own_writes([this](const Resource& kind) { return cache_.SeenVersion(kind); });
  Applier applier(*client_, own_writes, metrics_);
  StatusWriter status(*client_, own_writes, clock_, metrics_);
  EventRecorder events(*client_, clock_, metrics_, options_.lease.identity);
  security::StoreKeys store_keys(*client_, clock_, options_.ns);
  std::map<std::string, std::shared_ptr<const plan::NodeAssignment>> assignments;
  PodSums pod_sums;
  const ControllerContext context{cache_,
                                  agents,
                                  assignments,
                                  pod_sums,
                                  applier,
                                  status,
                                  events,
                                  store_keys,
                                  clock_,
                                  settings,
                                  clock_.MonotonicNanos()};
  PoolController pools(context);
  BackendController backends(context);
  TargetController targets(context);
  NodeController nodes(context);

  // Everything that agents may ask for is known before the first of them can ask.
  for (const auto& pool : cache_.pools.List())
    pools.Configure(*pool);
  for (const std::string& node : cache_.pods.Nodes())
    nodes.Assign(node);
  if (const Status begun = keys.Begin(term_over); !begun.ok()) return OkStatus();  // stopped
  FF_RETURN_IF_ERROR(agents.Listen(options_.agents_listen));

  Worker worker(queue_, own_writes, clock_, metrics_);
  for (Controller* controller :
       std::initializer_list<Controller*>{&pools, &backends, &targets, &nodes}) {
    worker.Register(*controller);
  }
  queue_.Open();
  triggers_.All();
  const std::jthread thread = StartThread(
      "worker", [&worker](const std::stop_token& stop_worker) { worker.Run(stop_worker); });
  FleetPublisher publisher([this] { return ManagedStores(); },
                           [this] { return FleetReport(cache_); });
  const std::jthread publishing =
      StartThread("fleet", [&publisher](const std::stop_token& done) { publisher.Run(done); });
  SetServing(&agents);
  while (!WaitForStop(term_over, std::chrono::hours(1))) {
  }
  SetServing(nullptr);
  return OkStatus();
}

std::vector<plan::Backend> Operator::Impl::ManagedStores() const {
  std::vector<std::shared_ptr<const api::ProfilingBackend>> objects = cache_.backends.List();
  std::erase_if(objects, [](const auto& backend) { return !backend->spec.managed_store; });
  std::vector<const api::ProfilingBackend*> managed;
  managed.reserve(objects.size());
  for (const auto& backend : objects)
    managed.push_back(backend.get());
  return plan::BackendTable(managed, options_.ns, cache_.secrets.Known()).All();
}

Result<std::unique_ptr<Operator>> Operator::Create(const OperatorOptions& options,
                                                   const Clock& clock) {
  auto impl = std::make_unique<Impl>(options, clock);
  FF_RETURN_IF_ERROR(impl->Start());
  return std::unique_ptr<Operator>(new Operator(std::move(impl)));
}

Operator::Operator(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Operator::~Operator() = default;

Status Operator::Run(const std::stop_token& stop) {
  return impl_->Run(stop);
}

}  // namespace flamefleet
