// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/api_error.h"

#include <charconv>
#include <nlohmann/json.hpp>

namespace flamefleet {
namespace {

using nlohmann::json;

// A body that is no Status is quoted in the message, but never more of it than this.
constexpr size_t kMaxQuotedBytes = 256;

std::string Text(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::optional<std::chrono::seconds> ParseSeconds(const std::string& text) {
  int seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error != std::errc() || end != text.data() + text.size() || seconds < 0) return std::nullopt;
  return std::chrono::seconds(seconds);
}

void ReadDetails(const json& details, ApiError& error) {
  if (!details.is_object()) return;
  if (const auto after = details.find("retryAfterSeconds");
      after != details.end() && after->is_number_integer() && after->get<int64_t>() > 0) {
    error.retry_after = std::chrono::seconds(after->get<int64_t>());
  }
  const auto causes = details.find("causes");
  if (causes == details.end() || !causes->is_array()) return;
  for (const json& cause : *causes) {
    if (!cause.is_object()) continue;
    error.causes.push_back({Text(cause, "field"), Text(cause, "reason"), Text(cause, "message")});
  }
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

ApiError DecodeApiError(const json& status) {
  ApiError error;
  if (!status.is_object()) return error;
  if (const auto code = status.find("code"); code != status.end() && code->is_number_integer()) {
    error.http_status = code->get<int>();
  }
  error.reason = Text(status, "reason");
  error.message = Text(status, "message");
  if (const auto details = status.find("details"); details != status.end()) {
    ReadDetails(*details, error);
  }
  return error;
}

ApiError DecodeApiError(int http_status, const std::string& retry_after, std::string_view body) {
  const json parsed = json::parse(body, nullptr, /*allow_exceptions=*/false);
  ApiError error;
  if (parsed.is_object() && Text(parsed, "kind") == "Status") {
    error = DecodeApiError(parsed);
  } else {
    error.message = "HTTP " + std::to_string(http_status);
    if (!body.empty()) error.message += " \"" + std::string(body.substr(0, kMaxQuotedBytes)) + "\"";
  }
  error.http_status = http_status;
  if (const auto seconds = ParseSeconds(retry_after)) error.retry_after = seconds;
  return error;
}

}  // namespace flamefleet
