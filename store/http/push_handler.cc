// SPDX-License-Identifier: Apache-2.0
#include "store/http/push_handler.h"

#include <array>
#include <optional>

#include "store/http/connect.h"
#include "store/http/otlp.h"
#include "store/ingest/ingest.h"
#include "store/ingest/otlp.h"

namespace flamefleet::store {
namespace {

constexpr char kDiskFull[] = "disk_full";
constexpr char kBusy[] = "busy";
constexpr char kSeriesLimit[] = "series_limit";
constexpr char kInternal[] = "internal";
// Retry-After, in seconds.
constexpr char kWhenDiskIsFull[] = "10";
constexpr char kWhenBusy[] = "1";

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

HttpServerResponse NotStored(const Status& error) {
  const std::string message = ErrorMessage(error);
  switch (error.code()) {
    case StatusCode::kResourceExhausted:
      return RetryLater(ConnectError(503, "unavailable", message), kWhenDiskIsFull);
    case StatusCode::kUnavailable:
      return RetryLater(ConnectError(503, "unavailable", message), kWhenBusy);
    case StatusCode::kFailedPrecondition:
      return ConnectError(400, "failed_precondition", message);
    default:
      return ConnectError(500, "internal", message);
  }
}

HttpServerResponse RefusalResponse(const PushResult& push) {
  if (push.refusal == Refusal::kTooLarge) {
    return ConnectError(413, "resource_exhausted", ErrorMessage(push.error));
  }
  return ConnectError(400, "invalid_argument", ErrorMessage(push.error));
}

PushResult Unreadable(const Status& error) {
  const bool too_large = error.code() == StatusCode::kResourceExhausted;
  return {.error = error,
          .refusal = too_large ? Refusal::kTooLarge : Refusal::kMalformedRequest,
          .refused = 1};
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
  if (!body.ok()) return Unreadable(body.status());
  return ReadPush(*body, EncodingOf(request), limits_, clock_->WallNanos());
}

Status PushHandler::Store(const std::vector<NewProfile>& profiles) {
  if (profiles.empty()) return OkStatus();
  const Status stored = database_->Append(profiles);
  switch (stored.code()) {
    case StatusCode::kOk:
      break;
    case StatusCode::kResourceExhausted:
      CountRefused(kDiskFull, profiles.size());
      break;
    case StatusCode::kUnavailable:
      CountRefused(kBusy, profiles.size());
      break;
    case StatusCode::kFailedPrecondition:
      CountRefused(kSeriesLimit, profiles.size());
      break;
    default:
      CountRefused(kInternal, profiles.size());
  }
  return stored;
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
  if (const Status stored = Store(push.profiles); !stored.ok()) return NotStored(stored);
  return {.content_type = ""};
}

HttpServerResponse PushHandler::HandleOtlp(const HttpServerRequest& request) {
  if (std::optional<HttpServerResponse> refused = RefuseOtlp(request)) {
    if (refused->status != 405) CountRefused(Name(Refusal::kMalformedRequest), 1);
    return *std::move(refused);
  }
  PushResult push;
  {
    const ReadSlot slot(reads_);
    const Result<std::string> body = ReadCall(request, limits_.max_request_bytes);
    push = body.ok() ? ReadOtlp(*body, limits_, clock_->WallNanos()) : Unreadable(body.status());
  }
  if (push.refusal != Refusal::kNone) CountRefused(Name(push.refusal), push.refused);
  const Status stored = Store(push.profiles);
  switch (stored.code()) {
    case StatusCode::kOk:
      break;
    case StatusCode::kResourceExhausted:  // clients of OTLP try again after 503
      return RetryLater(OtlpError(503, UnavailableError(ErrorMessage(stored))), kWhenDiskIsFull);
    case StatusCode::kUnavailable:
      return RetryLater(OtlpError(503, stored), kWhenBusy);
    default:
      return OtlpError(stored.code() == StatusCode::kFailedPrecondition ? 400 : 500, stored);
  }
  if (push.refusal == Refusal::kNone || !push.profiles.empty()) {
    return OtlpAnswer(push.refused, push.error);
  }
  return OtlpError(push.refusal == Refusal::kTooLarge ? 413 : 400, push.error);
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
  if (const Status stored = Store(push.profiles); !stored.ok()) return NotStored(stored);
  if (push.refusal != Refusal::kNone) return RefusalResponse(push);
  if (EncodingOf(request) == PushEncoding::kJson) {
    return {.content_type = request.Header("content-type"), .body = "{}"};
  }
  return {.content_type = "application/proto"};
}

}  // namespace flamefleet::store
