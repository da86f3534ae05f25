// SPDX-License-Identifier: Apache-2.0
#include "agent/push/pyroscope_client.h"

#include <map>
#include <string>
#include <utility>

#include "agent/push/push_request.h"
#include "base/http/client.h"
#include "base/http/url.h"

namespace flamefleet::agent {
namespace {

// An answer is empty, or an error text.
constexpr size_t kMaxAnswerBytes = 64 << 10;

class PyroscopeClient final : public PushClient {
 public:
  PyroscopeClient(std::unique_ptr<HttpClient> http, std::string target,
                  std::map<std::string, std::string> headers, std::chrono::milliseconds timeout)
      : http_(std::move(http)),
        target_(std::move(target)),
        headers_(std::move(headers)),
        timeout_(timeout) {}

  Outcome Push(const SpooledProfile& profile, const std::stop_token& stop) const override {
    return JudgeAnswer(http_->Send({.method = "POST",
                                    .target = target_,
                                    .headers = headers_,
                                    .body = profile.body,
                                    .idle_timeout = timeout_,
                                    .total_timeout = timeout_},
                                   stop),
                       {profile.errors, profile.raw_bytes});
  }

 private:
  const std::unique_ptr<HttpClient> http_;
  const std::string target_;
  const std::map<std::string, std::string> headers_;
  const std::chrono::milliseconds timeout_;
};

}  // namespace

Result<std::shared_ptr<const PushClient>> CreatePyroscopeClient(const BackendConfig& config,
                                                                std::chrono::milliseconds timeout) {
  const auto [base_url, prefix] = SplitBaseUrl(config.endpoint);
  FF_ASSIGN_OR_RETURN(
      auto http, HttpClient::Create({.base_url = base_url,
                                     .tls = {.ca_pem = config.ca_pem,
                                             .server_name = config.server_name,
                                             .insecure_skip_verify = config.insecure_skip_verify},
                                     .max_response_bytes = kMaxAnswerBytes}));
  std::map<std::string, std::string> headers = {{"Content-Type", std::string(kPushContentType)}};
  if (!config.tenant_id.empty()) headers["X-Scope-OrgID"] = config.tenant_id;
  if (!config.authorization.empty()) headers["Authorization"] = config.authorization;
  return std::shared_ptr<const PushClient>(std::make_shared<PyroscopeClient>(
      std::move(http), prefix + std::string(kPushPath), std::move(headers), timeout));
}

}  // namespace flamefleet::agent
