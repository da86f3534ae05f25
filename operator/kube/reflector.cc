// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/reflector.h"

#include <algorithm>
#include <random>
#include <utility>

#include "base/log.h"
#include "base/thread.h"

namespace flamefleet {
namespace {

// Names of unreadable objects that are remembered so that each is logged once.
constexpr size_t kMaxUnreadableNames = 100;
// Room for the answer of a watch to reach us after its time at the server is over.
constexpr std::chrono::seconds kWatchGrace{30};

// Two silent watches in a row: the server may not have seen our version, which it does not say.
constexpr int kMaxSilentWatches = 2;

// Versions are decimal numbers without leading zeros; of two texts that are not, none is older.
bool IsOlder(const std::string& version, const std::string& than) {
  const auto is_number = [](const std::string& text) {
    return !text.empty() && text.front() != '0' &&
           text.find_first_not_of("0123456789") == std::string::npos;
  };
  if (!is_number(version) || !is_number(than)) return false;
  return version.size() != than.size() ? version.size() < than.size() : version < than;
}

// What a server answers that does not know WatchList, or has it off.
bool RefusesParameters(const RestClient::StreamResult& result) {
  return result.api_error &&
         (result.api_error->http_status == 400 || result.api_error->http_status == 422);
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
      backoff_(options_.first_backoff, kMaxBackoff, /*jitter=*/1.0),
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
    const Outcome outcome = relist ? Fill(stop) : Watch(/*filling=*/false, stop);
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
  failure.relist = result.api_error->IsExpired() || result.api_error->IsTooLargeVersion();
  failure.retry_after = result.api_error->retry_after.value_or(std::chrono::seconds(0));
  return failure;
}

std::string Reflector::Query(const std::string& parameters) const {
  std::string query = CollectionPath(options_.resource, options_.ns) + "?" + parameters;
  if (!options_.label_selector.empty()) {
    query += "&labelSelector=" + UrlEncode(options_.label_selector);
  }
  if (!options_.field_selector.empty()) {
    query += "&fieldSelector=" + UrlEncode(options_.field_selector);
  }
  return query;
}

Reflector::Outcome Reflector::Fill(const std::stop_token& stop) {
  return watch_list_ ? Watch(/*filling=*/true, stop) : List(stop);
}

RestClient::StreamResult Reflector::ListPage(const std::stop_token& stop) {
  RestClient::StreamRequest request;
  request.verb = "list";
  request.protobuf = sink_.TakesMessages();
  request.metadata = options_.metadata_only;
  request.idle_timeout = kPageTimeout;
  if (whole_list_) {
    request.path_and_query = Query("");
  } else {
    request.path_and_query = Query("limit=" + std::to_string(options_.page_size));
    if (!continue_token_.empty()) {
      request.path_and_query += "&continue=" + UrlEncode(continue_token_);
    }
    request.total_timeout = kPageTimeout;
  }
  std::unique_ptr<ListParser> parser;
  RestClient::StreamResult result = client_.Stream(
      request,
      [&](Encoding encoding) {
        parser = ListParser::Create(encoding,
                                    [this](const ServerObject& object) { return Upsert(object); });
      },
      [&](std::string_view piece) { return parser->Feed(piece); }, stop);
  if (!result.status.ok()) return result;
  result.status = parser->Finish();
  if (!result.status.ok()) return result;
  version_ = parser->version();
  continue_token_ = parser->continue_token();
  return result;
}

// A page that failed is asked for again: the pages before it are still true.
Reflector::Outcome Reflector::List(const std::stop_token& stop) {
  if (continue_token_.empty()) sink_.BeginList();
  do {
    const RestClient::StreamResult page = ListPage(stop);
    if (!page.status.ok()) {
      Outcome failure = FailureOf(page);
      if (failure.relist) {
        continue_token_.clear();
        whole_list_ = true;
      }
      failure.relist = true;
      return failure;
    }
  } while (!continue_token_.empty());
  whole_list_ = false;
  Filled(version_);
  return {};
}

void Reflector::Filled(const std::string& version) {
  filling_ = false;
  silent_watches_ = 0;
  sink_.EndList();
  See(version);
  lists_.Increment();
  synced_ = true;
}

void Reflector::See(const std::string& version) {
  version_ = version;
  MutexLock lock(&mutex_);
  seen_ = version;
}

Reflector::Outcome Reflector::Watch(bool filling, const std::stop_token& stop) {
  const std::chrono::seconds timeout = PickWatchTimeout(options_.watch_timeout);
  filling_ = filling;
  events_ = 0;
  ended_.reset();
  RestClient::StreamRequest request;
  request.verb = "watch";
  request.protobuf = sink_.TakesMessages();
  request.metadata = options_.metadata_only;
  request.path_and_query =
      Query("watch=1&allowWatchBookmarks=true&timeoutSeconds=" + std::to_string(timeout.count()) +
            (filling ? "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion="
                     : "&resourceVersion=" + UrlEncode(version_)));
  request.idle_timeout = options_.idle_timeout;
  request.total_timeout = timeout + kWatchGrace;
  if (filling) sink_.BeginList();

  std::unique_ptr<WatchParser> parser;
  const int64_t opened_ns = clock_.MonotonicNanos();
  watches_.Increment();
  const RestClient::StreamResult result = client_.Stream(
      request,
      [&](Encoding encoding) {
        parser = WatchParser::Create(
            encoding, [this](const WatchEvent& event) { return HandleEvent(event); });
      },
      [&](std::string_view piece) { return parser->Feed(piece); }, stop);
  const std::chrono::nanoseconds lasted(clock_.MonotonicNanos() - opened_ns);
  if (events_ > 0 || lasted > kMaxBackoff) backoff_.Reset();
  if (ended_) return *ended_;
  return filling_ ? EndOfFilling(result) : EndOfWatch(result, lasted);
}

Reflector::Outcome Reflector::EndOfWatch(const RestClient::StreamResult& result,
                                         std::chrono::nanoseconds lasted) {
  const bool silent = result.status.code() == StatusCode::kDeadlineExceeded && events_ == 0;
  silent_watches_ = silent ? silent_watches_ + 1 : 0;
  if (!result.status.ok()) {
    Outcome failure = FailureOf(result);
    // An event that is none would come again at the same version.
    const bool poisoned = result.status.code() == StatusCode::kDataLoss;
    failure.relist = failure.relist || poisoned || silent_watches_ >= kMaxSilentWatches;
    return failure;
  }
  if (events_ == 0 && lasted < kShortestWatch) {
    return {UnavailableError("watch " + std::string(options_.resource.plural) + ": ended at once")};
  }
  return {};
}

// The watch is over before its list was complete.
Reflector::Outcome Reflector::EndOfFilling(const RestClient::StreamResult& result) {
  const bool no_end = result.status.ok() || result.status.code() == StatusCode::kDeadlineExceeded;
  if (RefusesParameters(result) || (no_end && !result.api_error)) {
    watch_list_ = false;
    Log(LogLevel::kInfo, "the API server has no WatchList: lists are read in pages",
        {{"kind", options_.resource.kind}, {"error", result.status}});
    return {OkStatus(), /*relist=*/true};
  }
  Outcome failure = FailureOf(result);
  failure.relist = true;
  return failure;
}

Status Reflector::HandleEvent(const WatchEvent& event) {
  const std::string operation = "watch " + std::string(options_.resource.plural);
  if (event.type == "ERROR") {
    const ApiError error = DecodeApiError(event.object);
    ended_ = FailureOf({error.ToStatus(operation), error});
    ended_->relist = ended_->relist || filling_;
    return ended_->status;
  }
  const ObjectHead head = HeadOf(event.object);
  if (head.version.empty()) return DataLossError(operation + ": an event without version");
  // The objects that a list begins with are in no order.
  if (!filling_ && IsOlder(head.version, version_)) {
    ended_ = Outcome{AbortedError(operation + ": version " + head.version + " after " + version_),
                     /*relist=*/true};
    return ended_->status;
  }
  ++events_;
  if (event.type == "ADDED" || event.type == "MODIFIED") {
    FF_RETURN_IF_ERROR(Upsert(event.object));
  } else if (event.type == "DELETED") {
    sink_.Delete(head.ns, head.name);
  }
  if (!filling_) {
    See(head.version);
  } else if (event.type == "BOOKMARK" && head.initial_events_end) {
    Filled(head.version);
  }
  return OkStatus();
}

Status Reflector::Upsert(const ServerObject& object) {
  const Status read =
      object.json != nullptr ? sink_.Upsert(*object.json) : sink_.UpsertMessage(object.message);
  if (!read.ok()) SkipUnreadable(object, read);
  return OkStatus();
}

void Reflector::SkipUnreadable(const ServerObject& object, const Status& why) {
  unreadable_objects_.Increment();
  const ObjectHead head = HeadOf(object);
  if (unreadable_.size() >= kMaxUnreadableNames ||
      !unreadable_.insert(head.ns + "/" + head.name).second) {
    return;
  }
  Log(LogLevel::kWarn, "object skipped: it cannot be read",
      {{"kind", options_.resource.kind},
       {"namespace", head.ns},
       {"name", head.name},
       {"error", why}});
}

}  // namespace flamefleet
