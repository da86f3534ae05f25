// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/reflector.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>
#include <utility>

#include "base/log.h"
#include "base/thread.h"
#include "operator/kube/object_splitter.h"

namespace flamefleet {
namespace {

using nlohmann::json;

// Names of unreadable objects that are remembered so that each is logged once.
constexpr size_t kMaxUnreadableNames = 100;
// Room for the answer of a watch to reach us after its time at the server is over.
constexpr std::chrono::seconds kWatchGrace{30};

const json& Member(const json& object, const char* key) {
  static const json kNone;
  if (!object.is_object()) return kNone;
  const auto found = object.find(key);
  return found == object.end() ? kNone : *found;
}

std::string Text(const json& object, const char* key) {
  const json& value = Member(object, key);
  return value.is_string() ? value.get<std::string>() : std::string();
}

CounterMetric KindCounter(Metrics& metrics, std::string_view kind, const char* name,
                          const char* help) {
  return metrics.Counter(name, help, {{"kind", std::string(kind)}});
}

std::chrono::seconds PickWatchTimeout(std::chrono::seconds shortest) {
  thread_local std::minstd_rand random{std::random_device{}()};
  return std::chrono::seconds(std::uniform_int_distribution<int64_t>(
      shortest.count(), shortest.count() + shortest.count() / 4)(random));
}

}  // namespace

Reflector::Reflector(RestClient& client, ReflectorOptions options, ObjectSink& sink,
                     const Clock& clock, Metrics& metrics)
    : client_(client),
      options_(std::move(options)),
      sink_(sink),
      clock_(clock),
      lists_(KindCounter(metrics, options_.resource.kind, "flamefleet_operator_lists_total",
                         "Complete lists read from the API server.")),
      watches_(KindCounter(metrics, options_.resource.kind, "flamefleet_operator_watches_total",
                           "Watches opened at the API server.")),
      failures_(KindCounter(metrics, options_.resource.kind,
                            "flamefleet_operator_list_watch_failures_total",
                            "Lists and watches that failed and were tried again.")),
      unreadable_objects_(KindCounter(metrics, options_.resource.kind,
                                      "flamefleet_operator_unreadable_objects_total",
                                      "Objects that could not be read and were skipped.")) {}

void Reflector::Run(const std::stop_token& stop) {
  bool relist = true;
  while (!stop.stop_requested()) {
    const Outcome outcome = relist ? List(stop) : Watch(stop);
    if (stop.stop_requested()) return;
    relist = outcome.relist;
    Report(outcome.status);
    if (!outcome.status.ok()) WaitForStop(stop, std::max(outcome.retry_after, backoff_.Next()));
  }
}

// Logged when a failure begins or becomes another one, and when it is over; never per try.
void Reflector::Report(const Status& status) {
  if (!status.ok()) failures_.Increment();
  if (status.code() == std::exchange(reported_, status.code())) return;
  if (status.ok()) {
    Log(LogLevel::kInfo, "list and watch works again", {{"kind", options_.resource.kind}});
  } else {
    Log(LogLevel::kWarn, "list and watch failed",
        {{"kind", options_.resource.kind}, {"error", status}});
  }
}

Reflector::Outcome Reflector::FailureOf(const RestClient::StreamResult& result) const {
  Outcome failure{result.status};
  if (!result.api_error) return failure;
  failure.relist = result.api_error->IsExpired();
  failure.retry_after = result.api_error->retry_after.value_or(std::chrono::seconds(0));
  return failure;
}

std::string Reflector::Query(const std::string& parameters) const {
  std::string query = CollectionPath(options_.resource, options_.ns) + "?" + parameters;
  if (!options_.label_selector.empty()) {
    query += "&labelSelector=" + UrlEncode(options_.label_selector);
  }
  return query;
}

RestClient::StreamResult Reflector::ListPage(const std::string& continue_token,
                                             const std::stop_token& stop, std::string& envelope) {
  ObjectSplitter splitter(ObjectSplitter::Mode::kList, [&](std::string_view text) {
    const json object = json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (const Status read = sink_.Collect(object); !read.ok()) SkipUnreadable(object, read);
    return OkStatus();
  });
  RestClient::StreamRequest request;
  request.verb = "list";
  request.path_and_query = Query("limit=" + std::to_string(options_.page_size));
  if (!continue_token.empty()) {
    request.path_and_query += "&continue=" + UrlEncode(continue_token);
  }
  request.total_timeout = kPageTimeout;
  RestClient::StreamResult result = client_.Stream(
      request, [&](std::string_view piece) { return splitter.Feed(piece); }, stop);
  if (result.status.ok()) result.status = splitter.Finish();
  envelope = splitter.envelope();
  return result;
}

Reflector::Outcome Reflector::List(const std::stop_token& stop) {
  std::string continue_token;
  do {
    std::string envelope;
    const RestClient::StreamResult page = ListPage(continue_token, stop, envelope);
    if (!page.status.ok()) {
      sink_.Abandon();
      Outcome failure = FailureOf(page);
      failure.relist = true;  // an expired continue token included
      return failure;
    }
    const json list = json::parse(envelope, nullptr, /*allow_exceptions=*/false);
    version_ = Text(Member(list, "metadata"), "resourceVersion");
    continue_token = Text(Member(list, "metadata"), "continue");
  } while (!continue_token.empty());
  sink_.Replace();
  lists_.Increment();
  synced_ = true;
  return {};
}

Reflector::Outcome Reflector::Watch(const std::stop_token& stop) {
  const std::chrono::seconds timeout = PickWatchTimeout(options_.watch_timeout);
  Outcome ended;
  events_ = 0;
  ObjectSplitter splitter(ObjectSplitter::Mode::kStream,
                          [&](std::string_view text) { return HandleEvent(text, ended); });
  RestClient::StreamRequest request;
  request.verb = "watch";
  request.path_and_query =
      Query("watch=1&allowWatchBookmarks=true&resourceVersion=" + UrlEncode(version_) +
            "&timeoutSeconds=" + std::to_string(timeout.count()));
  request.idle_timeout = options_.idle_timeout;
  request.total_timeout = timeout + kWatchGrace;

  const int64_t opened_ns = clock_.MonotonicNanos();
  watches_.Increment();
  const RestClient::StreamResult result = client_.Stream(
      request, [&](std::string_view piece) { return splitter.Feed(piece); }, stop);
  const std::chrono::nanoseconds lasted(clock_.MonotonicNanos() - opened_ns);
  if (events_ > 0 || lasted > kMaxBackoff) backoff_.Reset();
  if (!ended.status.ok()) return ended;  // an ERROR event said what to do
  if (!result.status.ok()) return FailureOf(result);
  if (events_ == 0 && lasted < kShortestWatch) {
    return {UnavailableError("watch " + std::string(options_.resource.plural) + ": ended at once")};
  }
  return {};
}

Status Reflector::HandleEvent(std::string_view text, Outcome& ended) {
  const json event = json::parse(text, nullptr, /*allow_exceptions=*/false);
  const std::string type = Text(event, "type");
  const json& object = Member(event, "object");
  if (type == "ERROR") {
    const ApiError error = DecodeApiError(object);
    ended = FailureOf({error.ToStatus("watch " + std::string(options_.resource.plural)), error});
    return ended.status;
  }
  const json& metadata = Member(object, "metadata");
  const std::string version = Text(metadata, "resourceVersion");
  if (type.empty() || version.empty()) {
    return DataLossError("watch " + std::string(options_.resource.plural) +
                         ": an event without type or version");
  }
  if (type == "ADDED" || type == "MODIFIED") {
    if (const Status read = sink_.Upsert(object); !read.ok()) SkipUnreadable(object, read);
  } else if (type == "DELETED") {
    sink_.Delete(Text(metadata, "namespace"), Text(metadata, "name"));
  }
  version_ = version;
  ++events_;
  return OkStatus();
}

void Reflector::SkipUnreadable(const json& object, const Status& why) {
  unreadable_objects_.Increment();
  const json& metadata = Member(object, "metadata");
  const std::string name = Text(metadata, "namespace") + "/" + Text(metadata, "name");
  if (unreadable_.size() >= kMaxUnreadableNames || !unreadable_.insert(name).second) return;
  Log(LogLevel::kWarn, "object skipped: it cannot be read",
      {{"kind", options_.resource.kind},
       {"namespace", Text(metadata, "namespace")},
       {"name", Text(metadata, "name")},
       {"error", why}});
}

}  // namespace flamefleet
