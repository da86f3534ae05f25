// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/api_error.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "base/utf8.h"
#include "operator/api/json_reader.h"
#include "operator/api/message_reader.h"

namespace flamefleet {
namespace {

using nlohmann::json;

// A body that is no Status is quoted in the message, but never more of it than this.
constexpr size_t kMaxQuotedBytes = 256;

std::chrono::seconds Bounded(int64_t seconds) {
  return std::min<std::chrono::seconds>(std::chrono::seconds(seconds), ApiError::kMaxRetryAfter);
}

std::optional<std::chrono::seconds> ParseSeconds(const std::string& text) {
  int seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error != std::errc() || end != text.data() + text.size() || seconds < 0) return std::nullopt;
  return Bounded(seconds);
}

// A body that is no Status but says something.
ApiError Quote(int http_status, std::string_view body) {
  ApiError error;
  error.message = "HTTP " + std::to_string(http_status);
  if (!body.empty()) {
    error.message += " \"" + ToUtf8(body.substr(0, kMaxQuotedBytes)) + "\"";
  }
  return error;
}

// `status` is an ObjectReader or a MessageReader. The rest is read before the details: they are
// what a server may send in another shape.
template <typename Reader>
ApiError ReadStatus(const Reader& status) {
  ApiError error;
  status.Integer({"code", 6}, error.http_status);
  status.String({"reason", 4}, error.reason);
  status.String({"message", 3}, error.message);
  status.Object({"details", 5}, [&](const auto& details) {
    int64_t after = 0;
    details.Integer({"retryAfterSeconds", 5}, after);
    if (after > 0) error.retry_after = Bounded(after);
    details.Objects({"causes", 4}, [&](const auto& in) {
      ApiErrorCause& cause = error.causes.emplace_back();
      in.String({"field", 3}, cause.field);
      in.String({"reason", 1}, cause.reason);
      in.String({"message", 2}, cause.message);
    });
  });
  return error;
}

}  // namespace

bool ApiError::IsExpired() const {
  return http_status == 410 || reason == "Expired" || reason == "Gone";
}

Status ApiError::ToStatus(const std::string& operation) const {
  const std::string text =
      operation + ": " + (message.empty() ? "HTTP " + std::to_string(http_status) : message);
  switch (http_status) {
    case 400:
    case 413:
    case 415:
    case 422:
      return InvalidArgumentError(text);
    case 403:
      return PermissionDeniedError(text);
    case 404:
      return NotFoundError(text);
    case 409:
      return reason == "AlreadyExists" ? AlreadyExistsError(text) : AbortedError(text);
    case 410:
      return AbortedError(text);
    case 429:
      return ResourceExhaustedError(text);
    case 504:
      return DeadlineExceededError(text);
    default:
      break;
  }
  if (http_status == 401 || http_status >= 500) return UnavailableError(text);
  return InternalError(text);
}

bool ApiError::IsTooLargeVersion() const {
  return std::ranges::any_of(
      causes, [](const ApiErrorCause& cause) { return cause.reason == "ResourceVersionTooLarge"; });
}

ApiError DecodeApiError(const ServerObject& status) {
  if (status.json != nullptr) return ReadStatus(api::ObjectReader(*status.json, "Status"));
  return ReadStatus(api::MessageReader(status.message, "Status"));
}

ApiError DecodeApiError(int http_status, const std::string& retry_after, std::string_view body) {
  const bool protobuf = IsProtobuf(body);
  const json parsed = protobuf ? json() : json::parse(body, nullptr, /*allow_exceptions=*/false);
  ApiError error;
  if (protobuf) {
    error = DecodeApiError(ServerObject{nullptr, OpenEnvelope(body)});
  } else if (parsed.is_object() && parsed.value("kind", json()) == "Status") {
    error = DecodeApiError(ServerObject{&parsed, {}});
  } else {
    error = Quote(http_status, body);
  }
  error.http_status = http_status;
  if (const auto seconds = ParseSeconds(retry_after)) error.retry_after = seconds;
  return error;
}

}  // namespace flamefleet
