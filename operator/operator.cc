// SPDX-License-Identifier: Apache-2.0
#include "operator/operator.h"

#include <atomic>

#include "base/http/server.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/thread.h"
#include "operator/control/control_server.h"
#include "operator/controllers.h"
#include "operator/own_image.h"
#include "operator/triggers.h"

namespace flamefleet {
namespace {

// How often the start looks whether the caches are filled.
constexpr std::chrono::milliseconds kSyncInterval{50};

}  // namespace

class Operator::Impl {
 public:
  Impl(OperatorOptions options, const Clock& clock) : options_(std::move(options)), clock_(clock) {}

  Status Start();
  Status Run(const std::stop_token& stop);

 private:
  HttpServerResponse Answer(const HttpServerRequest& request) const;
  Result<plan::ObjectSettings> FindSettings(const std::stop_token& stop);
  // From a filled cache until stop is requested.
  Status Serve(const plan::ObjectSettings& settings, const std::stop_token& stop);

  const OperatorOptions options_;
  const Clock& clock_;
  std::atomic<bool> ready_ = false;
  Metrics metrics_;
  std::unique_ptr<RestClient> client_;
  ClusterCache cache_{options_.ns, metrics_};
  WorkQueue queue_{clock_, metrics_, "operator"};
  Triggers triggers_{cache_, queue_, options_.ns};
  std::unique_ptr<HttpServer> http_;  // last: it reads the above
};

Status Operator::Impl::Start() {
  FF_ASSIGN_OR_RETURN(client_, RestClient::Create(options_.client, clock_, metrics_));
  HttpServerOptions http;
  http.listen = options_.listen;
  FF_ASSIGN_OR_RETURN(http_, HttpServer::Create(http, [this](const HttpServerRequest& request) {
                        return Answer(request);
                      }));
  return OkStatus();
}

HttpServerResponse Operator::Impl::Answer(const HttpServerRequest& request) const {
  if (request.path == "/healthz") return {200, "text/plain", "ok\n", {}};
  if (request.path == "/readyz") {
    if (ready_) return {200, "text/plain", "ok\n", {}};
    const char* waiting = cache_.synced() ? "the agents' port is not open yet\n"
                                          : "the objects of the cluster are not read yet\n";
    return {503, "text/plain", waiting, {}};
  }
  if (request.path == "/metrics") {
    return {200, "text/plain; version=0.0.4", metrics_.RenderText(), {}};
  }
  return {404, "text/plain", "there is /healthz, /readyz and /metrics\n", {}};
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
  cache_.Start(*client_, clock_);
  while (!cache_.synced()) {
    if (WaitForStop(stop, kSyncInterval)) return OkStatus();
  }
  Log(LogLevel::kInfo, "cache filled", {{"namespace", options_.ns}, {"image", settings.image}});
  const Status served = Serve(settings, stop);
  cache_.Stop();
  return served;
}

Status Operator::Impl::Serve(const plan::ObjectSettings& settings, const std::stop_token& stop) {
  control::ControlServer agents(clock_, metrics_,
                                [this](const std::string& node) { triggers_.OnReport(node); });
  Applier applier(*client_, metrics_);
  StatusWriter status(*client_, clock_, metrics_);
  std::map<std::string, plan::NodeAssignment> assignments;
  const ControllerContext context{cache_, agents, assignments, applier,
                                  status, clock_, settings,    clock_.MonotonicNanos()};
  PoolController pools(context);
  BackendController backends(context);
  TargetController targets(context);
  NodeController nodes(context);

  // Everything that agents may ask for is known before the first of them can ask.
  for (const auto& pool : cache_.pools.List())
    pools.Configure(*pool);
  for (const std::string& node : cache_.pods.Nodes())
    nodes.Assign(node);
  FF_RETURN_IF_ERROR(agents.Listen(options_.agents_listen));

  Worker worker(queue_, clock_, metrics_);
  for (Controller* controller :
       std::initializer_list<Controller*>{&pools, &backends, &targets, &nodes}) {
    worker.Register(*controller);
  }
  triggers_.All();
  const std::jthread thread = StartThread(
      "worker", [&worker](const std::stop_token& stop_worker) { worker.Run(stop_worker); });
  ready_ = true;
  while (!WaitForStop(stop, std::chrono::hours(1))) {
  }
  ready_ = false;
  return OkStatus();
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
