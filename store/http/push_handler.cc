// SPDX-License-Identifier: Apache-2.0
#include "store/http/push_handler.h"

#include <array>

#include "store/http/connect.h"
#include "store/ingest/ingest.h"

namespace flamefleet::store {
namespace {

constexpr char kDiskFull[] = "disk_full";
constexpr char kBusy[] = "busy";
constexpr char kSeriesLimit[] = "series_limit";
constexpr char kInternal[] = "internal";

// In the order of enum Refusal, without kNone.
constexpr std::array<const char*, 6> kRefusalNames = {
    "malformed_request", "malformed_profile", "invalid_labels", "too_old", "too_new", "too_large"};
static_assert(kRefusalNames.size() == static_cast<size_t>(Refusal::kTooLarge));

const char* Name(Refusal refusal) {
  return kRefusalNames[static_cast<size_t>(refusal) - 1];
}

HttpServerResponse RetryLater(HttpServerResponse response, const char* seconds) {
  response.headers["Retry-After"] = seconds;
  return response;
}

// Waits for its turn.
class ReadSlot {
 public:
  explicit ReadSlot(std::counting_semaphore<kMaxConcurrentReads>& slots) : slots_(slots) {
    slots_.acquire();
  }
  ~ReadSlot() { slots_.release(); }
  ReadSlot(const ReadSlot&) = delete;
  ReadSlot& operator=(const ReadSlot&) = delete;

 private:
  std::counting_semaphore<kMaxConcurrentReads>& slots_;
};

HttpServerResponse RefusalResponse(const PushResult& push) {
  if (push.refusal == Refusal::kTooLarge) {
    return ConnectError(413, "resource_exhausted", ErrorMessage(push.error));
  }
  return ConnectError(400, "invalid_argument", ErrorMessage(push.error));
}

}  // namespace

PushHandler::PushHandler(Database* database, const Clock* clock, Metrics* metrics)
    : database_(database), clock_(clock) {
  limits_.max_age_ns = database->retention_ns();
  std::vector<std::string> reasons(kRefusalNames.begin(), kRefusalNames.end());
  reasons.insert(reasons.end(), {kDiskFull, kBusy, kSeriesLimit, kInternal});
  for (const std::string& reason : reasons) {
    refused_.emplace(reason, metrics->Counter("flamefleet_store_profiles_refused_total",
                                              "Profiles (or requests that could not be read) that "
                                              "were refused; the client was told.",
                                              {{"reason", reason}}));
  }
}

void PushHandler::CountRefused(const char* reason, size_t profiles) {
  refused_.at(reason).Increment(static_cast<double>(profiles));
}

PushResult PushHandler::Read(const HttpServerRequest& request) {
  const ReadSlot slot(reads_);
  const Result<std::string> body = ReadCall(request, limits_.max_request_bytes);
  if (!body.ok()) {
    const bool too_large = body.status().code() == StatusCode::kResourceExhausted;
    return {.error = body.status(),
            .refusal = too_large ? Refusal::kTooLarge : Refusal::kMalformedRequest,
            .refused = 1};
  }
  return ReadPush(*body, EncodingOf(request), limits_, clock_->WallNanos());
}

std::optional<HttpServerResponse> PushHandler::Store(const std::vector<NewProfile>& profiles) {
  if (profiles.empty()) return std::nullopt;
  const Status stored = database_->Append(profiles);
  const std::string message = ErrorMessage(stored);
  switch (stored.code()) {
    case StatusCode::kOk:
      return std::nullopt;
    case StatusCode::kResourceExhausted:
      CountRefused(kDiskFull, profiles.size());
      return RetryLater(ConnectError(507, "resource_exhausted", message), "10");
    case StatusCode::kUnavailable:
      CountRefused(kBusy, profiles.size());
      return RetryLater(ConnectError(503, "unavailable", message), "1");
    case StatusCode::kFailedPrecondition:
      CountRefused(kSeriesLimit, profiles.size());
      return ConnectError(400, "failed_precondition", message);
    default:
      CountRefused(kInternal, profiles.size());
      return ConnectError(500, "internal", message);
  }
}

HttpServerResponse PushHandler::HandleIngest(const HttpServerRequest& request) {
  if (request.method != "POST") {
    return {.status = 405, .body = "this takes POST\n", .headers = {{"Allow", "POST"}}};
  }
  PushResult push;
  {
    const ReadSlot slot(reads_);
    push = ReadIngest({.name = request.QueryValue("name"),
                       .from = request.QueryValue("from"),
                       .spy_name = request.QueryValue("spyName"),
                       .format = request.QueryValue("format"),
                       .sample_rate = request.QueryValue("sampleRate"),
                       .content_type = request.Header("content-type"),
                       .body = request.body},
                      limits_, clock_->WallNanos());
  }
  if (push.refusal != Refusal::kNone) {
    CountRefused(Name(push.refusal), push.refused);
    return ConnectError(push.refusal == Refusal::kInvalidLabels ? 400 : 422, "invalid_argument",
                        ErrorMessage(push.error));
  }
  if (const auto not_stored = Store(push.profiles)) return *not_stored;
  return {.content_type = ""};
}

HttpServerResponse PushHandler::Handle(const HttpServerRequest& request) {
  if (std::optional<HttpServerResponse> refused = RefuseCall(request)) {
    if (!refused->body.empty() && refused->status != 405) {
      CountRefused(Name(Refusal::kMalformedRequest), 1);
    }
    return *std::move(refused);
  }
  const PushResult push = Read(request);
  if (push.refusal != Refusal::kNone) CountRefused(Name(push.refusal), push.refused);
  if (const auto not_stored = Store(push.profiles)) return *not_stored;
  if (push.refusal != Refusal::kNone) return RefusalResponse(push);
  if (EncodingOf(request) == PushEncoding::kJson) {
    return {.content_type = request.Header("content-type"), .body = "{}"};
  }
  return {.content_type = "application/proto"};
}

}  // namespace flamefleet::store
