// SPDX-License-Identifier: Apache-2.0
#include "agent/scrape/scrape_job.h"

#include <algorithm>
#include <array>
#include <functional>

#include "base/http/url.h"
#include "base/reasons.h"

namespace flamefleet::agent {
namespace {

// Of an answer's body that goes into a message.
constexpr size_t kMaxQuotedBody = 120;

// Printable ASCII: what a pod says goes into logs and status.
std::string Quote(const std::string& body) {
  std::string text = body.substr(0, kMaxQuotedBody);
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r'))
    text.pop_back();
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return text;
}

}  // namespace

bool SameEndpoint(const ScrapeJob& a, const ScrapeJob& b) {
  return a.key == b.key && a.address == b.address && a.port == b.port && a.path == b.path &&
         a.parameters == b.parameters && a.tls == b.tls;
}

std::optional<std::string> FallbackPath(const ScrapeJob& job) {
  constexpr std::string_view kAllocs = "/allocs";
  if (job.key.type != ProfileType::kMemory || !job.path.ends_with(kAllocs)) return std::nullopt;
  return job.path.substr(0, job.path.size() - kAllocs.size()) + "/heap";
}

bool ServesDeltas(const ScrapeJob& job) {
  return job.path.substr(job.path.rfind('/') + 1).starts_with("delta_");
}

std::chrono::seconds CpuSeconds(const ScrapeJob& job) {
  using std::chrono::seconds;
  return std::max(std::chrono::duration_cast<seconds>(job.interval) - seconds(1), seconds(1));
}

FetchOptions FetchOptionsOf(const ScrapeJob& job, bool at_fallback) {
  std::map<std::string, std::string> parameters = job.parameters;
  std::chrono::milliseconds timeout = job.timeout;
  if (job.key.type == ProfileType::kCpu) {
    parameters["seconds"] = std::to_string(CpuSeconds(job).count());
    timeout += CpuSeconds(job);
  }
  std::string target = at_fallback ? *FallbackPath(job) : job.path;
  char separator = target.find('?') == std::string::npos ? '?' : '&';
  for (const auto& [name, value] : parameters) {
    target += separator + UrlEncode(name) + "=" + UrlEncode(value);
    separator = '&';
  }
  return {.address = job.address,
          .port = job.port,
          .target = std::move(target),
          .timeout = timeout,
          .tls = job.tls};
}

std::optional<std::string> RedirectTarget(const FetchOptions& asked, const FetchResponse& answer) {
  constexpr std::array kRedirects = {301, 302, 303, 307, 308};
  if (std::ranges::find(kRedirects, answer.status) == kRedirects.end()) return std::nullopt;
  std::string target = answer.location;
  const bool is_v6 = asked.address.find(':') != std::string::npos;
  const std::string host = std::string(asked.tls ? "https://" : "http://") +
                           (is_v6 ? "[" + asked.address + "]" : asked.address) + ":" +
                           std::to_string(asked.port);
  if (target.starts_with(host + "/")) target.erase(0, host.size());
  const bool is_path = target.starts_with('/') && !target.starts_with("//");
  const bool is_plain = std::ranges::all_of(target, [](char c) { return c > ' ' && c <= '~'; });
  if (!is_path || !is_plain) return std::nullopt;
  return target.substr(0, target.find('#'));
}

std::chrono::milliseconds FirstDelay(const ScrapeJob& job) {
  const size_t hash = std::hash<std::string>{}(job.key.pod_uid + "/" + job.key.container + "/" +
                                               std::string(MetricName(job.key.type)));
  const auto interval = static_cast<size_t>(std::max<int64_t>(job.interval.count(), 1));
  return std::chrono::milliseconds(hash % interval);
}

ScrapeFailure FailureOfFetch(const Status& status) {
  const std::string message = ErrorMessage(status);
  switch (status.code()) {
    case StatusCode::kFailedPrecondition:
      return {reasons::kConnectionRefused, message};
    case StatusCode::kPermissionDenied:
      return {reasons::kCertificateNotTrusted, message};
    case StatusCode::kDeadlineExceeded:
      return {reasons::kTimeout, message};
    case StatusCode::kResourceExhausted:
      return {reasons::kProfileTooLarge, message};
    case StatusCode::kInvalidArgument:
      return {reasons::kNotAProfile, message};
    default:
      return {reasons::kConnectionFailed, message};
  }
}

ScrapeFailure FailureOfAnswer(const FetchResponse& response) {
  std::string message = "the endpoint answered " + std::to_string(response.status);
  const std::string body = Quote(response.body);
  if (!body.empty()) message += ": " + body;
  if (body.find("already in use") != std::string::npos) return {reasons::kProfilingInUse, message};
  if (response.status / 100 == 3) message += " (redirects are followed on the same host only)";
  const bool is_absent = response.status == 404;
  if (is_absent) message += " (it is asked again every 5 minutes)";
  return {reasons::kHTTPError, message, is_absent};
}

std::chrono::milliseconds RestAfter(const ScrapeFailure& failure, int failures,
                                    std::chrono::milliseconds interval) {
  constexpr int kMostDoublings = 10;
  if (failure.is_absent) return kMaxRest;
  if (failure.reason != reasons::kProfilingInUse) return std::chrono::milliseconds(0);
  return std::min<std::chrono::milliseconds>(
      interval * (int64_t{1} << std::min(failures - 1, kMostDoublings)), kMaxRest);
}

ScrapeFailure FailureOfDecode(const Status& status) {
  const bool too_large = status.code() == StatusCode::kResourceExhausted;
  return {too_large ? reasons::kProfileTooLarge : reasons::kNotAProfile, ErrorMessage(status)};
}

}  // namespace flamefleet::agent
