// SPDX-License-Identifier: Apache-2.0
#include "store/http/query_handler.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/gzip.h"
#include "base/log.h"
#include "store/db/label_sets.h"
#include "store/query/flame_graph.h"
#include "store/query/level.h"
#include "store/query/timeline.h"
#include "store/query/top_table.h"

namespace flamefleet::store {
namespace {

constexpr char kLabelsPrefix[] = "/labels/";
constexpr char kValuesSuffix[] = "/values";
constexpr char kJsonType[] = "application/json";
constexpr size_t kDefaultTopLimit = 30;
constexpr size_t kMaxTopLimit = 10'000;
constexpr size_t kDefaultGraphNodes = 16'384;
constexpr size_t kMaxGraphNodes = 200'000;
constexpr size_t kDefaultLines = 50;
constexpr int64_t kDefaultTimelinePoints = 120;
// Agents send a profile every 15 s: in shorter steps a chart would show gaps.
constexpr int64_t kMinDefaultStepNs = 15 * kNanosPerSecond;

HttpServerResponse Text(int status, const std::string& text) {
  return {.status = status, .body = text + "\n"};
}

HttpServerResponse Json(std::string body) {
  return {.content_type = kJsonType, .body = std::move(body)};
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

// The number of parameter `name`, 1 to `most`; `otherwise` when it is absent.
Result<size_t> CountOf(const HttpServerRequest& request, const std::string& name, size_t otherwise,
                       size_t most) {
  const std::string text = request.QueryValue(name);
  if (text.empty()) return otherwise;
  const bool digits = text.size() <= 9 && std::all_of(text.begin(), text.end(),
                                                      [](char c) { return c >= '0' && c <= '9'; });
  const size_t count = digits ? std::stoul(text) : 0;
  if (count == 0 || count > most) {
    return InvalidArgumentError(name + " '" + text + "': want 1 to " + std::to_string(most));
  }
  return count;
}

Result<bool> WantsJson(const HttpServerRequest& request) {
  const std::string format = request.QueryValue("format");
  if (format == "json") return true;
  if (format == "text") return false;
  if (!format.empty()) return InvalidArgumentError("format '" + format + "': want text or json");
  return request.Header("accept").find(kJsonType) != std::string::npos;
}

bool IsLabelValues(const std::string& path) {
  return path.starts_with(kLabelsPrefix) && path.ends_with(kValuesSuffix) &&
         path.size() > std::size(kLabelsPrefix) + std::size(kValuesSuffix) - 2;
}

}  // namespace

struct QueryHandler::What {
  Selector selector;
  TimeRange range;
  bool sums_levels = false;  // as google/pprof merges; else a person's mean
};

const std::vector<std::string>& QueryHandler::Routes() {
  static const std::vector<std::string> routes = {"pprof", "top",    "flamegraph", "timeline",
                                                  "types", "series", "labels"};
  return routes;
}

std::string QueryHandler::RouteOf(const std::string& path) {
  if (IsLabelValues(path)) return "labels";
  const auto route = std::find(Routes().begin(), Routes().end(), path.substr(1));
  return route == Routes().end() ? "" : *route;
}

HttpServerResponse QueryHandler::Handle(const std::string& route,
                                        const HttpServerRequest& request) {
  const QueryTurn turn(engine_);
  if (!turn.status().ok()) return QueryError(turn.status());
  Result<HttpServerResponse> response = Answer(route, request);
  return response.ok() ? *std::move(response) : QueryError(response.status());
}

Result<HttpServerResponse> QueryHandler::Answer(const std::string& route,
                                                const HttpServerRequest& request) {
  if (route == "pprof") return Pprof(request);
  if (route == "top") return Top(request);
  if (route == "flamegraph") return FlameGraph(request);
  if (route == "timeline") return TimelineOf(request);
  if (route == "types") return Types(request);
  if (route == "series") return Series(request);
  return LabelList(request);
}

// The query of a side: `prefix` is "" or "baseline-".
Result<QueryHandler::What> QueryHandler::WhatOf(const HttpServerRequest& request,
                                                const std::string& prefix) const {
  What what;
  FF_ASSIGN_OR_RETURN(what.selector, ParseSelector(request.QueryValue(prefix + "query")));
  FF_ASSIGN_OR_RETURN(what.range, ParseTimeRange(request.QueryValue(prefix + "from"),
                                                 request.QueryValue(prefix + "until"),
                                                 engine_->clock().WallNanos()));
  const std::string levels = request.QueryValue("levels");
  if (levels != "" && levels != "mean" && levels != "sum")
    return InvalidArgumentError("levels '" + levels + "': want mean or sum");
  what.sums_levels = levels == "sum";
  return what;
}

Result<MergedProfile> QueryHandler::Merge(const What& what, const MergedProfile* held) const {
  FF_ASSIGN_OR_RETURN(MergedProfile merged, engine_->Merge(what.selector, what.range, held));
  if (!what.sums_levels) {
    FF_RETURN_IF_ERROR(MeanLevels(engine_->database(), what.selector, what.range, &merged));
  }
  return merged;
}

Result<HttpServerResponse> QueryHandler::Pprof(const HttpServerRequest& request) {
  FF_ASSIGN_OR_RETURN(const What what, WhatOf(request));
  FF_ASSIGN_OR_RETURN(const MergedProfile merged, Merge(what));
  std::string bytes;
  pprof::Encode(merged.profile, &bytes);
  HttpServerResponse response{.content_type = "application/octet-stream"};
  FF_ASSIGN_OR_RETURN(response.body, Gzip(bytes));
  response.headers["Content-Disposition"] = "attachment; filename=\"profile.pb.gz\"";
  return response;
}

Result<HttpServerResponse> QueryHandler::Top(const HttpServerRequest& request) {
  FF_ASSIGN_OR_RETURN(const What what, WhatOf(request));
  FF_ASSIGN_OR_RETURN(const size_t limit,
                      CountOf(request, "limit", kDefaultTopLimit, kMaxTopLimit));
  FF_ASSIGN_OR_RETURN(const bool json, WantsJson(request));
  FF_ASSIGN_OR_RETURN(const MergedProfile merged, Merge(what));
  if (json) return Json(TopAsJson(merged, what.range, limit));
  return HttpServerResponse{.body = TopAsText(merged, what.range, limit)};
}

Result<HttpServerResponse> QueryHandler::FlameGraph(const HttpServerRequest& request) {
  FF_ASSIGN_OR_RETURN(const What what, WhatOf(request));
  FF_ASSIGN_OR_RETURN(const size_t max_nodes,
                      CountOf(request, "max-nodes", kDefaultGraphNodes, kMaxGraphNodes));
  const bool compares = request.query.contains("baseline-query");
  What baseline;
  if (compares) {
    FF_ASSIGN_OR_RETURN(baseline, WhatOf(request, "baseline-"));
  }
  FF_ASSIGN_OR_RETURN(const MergedProfile merged, Merge(what));
  const FlameGraphSide main{merged, what.range};
  if (!compares) {
    FF_ASSIGN_OR_RETURN(std::string json, FlameGraphAsJson(main, nullptr, max_nodes));
    return Json(std::move(json));
  }
  const Result<MergedProfile> other = Merge(baseline, &merged);
  if (!other.ok()) return Annotate(other.status(), "baseline");
  const FlameGraphSide side{*other, baseline.range};
  FF_ASSIGN_OR_RETURN(std::string json, FlameGraphAsJson(main, &side, max_nodes));
  return Json(std::move(json));
}

Result<HttpServerResponse> QueryHandler::TimelineOf(const HttpServerRequest& request) {
  FF_ASSIGN_OR_RETURN(const What what, WhatOf(request));
  FF_ASSIGN_OR_RETURN(const size_t limit,
                      CountOf(request, "limit", kDefaultLines, kMaxTimelineLines));
  FF_ASSIGN_OR_RETURN(const size_t step_seconds, CountOf(request, "step", 0, 86'400));
  const int64_t step_ns =
      step_seconds != 0 ? static_cast<int64_t>(step_seconds) * kNanosPerSecond
                        : std::max(kMinDefaultStepNs, (what.range.until_ns - what.range.from_ns) /
                                                          kDefaultTimelinePoints);
  FF_ASSIGN_OR_RETURN(const Timeline timeline,
                      SelectTimeline(engine_->database(), what.selector, what.range, step_ns,
                                     request.QueryValue("by")));
  return Json(TimelineAsJson(timeline, what.range, limit));
}

// Without a query all series are meant, as in the three below.
Result<QueryHandler::What> QueryHandler::WhatOrAll(const HttpServerRequest& request) const {
  if (!request.QueryValue("query").empty()) return WhatOf(request);
  What all;
  FF_ASSIGN_OR_RETURN(all.range,
                      ParseTimeRange(request.QueryValue("from"), request.QueryValue("until"),
                                     engine_->clock().WallNanos()));
  return all;
}

Result<HttpServerResponse> QueryHandler::Types(const HttpServerRequest& request) {
  FF_ASSIGN_OR_RETURN(const What what, WhatOrAll(request));
  FF_ASSIGN_OR_RETURN(std::string json,
                      TypesAsJson(engine_->database(), what.selector, what.range));
  return Json(std::move(json));
}

Result<HttpServerResponse> QueryHandler::Series(const HttpServerRequest& request) {
  FF_ASSIGN_OR_RETURN(const What what, WhatOrAll(request));
  LabelSets series;
  FF_RETURN_IF_ERROR(engine_->database()->SelectSeries(
      what.selector, what.range, [&](const Labels& labels) { return series.Add(labels); }));
  return Json(nlohmann::json({{"series", series.sets()}}).dump() + "\n");
}

Result<HttpServerResponse> QueryHandler::LabelList(const HttpServerRequest& request) {
  FF_ASSIGN_OR_RETURN(const What what, WhatOrAll(request));
  const bool wants_values = IsLabelValues(request.path);
  const size_t begin = std::size(kLabelsPrefix) - 1;
  const std::string name =
      wants_values
          ? request.path.substr(begin, request.path.size() - begin - (std::size(kValuesSuffix) - 1))
          : "";
  std::set<std::string> found;
  const auto add = [&](const Labels& labels) {
    if (wants_values) {
      if (const auto label = labels.find(name); label != labels.end()) found.insert(label->second);
      return OkStatus();
    }
    for (const auto& [label, value] : labels)
      found.insert(label);
    return OkStatus();
  };
  FF_RETURN_IF_ERROR(engine_->database()->SelectSeries(what.selector, what.range, add));
  return Json(nlohmann::json({{wants_values ? "values" : "names", found}}).dump() + "\n");
}

}  // namespace flamefleet::store
