// SPDX-License-Identifier: Apache-2.0
#include "store/http/handler.h"

#include <array>
#include <map>

#include "base/gzip.h"
#include "base/log.h"
#include "base/mutex.h"
#include "store/http/fleet_handler.h"
#include "store/http/otlp.h"
#include "store/ui/assets.h"

namespace flamefleet::store {
namespace {

constexpr char kPushPath[] = "/push.v1.PusherService/Push";
constexpr char kPush[] = "push";
constexpr char kIngest[] = "ingest";
constexpr char kOtlp[] = "otlp";
constexpr char kQuerier[] = "querier";
constexpr char kFleet[] = "fleet";
constexpr char kOther[] = "other";
// For requests by the API server's proxy, which keeps the other one to itself.
constexpr char kProxiedAuthorization[] = "x-flamefleet-authorization";
constexpr size_t kMinCompressedBytes = 1 << 10;  // a smaller answer fits one packet as it is

constexpr char kRoutes[] = R"(flamefleet-store keeps profiles and answers queries about them.
A browser that opens this address gets the web UI.

  POST /push.v1.PusherService/Push   store profiles (Pyroscope push API)
  POST /ingest                       the same (older API): pprof, multipart, folded, lines
  POST /v1development/profiles       the same (OTLP in protobuf, development version 1)
  POST /querier.v1.QuerierService/... queries as Grafana's Pyroscope data source sends them
  GET  /pprof                        merge of the selected profiles, for: go tool pprof URL
  GET  /top                          hottest functions; limit=30, format=json
  GET  /flamegraph                   call tree as JSON; max-nodes=16384; to compare with another
                                     selection: baseline-query, baseline-from, baseline-until
  GET  /timeline                     totals over time; step=SECONDS, by=LABEL, limit=50
  GET  /types                        profile types
  GET  /series                       label sets
  GET  /labels                       label names
  GET  /labels/NAME/values           values of a label
  GET  /fleet                        pools, backends, targets and failing pods, as the operator
                                     said last; the operator's POST
  GET  /healthz  /readyz  /metrics

Queries take
  query=process_cpu:cpu{service_name="shop",pod=~"web-.*"}
                       type (default process_cpu), sample type (default: all in /pprof, else the
                       profile's main one), label matchers = != =~ !~
  levels=mean          of values that say how much there is (inuse_space, goroutine): the mean over
                       the time that was profiled; sum: what go tool pprof makes of the profiles
  from=now-1h until=now
                       or RFC 3339, or Unix seconds or milliseconds
)";

HttpServerResponse Text(int status, const std::string& text) {
  return {.status = status, .body = text + "\n"};
}

HttpServerResponse OnlyGet() {
  return {.status = 405, .body = "use GET\n", .headers = {{"Allow", "GET"}}};
}

bool IsPush(const std::string& route) {
  return route == kPush || route == kIngest || route == kOtlp;
}

// Requests by route and outcome.
class RequestCounters {
 public:
  explicit RequestCounters(Metrics* metrics) {
    std::vector<std::string> routes = QueryHandler::Routes();
    routes.insert(routes.end(), {kPush, kIngest, kOtlp, kQuerier, kFleet, kOther});
    for (const std::string& route : routes) {
      for (const char* code : kClasses) {
        counters_.emplace(std::pair(route, code),
                          metrics->Counter("flamefleet_store_requests_total",
                                           "HTTP requests by route and class of the status code.",
                                           {{"route", route}, {"code", code}}));
      }
    }
  }

  void Count(const std::string& route, int status) {
    const size_t index = status < 400 ? 0 : status < 500 ? 1 : 2;
    counters_.at({route, kClasses[index]}).Increment();
  }

 private:
  static constexpr std::array<const char*, 3> kClasses = {"2xx", "4xx", "5xx"};
  std::map<std::pair<std::string, std::string>, CounterMetric> counters_;
};

void Compress(const HttpServerRequest& request, HttpServerResponse* response) {
  const bool compressible = response->content_type.starts_with("application/json") ||
                            response->content_type == "application/proto";
  if (!compressible || response->body.size() < kMinCompressedBytes ||
      request.Header("accept-encoding").find("gzip") == std::string::npos) {
    return;
  }
  Result<std::string> body = Gzip(response->body);
  if (!body.ok()) return;
  response->body = *std::move(body);
  response->headers["Content-Encoding"] = "gzip";
  response->headers["Vary"] = "Accept-Encoding";
}

}  // namespace

class StoreHandler::Impl {
 public:
  Impl(Database* database, const Clock* clock, Metrics* metrics, Options options)
      : access_(std::make_shared<const Access>(std::move(options.access))),
        tenants_(options.tenants),
        metrics_(metrics),
        fleet_(clock),
        counters_(metrics) {
    if (tenants_ != nullptr) return;
    single_ = std::make_unique<ProfileHandlers>(database, clock, metrics, options.query_memory);
  }

  HttpServerResponse Handle(const HttpServerRequest& request, bool is_reader) {
    const std::string route = RouteOf(request.path);
    std::optional<HttpServerResponse> refused =
        is_reader ? RefuseWrite(route, request) : CheckAccess(route, request);
    HttpServerResponse response = refused ? *std::move(refused) : Dispatch(route, request);
    counters_.Count(route, response.status);
    Compress(request, &response);
    return response;
  }

  void SetAccess(Access access) {
    auto shared = std::make_shared<const Access>(std::move(access));
    const MutexLock lock(&mutex_);
    access_ = std::move(shared);
  }

 private:
  std::shared_ptr<const Access> CurrentAccess() const {
    const MutexLock lock(&mutex_);
    return access_;
  }

  static std::string RouteOf(const std::string& path) {
    if (path == kPushPath) return kPush;
    if (path == "/ingest" || path == "/pyroscope/ingest") return kIngest;
    if (path == kOtlpPath) return kOtlp;
    if (QuerierHandler::IsMine(path)) return kQuerier;
    if (path == "/fleet") return kFleet;
    const std::string query = QueryHandler::RouteOf(path);
    return query.empty() ? kOther : query;
  }

  static bool Writes(const std::string& route, const HttpServerRequest& request) {
    return IsPush(route) || (route == kFleet && request.method != "GET");
  }

  static std::optional<HttpServerResponse> RefuseWrite(const std::string& route,
                                                       const HttpServerRequest& request) {
    if (!Writes(route, request)) return std::nullopt;
    return Text(403, "this address is for reading: --listen takes profiles");
  }

  // Probes are for everybody.
  std::optional<HttpServerResponse> CheckAccess(const std::string& route,
                                                const HttpServerRequest& request) const {
    if (request.path == "/healthz" || request.path == "/readyz") return std::nullopt;
    const bool writes = Writes(route, request);
    const std::shared_ptr<const Access> access = CurrentAccess();
    std::string authorization = request.Header("authorization");
    if (authorization.empty()) authorization = request.Header(kProxiedAuthorization);
    const std::string tenant = tenants_ == nullptr ? "" : Tenants::NameOf(request);
    const bool for_all = route == kOther && request.path != "/metrics";  // the UI itself
    if (access->Allows(authorization, writes ? Access::Role::kWrite : Access::Role::kRead,
                       for_all ? nullptr : &tenant)) {
      return std::nullopt;
    }
    if (!access->Knows(authorization)) {
      HttpServerResponse response = Text(401, "this store wants a credential that it knows");
      response.headers["WWW-Authenticate"] = "Basic realm=\"flamefleet-store\"";
      return response;
    }
    return Text(403, std::string("this credential may not ") + (writes ? "write" : "read") +
                         (tenant.empty() ? "" : " profiles of tenant " + tenant));
  }

  HttpServerResponse Dispatch(const std::string& route, const HttpServerRequest& request) {
    if (route == kFleet) return fleet_.Handle(request);
    if (route != kOther) return AskProfiles(route, request);
    if (request.method != "GET") return OnlyGet();
    if (request.path == "/healthz" || request.path == "/readyz") return Text(200, "ok");
    if (request.path == "/metrics") {
      return {.content_type = "text/plain; version=0.0.4", .body = metrics_->RenderText()};
    }
    const bool browser = request.Header("accept").find("text/html") != std::string::npos;
    if (request.path == "/" && !browser) {
      return {.body = kRoutes, .headers = {{"Vary", "Accept"}}};
    }
    if (std::optional<HttpServerResponse> asset = ui::FindAsset(request)) return *std::move(asset);
    return Text(404, "nothing is at this path; GET / lists what there is");
  }

  HttpServerResponse AskProfiles(const std::string& route, const HttpServerRequest& request) {
    if (tenants_ == nullptr) return Ask(*single_, route, request);
    const std::string tenant = Tenants::NameOf(request);
    if (tenant.empty()) {
      return Text(401, "this store has tenants: name one by the header X-Scope-OrgID");
    }
    if (!Tenants::IsName(tenant)) return Text(400, "X-Scope-OrgID: this is no name of a tenant");
    const Result<ProfileHandlers*> handlers = tenants_->Of(tenant, /*create=*/IsPush(route));
    if (handlers.ok()) return Ask(**handlers, route, request);
    switch (handlers.status().code()) {
      case StatusCode::kNotFound:
        return Text(404, ErrorMessage(handlers.status()));
      case StatusCode::kResourceExhausted:
        return Text(429, ErrorMessage(handlers.status()));
      default:
        Log(LogLevel::kError, "a tenant cannot be kept", {{"error", handlers.status()}});
        return Text(503, ErrorMessage(handlers.status()));
    }
  }

  static HttpServerResponse Ask(ProfileHandlers& handlers, const std::string& route,
                                const HttpServerRequest& request) {
    if (route == kPush) return handlers.push.Handle(request);
    if (route == kIngest) return handlers.push.HandleIngest(request);
    if (route == kOtlp) return handlers.push.HandleOtlp(request);
    if (route == kQuerier) return handlers.querier.Handle(request);
    if (request.method != "GET") return OnlyGet();
    return handlers.queries.Handle(route, request);
  }

  mutable Mutex mutex_;
  std::shared_ptr<const Access> access_ FF_GUARDED_BY(mutex_);
  Tenants* const tenants_;
  Metrics* const metrics_;
  std::unique_ptr<ProfileHandlers> single_;  // nullptr: there are tenants
  FleetHandler fleet_;
  RequestCounters counters_;
};

StoreHandler::StoreHandler(Database* database, const Clock* clock, Metrics* metrics,
                           Options options)
    : impl_(std::make_unique<Impl>(database, clock, metrics, std::move(options))) {}
StoreHandler::~StoreHandler() = default;

HttpServerResponse StoreHandler::Handle(const HttpServerRequest& request) {
  return impl_->Handle(request, /*is_reader=*/false);
}

HttpServerResponse StoreHandler::HandleReader(const HttpServerRequest& request) {
  return impl_->Handle(request, /*is_reader=*/true);
}

HttpServerResponse StoreHandler::HandleProbe(const HttpServerRequest& request) {
  if (request.path == "/healthz" || request.path == "/readyz" || request.path == "/metrics")
    return HandleReader(request);
  return Text(404, "there is /healthz, /readyz and /metrics");
}

void StoreHandler::SetAccess(Access access) {
  impl_->SetAccess(std::move(access));
}

}  // namespace flamefleet::store
