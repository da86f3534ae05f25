// SPDX-License-Identifier: Apache-2.0
#include "store/http/push_handler.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/gzip.h"
#include "base/log.h"

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

  std::string unzipped;
  std::string_view body = request.body;
  const std::string content_encoding = request.Header("content-encoding");
  if (content_encoding == "gzip") {
    Result<std::string> result = GunzipBounded(body, limits_.max_request_bytes);
    if (!result.ok()) {
      const bool too_large = result.status().code() == StatusCode::kResourceExhausted;
      const PushResult refused{
          .error = Annotate(result.status(), "request body"),
          .refusal = too_large ? Refusal::kTooLarge : Refusal::kMalformedRequest};
      CountRefused(Name(refused.refusal), 1);
      return RefusalResponse(refused);
    }
    unzipped = *std::move(result);
    body = unzipped;
  } else if (!content_encoding.empty() && content_encoding != "identity") {
    CountRefused(Name(Refusal::kMalformedRequest), 1);
    return ConnectError(501, "unimplemented",
                        "Content-Encoding '" + content_encoding + "': this store reads gzip");
  }

  PushResult push = ReadPush(body, *encoding, limits_, clock_->WallNanos());
  if (push.refusal != Refusal::kNone) CountRefused(Name(push.refusal), push.refused);
  if (!push.profiles.empty()) {
    const Status stored = database_->Append(push.profiles);
    if (!stored.ok()) {
      const std::string message = ErrorMessage(stored);
      switch (stored.code()) {
        case StatusCode::kResourceExhausted:
          CountRefused(kDiskFull, push.profiles.size());
          return RetryLater(ConnectError(507, "resource_exhausted", message), "10");
        case StatusCode::kUnavailable:
          CountRefused(kBusy, push.profiles.size());
          return RetryLater(ConnectError(503, "unavailable", message), "1");
        case StatusCode::kFailedPrecondition:
          CountRefused(kSeriesLimit, push.profiles.size());
          return ConnectError(400, "failed_precondition", message);
        default:
          CountRefused(kInternal, push.profiles.size());
          return ConnectError(500, "internal", message);
      }
    }
  }
  if (push.refusal != Refusal::kNone) return RefusalResponse(push);
  if (*encoding == PushEncoding::kJson) {
    return {.content_type = request.Header("content-type"), .body = "{}"};
  }
  return {.content_type = "application/proto"};
}

}  // namespace flamefleet::store
