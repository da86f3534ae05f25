// SPDX-License-Identifier: Apache-2.0
#include "agent/push/outcome.h"

#include <algorithm>
#include <charconv>

namespace flamefleet::agent {
namespace {

// Of an answer's body that goes into a message.
constexpr size_t kMaxQuotedBody = 160;

// Seconds; a date, which servers of this API do not send, counts as nothing.
std::chrono::milliseconds RetryAfter(const HttpResponse& response) {
  const std::string text = response.Header("retry-after");
  int64_t seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error != std::errc() || end != text.data() + text.size() || seconds < 0) return {};
  return std::min(std::chrono::seconds(seconds), kMaxRetryAfter);
}

std::string Describe(const HttpResponse& response) {
  std::string body = response.body.substr(0, kMaxQuotedBody);
  while (!body.empty() && (body.back() == '\n' || body.back() == '\r'))
    body.pop_back();
  return "the backend answered " + std::to_string(response.status) +
         (body.empty() ? "" : ": " + body);
}

}  // namespace

Outcome JudgeAnswer(const Result<HttpResponse>& answer, int server_errors) {
  using Kind = Outcome::Kind;
  if (!answer.ok()) return {.kind = Kind::kRetry, .message = ErrorMessage(answer.status())};
  if (answer->status == 200) return {.kind = Kind::kDelivered};
  Outcome outcome = {.message = Describe(*answer)};
  switch (answer->status) {
    case 408:
    case 429:
    case 502:
    case 503:
    case 504:
      outcome.kind = Kind::kRetry;
      outcome.retry_after = RetryAfter(*answer);
      return outcome;
    default:
      outcome.server_error = answer->status >= 500;
      outcome.kind =
          outcome.server_error && server_errors + 1 < kMaxServerErrors ? Kind::kRetry : Kind::kDrop;
      return outcome;
  }
}

}  // namespace flamefleet::agent
