// SPDX-License-Identifier: Apache-2.0
#include "store/http/handler.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <nlohmann/json.hpp>
#include <semaphore>
#include <set>

#include "base/gzip.h"
#include "base/log.h"
#include "store/http/push_handler.h"
#include "store/query/top_table.h"

namespace flamefleet::store {
namespace {

constexpr char kPushPath[] = "/push.v1.PusherService/Push";
constexpr char kLabelsPrefix[] = "/labels/";
constexpr char kValuesSuffix[] = "/values";
constexpr size_t kDefaultTopLimit = 30;
constexpr size_t kMaxTopLimit = 10'000;
constexpr std::chrono::seconds kQueryTurnTimeout{10};
constexpr char kJsonType[] = "application/json";

constexpr char kRoutes[] = R"(flamefleet-store keeps profiles and answers queries about them.

  POST /push.v1.PusherService/Push   store profiles (Pyroscope push API)
  GET  /pprof                        merge of the selected profiles, for: go tool pprof URL
  GET  /top                          hottest functions; limit=30, format=json
  GET  /series                       label sets
  GET  /labels                       label names
  GET  /labels/NAME/values           values of a label
  GET  /healthz  /readyz  /metrics

Queries take
  query=process_cpu:cpu{service_name="shop",pod=~"web-.*"}
                       type (default process_cpu), sample type (default: all in /pprof, the
                       profile's main one in /top), label matchers = != =~ !~
  from=now-1h until=now
                       or RFC 3339, or Unix seconds or milliseconds
)";

std::string Dump(const nlohmann::json& json) {
  return json.dump() + "\n";
}

HttpServerResponse Text(int status, const std::string& text) {
  return {.status = status, .body = text + "\n"};
}

HttpServerResponse QueryError(const Status& error) {
  switch (error.code()) {
    case StatusCode::kInvalidArgument:
      return Text(400, ErrorMessage(error));
    case StatusCode::kNotFound:
      return Text(404, ErrorMessage(error));
    case StatusCode::kResourceExhausted:
    case StatusCode::kDeadlineExceeded:
    case StatusCode::kFailedPrecondition:
      return Text(422, ErrorMessage(error));
    case StatusCode::kUnavailable: {
      HttpServerResponse response = Text(503, ErrorMessage(error));
      response.headers["Retry-After"] = "1";
      return response;
    }
    default:
      Log(LogLevel::kError, "a query failed", {{"error", error}});
      return Text(500, ErrorMessage(error));
  }
}

Result<size_t> ParseLimit(const std::string& text) {
  if (text.empty()) return kDefaultTopLimit;
  const bool digits = text.size() <= 5 && std::all_of(text.begin(), text.end(),
                                                      [](char c) { return c >= '0' && c <= '9'; });
  const size_t limit = digits ? std::stoul(text) : 0;
  if (limit == 0 || limit > kMaxTopLimit) {
    return InvalidArgumentError("limit '" + text + "': want 1 to " + std::to_string(kMaxTopLimit));
  }
  return limit;
}

Result<bool> WantsJson(const HttpServerRequest& request) {
  const std::string format = request.QueryValue("format");
  if (format == "json") return true;
  if (format == "text") return false;
  if (!format.empty()) return InvalidArgumentError("format '" + format + "': want text or json");
  return request.Header("accept").find(kJsonType) != std::string::npos;
}

using QuerySlots = std::counting_semaphore<kMaxConcurrentQueries>;

struct SlotRelease {
  explicit SlotRelease(QuerySlots& s) : slots(s) {}
  SlotRelease(const SlotRelease&) = delete;
  SlotRelease& operator=(const SlotRelease&) = delete;
  ~SlotRelease() { slots.release(); }
  QuerySlots& slots;
};

struct What {
  Selector selector;
  TimeRange range;
};

// Requests by route and outcome.
class RequestCounters {
 public:
  explicit RequestCounters(Metrics* metrics) {
    for (const char* route : {"push", "pprof", "top", "series", "labels", "other"}) {
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

}  // namespace

class StoreHandler::Impl {
 public:
  Impl(Database* database, const Clock* clock, Metrics* metrics)
      : database_(database),
        clock_(clock),
        metrics_(metrics),
        push_(database, clock, metrics),
        counters_(metrics) {}

  HttpServerResponse Handle(const HttpServerRequest& request) {
    const std::string route = RouteOf(request.path);
    HttpServerResponse response = Dispatch(route, request);
    counters_.Count(route, response.status);
    return response;
  }

 private:
  static bool IsLabelValues(const std::string& path) {
    return path.starts_with(kLabelsPrefix) && path.ends_with(kValuesSuffix) &&
           path.size() > std::size(kLabelsPrefix) + std::size(kValuesSuffix) - 2;
  }

  static std::string RouteOf(const std::string& path) {
    if (path == kPushPath) return "push";
    if (path == "/pprof" || path == "/top" || path == "/series") return path.substr(1);
    if (path == "/labels" || IsLabelValues(path)) return "labels";
    return "other";
  }

  HttpServerResponse Dispatch(const std::string& route, const HttpServerRequest& request) {
    if (route == "push") return push_.Handle(request);
    if (request.method != "GET") {
      return {.status = 405, .body = "use GET\n", .headers = {{"Allow", "GET"}}};
    }
    if (route == "pprof") return Answer(request, &Impl::Pprof);
    if (route == "top") return Answer(request, &Impl::Top);
    if (route == "series") return Answer(request, &Impl::Series);
    if (route == "labels") return Answer(request, &Impl::LabelList);
    if (request.path == "/") return {.body = kRoutes};
    if (request.path == "/healthz" || request.path == "/readyz") return Text(200, "ok");
    if (request.path == "/metrics") {
      return {.content_type = "text/plain; version=0.0.4", .body = metrics_->RenderText()};
    }
    return Text(404, "nothing is at this path; GET / lists what there is");
  }

  using Query = Result<HttpServerResponse> (Impl::*)(const HttpServerRequest&);

  // Runs a query when it is its turn.
  HttpServerResponse Answer(const HttpServerRequest& request, Query query) {
    if (!query_slots_.try_acquire_for(kQueryTurnTimeout)) {
      return QueryError(UnavailableError("too many queries run; try again"));
    }
    const SlotRelease release{query_slots_};
    Result<HttpServerResponse> response = (this->*query)(request);
    return response.ok() ? *std::move(response) : QueryError(response.status());
  }

  Result<TimeRange> RangeOf(const HttpServerRequest& request) const {
    return ParseTimeRange(request.QueryValue("from"), request.QueryValue("until"),
                          clock_->WallNanos());
  }

  Result<What> WhatOf(const HttpServerRequest& request) const {
    What what;
    FF_ASSIGN_OR_RETURN(what.selector, ParseSelector(request.QueryValue("query")));
    FF_ASSIGN_OR_RETURN(what.range, RangeOf(request));
    return what;
  }

  Result<HttpServerResponse> Pprof(const HttpServerRequest& request) {
    FF_ASSIGN_OR_RETURN(const What what, WhatOf(request));
    FF_ASSIGN_OR_RETURN(const MergedProfile merged, MergeProfiles(database_, *clock_, what.selector,
                                                                  what.range, QueryLimits{}));
    std::string bytes;
    pprof::Encode(merged.profile, &bytes);
    HttpServerResponse response{.content_type = "application/octet-stream"};
    FF_ASSIGN_OR_RETURN(response.body, Gzip(bytes));
    response.headers["Content-Disposition"] = "attachment; filename=\"profile.pb.gz\"";
    return response;
  }

  Result<HttpServerResponse> Top(const HttpServerRequest& request) {
    FF_ASSIGN_OR_RETURN(const What what, WhatOf(request));
    FF_ASSIGN_OR_RETURN(const size_t limit, ParseLimit(request.QueryValue("limit")));
    FF_ASSIGN_OR_RETURN(const bool json, WantsJson(request));
    FF_ASSIGN_OR_RETURN(const MergedProfile merged, MergeProfiles(database_, *clock_, what.selector,
                                                                  what.range, QueryLimits{}));
    if (json) {
      return HttpServerResponse{.content_type = kJsonType,
                                .body = TopAsJson(merged, what.range, limit)};
    }
    return HttpServerResponse{.body = TopAsText(merged, what.range, limit)};
  }

  // Series and labels are those of every profile type unless the query names one.
  Result<std::vector<Labels>> SelectSeries(const HttpServerRequest& request) {
    FF_ASSIGN_OR_RETURN(const TimeRange range, RangeOf(request));
    Selector selector;
    if (const std::string query = request.QueryValue("query"); !query.empty()) {
      FF_ASSIGN_OR_RETURN(selector, ParseSelector(query));
    }
    return database_->SelectSeries(selector, range);
  }

  Result<HttpServerResponse> Series(const HttpServerRequest& request) {
    FF_ASSIGN_OR_RETURN(const std::vector<Labels> series, SelectSeries(request));
    return HttpServerResponse{.content_type = kJsonType, .body = Dump({{"series", series}})};
  }

  Result<HttpServerResponse> LabelList(const HttpServerRequest& request) {
    FF_ASSIGN_OR_RETURN(const std::vector<Labels> series, SelectSeries(request));
    std::set<std::string> found;
    if (request.path == "/labels") {
      for (const Labels& labels : series) {
        for (const auto& [name, value] : labels)
          found.insert(name);
      }
      return HttpServerResponse{.content_type = kJsonType, .body = Dump({{"names", found}})};
    }
    const size_t begin = std::size(kLabelsPrefix) - 1;
    const std::string name =
        request.path.substr(begin, request.path.size() - begin - (std::size(kValuesSuffix) - 1));
    for (const Labels& labels : series) {
      if (const auto label = labels.find(name); label != labels.end()) found.insert(label->second);
    }
    return HttpServerResponse{.content_type = kJsonType, .body = Dump({{"values", found}})};
  }

  Database* const database_;
  const Clock* const clock_;
  Metrics* const metrics_;
  PushHandler push_;
  RequestCounters counters_;
  QuerySlots query_slots_{kMaxConcurrentQueries};
};

StoreHandler::StoreHandler(Database* database, const Clock* clock, Metrics* metrics)
    : impl_(std::make_unique<Impl>(database, clock, metrics)) {}
StoreHandler::~StoreHandler() = default;

HttpServerResponse StoreHandler::Handle(const HttpServerRequest& request) {
  return impl_->Handle(request);
}

}  // namespace flamefleet::store
