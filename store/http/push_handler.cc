// SPDX-License-Identifier: Apache-2.0
#include "store/http/push_handler.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/gzip.h"

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

HttpServerResponse ConnectError(int status, const char* code, const std::string& message) {
  const nlohmann::json json = {{"code", code}, {"message", message}};
  return {.status = status,
          .content_type = "application/json",
          .body = json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)};
}

HttpServerResponse RetryLater(HttpServerResponse response, const char* seconds) {
  response.headers["Retry-After"] = seconds;
  return response;
}

// "application/json; charset=utf-8" is the one parameter that Connect allows.
std::optional<PushEncoding> EncodingOf(std::string content_type) {
  std::erase(content_type, ' ');
  std::transform(content_type.begin(), content_type.end(), content_type.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (content_type == "application/proto") return PushEncoding::kProto;
  if (content_type == "application/json" || content_type == "application/json;charset=utf-8") {
    return PushEncoding::kJson;
  }
  return std::nullopt;
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

PushResult PushHandler::Read(const HttpServerRequest& request, PushEncoding encoding) {
  const ReadSlot slot(reads_);
  if (request.Header("content-encoding") != "gzip") {
    return ReadPush(request.body, encoding, limits_, clock_->WallNanos());
  }
  const Result<std::string> body = GunzipBounded(request.body, limits_.max_request_bytes);
  if (!body.ok()) {
    const bool too_large = body.status().code() == StatusCode::kResourceExhausted;
    return {.error = Annotate(body.status(), "request body"),
            .refusal = too_large ? Refusal::kTooLarge : Refusal::kMalformedRequest,
            .refused = 1};
  }
  return ReadPush(*body, encoding, limits_, clock_->WallNanos());
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

HttpServerResponse PushHandler::Handle(const HttpServerRequest& request) {
  if (request.method != "POST") {
    return {.status = 405, .body = "push takes POST\n", .headers = {{"Allow", "POST"}}};
  }
  const std::optional<PushEncoding> encoding = EncodingOf(request.Header("content-type"));
  if (!encoding) {
    return {.status = 415, .headers = {{"Accept-Post", "application/proto, application/json"}}};
  }
  const std::string version = request.Header("connect-protocol-version");
  if (!version.empty() && version != "1") {
    CountRefused(Name(Refusal::kMalformedRequest), 1);
    return ConnectError(400, "invalid_argument",
                        "Connect-Protocol-Version must be 1, not '" + version + "'");
  }
  const std::string content_encoding = request.Header("content-encoding");
  if (!content_encoding.empty() && content_encoding != "identity" && content_encoding != "gzip") {
    CountRefused(Name(Refusal::kMalformedRequest), 1);
    return ConnectError(501, "unimplemented",
                        "Content-Encoding '" + content_encoding + "': this store reads gzip");
  }

  const PushResult push = Read(request, *encoding);
  if (push.refusal != Refusal::kNone) CountRefused(Name(push.refusal), push.refused);
  if (const auto not_stored = Store(push.profiles)) return *not_stored;
  if (push.refusal != Refusal::kNone) return RefusalResponse(push);
  if (*encoding == PushEncoding::kJson) {
    return {.content_type = request.Header("content-type"), .body = "{}"};
  }
  return {.content_type = "application/proto"};
}

}  // namespace flamefleet::store
