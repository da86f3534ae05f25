// SPDX-License-Identifier: Apache-2.0
#include "agent/push/push_client.h"

#include <utility>

#include "agent/push/push_request.h"

namespace flamefleet::agent {
namespace {

// An answer is empty, or an error text.
constexpr size_t kMaxAnswerBytes = 64 << 10;

// "http://host:4040/path/" as base URL and path.
std::pair<std::string, std::string> SplitEndpoint(const std::string& endpoint) {
  const size_t scheme_end = endpoint.find("://");
  const size_t path = endpoint.find('/', scheme_end == std::string::npos ? 0 : scheme_end + 3);
  if (path == std::string::npos) return {endpoint, ""};
  std::string prefix = endpoint.substr(path);
  while (prefix.ends_with('/'))
    prefix.pop_back();
  return {endpoint.substr(0, path), prefix};
}

}  // namespace

Result<std::shared_ptr<const PushClient>> PushClient::Create(const BackendConfig& config,
                                                             std::chrono::milliseconds timeout) {
  const auto [base_url, prefix] = SplitEndpoint(config.endpoint);
  FF_ASSIGN_OR_RETURN(
      auto http, HttpClient::Create({.base_url = base_url,
                                     .tls = {.ca_pem = config.ca_pem,
                                             .server_name = config.server_name,
                                             .insecure_skip_verify = config.insecure_skip_verify},
                                     .max_response_bytes = kMaxAnswerBytes}));
  std::map<std::string, std::string> headers = {{"Content-Type", std::string(kPushContentType)}};
  if (!config.tenant_id.empty()) headers["X-Scope-OrgID"] = config.tenant_id;
  if (!config.authorization.empty()) headers["Authorization"] = config.authorization;
  return std::shared_ptr<const PushClient>(new PushClient(
      std::move(http), prefix + std::string(kPushPath), std::move(headers), timeout));
}

Result<HttpResponse> PushClient::Send(const std::string& body, const std::stop_token& stop) const {
  return http_->Send({.method = "POST",
                      .target = target_,
                      .headers = headers_,
                      .body = body,
                      .idle_timeout = timeout_,
                      .total_timeout = timeout_},
                     stop);
}

}  // namespace flamefleet::agent
