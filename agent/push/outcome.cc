// SPDX-License-Identifier: Apache-2.0
#include "agent/push/outcome.h"

#include <algorithm>
#include <charconv>

#include "base/reasons.h"
#include "base/utf8.h"

namespace flamefleet::agent {
namespace {

using Kind = Outcome::Kind;

// Of an answer's text that goes into a message.
constexpr size_t kMaxQuotedText = 160;

// Seconds; a date, which servers of this API do not send, counts as nothing.
std::chrono::milliseconds RetryAfter(const HttpResponse& response) {
  const std::string text = response.Header("retry-after");
  int64_t seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error != std::errc() || end != text.data() + text.size() || seconds < 0) return {};
  return std::min(std::chrono::seconds(seconds), kMaxRetryAfter);
}

std::string Describe(const HttpResponse& response) {
  std::string body = ToUtf8(response.body.substr(0, kMaxQuotedText));
  while (!body.empty() && (body.back() == '\n' || body.back() == '\r'))
    body.pop_back();
  return "the backend answered " + std::to_string(response.status) +
         (body.empty() ? "" : ": " + body);
}

bool Says(const HttpResponse& response, std::initializer_list<std::string_view> texts) {
  return std::ranges::any_of(
      texts, [&](std::string_view text) { return response.body.find(text) != std::string::npos; });
}

Outcome Retry(const HttpResponse& response, std::string_view reason) {
  return {.kind = Kind::kRetry,
          .retry_after = RetryAfter(response),
          .back_off = true,
          .reason = reason,
          .message = Describe(response)};
}

// A profile that the server cannot read may be an error of the server as well.
void CountServerError(const PushedProfile& profile, Outcome& outcome) {
  outcome.may_be_profile = true;
  if (profile.server_errors + 1 < kMaxServerErrors) return;
  outcome.kind = Kind::kDrop;
  outcome.reason = reasons::kBackendRefused;
}

Outcome ForThisProfile(Kind kind, std::string_view reason, const HttpResponse& response) {
  return {.kind = kind, .reason = reason, .message = Describe(response)};
}

Outcome JudgeClientError(const HttpResponse& response, const PushedProfile& profile) {
  switch (response.status) {
    case 401:
    case 403:
      return Retry(response, reasons::kBackendUnauthorized);
    case 404:
    case 405:
    case 408:
    case 415:
      return Retry(response, reasons::kBackendUnreachable);
    case 413:
      return ForThisProfile(Kind::kSplit, reasons::kProfileTooLarge, response);
    case 429: {
      Outcome outcome = Retry(response, reasons::kBackendUnreachable);
      if (profile.bytes > kLargeProfile) outcome.kind = Kind::kSplit;
      return outcome;
    }
    case 400:
      if (Says(response, {"ingestion window", "older than what this store keeps"}))
        return ForThisProfile(Kind::kDrop, reasons::kExpired, response);
      if (Says(response, {"payload size exceeds", "samples count limit", "profile_size_limit",
                          "samples_limit"}))
        return ForThisProfile(Kind::kSplit, reasons::kProfileTooLarge, response);
      [[fallthrough]];
    default:
      return ForThisProfile(Kind::kDrop, reasons::kBackendRefused, response);
  }
}

}  // namespace

Outcome JudgeAnswer(const Result<HttpResponse>& answer, const PushedProfile& profile) {
  if (!answer.ok()) {
    return {.kind = Kind::kRetry,
            .back_off = true,
            .reason = reasons::kBackendUnreachable,
            .message = ErrorMessage(answer.status())};
  }
  const HttpResponse& response = *answer;
  if (response.status == 200) {
    if (!response.Header("content-type").starts_with("text/html")) return {};
    Outcome outcome = Retry(response, reasons::kBackendUnreachable);
    outcome.message = "a web page answered the push; is this the endpoint of a Pyroscope?";
    return outcome;
  }
  if (response.status >= 400 && response.status < 500) return JudgeClientError(response, profile);
  if (response.status < 300) return ForThisProfile(Kind::kDrop, reasons::kBackendRefused, response);
  Outcome outcome = Retry(response, reasons::kBackendUnreachable);
  const bool about_server = response.status < 500 || response.status == 501 ||
                            (response.status >= 502 && response.status <= 504);
  if (!about_server) CountServerError(profile, outcome);
  return outcome;
}

Outcome JudgeCall(const Status& answer, const PushedProfile& profile) {
  if (answer.ok()) return {};
  const std::string text = ToUtf8(ErrorMessage(answer).substr(0, kMaxQuotedText));
  Outcome outcome = {.kind = Kind::kRetry,
                     .back_off = true,
                     .reason = reasons::kBackendUnreachable,
                     .message = "the call ended with " + ErrorCodeName(answer) +
                                (text.empty() ? "" : ": " + text)};
  switch (answer.code()) {
    case StatusCode::kUnavailable:
    case StatusCode::kDeadlineExceeded:
    case StatusCode::kCancelled:
    case StatusCode::kAborted:
    case StatusCode::kUnimplemented:
    case StatusCode::kNotFound:
      return outcome;
    case StatusCode::kUnauthenticated:
    case StatusCode::kPermissionDenied:
      outcome.reason = reasons::kBackendUnauthorized;
      return outcome;
    case StatusCode::kResourceExhausted:
      if (text.find("larger than max") != std::string::npos) {
        outcome.kind = Kind::kSplit;
        outcome.back_off = false;
        outcome.reason = reasons::kProfileTooLarge;
      } else if (profile.bytes > kLargeProfile) {
        outcome.kind = Kind::kSplit;
      }
      return outcome;
    case StatusCode::kUnknown:
    case StatusCode::kInternal:
    case StatusCode::kDataLoss:
      CountServerError(profile, outcome);
      return outcome;
    default:
      outcome.kind = Kind::kDrop;
      outcome.back_off = false;
      outcome.reason = reasons::kBackendRefused;
      return outcome;
  }
}

}  // namespace flamefleet::agent
