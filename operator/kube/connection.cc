// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/connection.h"

#include <utility>

#include "base/base64.h"
#include "base/fd.h"
#include "base/log.h"

namespace flamefleet {
namespace {

constexpr size_t kMaxFileBytes = 1 << 20;

Result<std::string> ReadPem(const std::string& path, const char* what) {
  Result<std::string> content = ReadFile(path, kMaxFileBytes);
  if (!content.ok()) return Annotate(content.status(), std::string("read ") + what);
  return content;
}

int64_t Nanos(std::chrono::nanoseconds duration) {
  return duration.count();
}

}  // namespace

Result<std::unique_ptr<Connection>> Connection::Create(const ClientConfig& config,
                                                       const Clock& clock) {
  std::unique_ptr<Connection> connection(new Connection(config, clock));
  MutexLock lock(&connection->mutex_);
  FF_RETURN_IF_ERROR(connection->ReadFiles());
  return connection;
}

Connection::Connection(const ClientConfig& config, const Clock& clock)
    : config_(config), clock_(clock), token_(config.token, config.token_file, clock) {}

Result<Connection::Access> Connection::Acquire() {
  MutexLock lock(&mutex_);
  const int64_t now_ns = clock_.MonotonicNanos();
  if (now_ns >= read_again_at_ns_) {
    if (const Status read = ReadFiles(); !read.ok()) Keep(read);
  }
  if (config_.exec) FF_RETURN_IF_ERROR(AskPlugin());
  Access access{http_, ""};
  FF_ASSIGN_OR_RETURN(std::string token, token_.Token());
  if (credential_ && !credential_->token.empty()) token = credential_->token;
  if (!token.empty()) {
    access.authorization = "Bearer " + token;
  } else if (!config_.username.empty()) {
    access.authorization = "Basic " + EncodeBase64(config_.username + ":" + config_.password);
  }
  return access;
}

Status Connection::ReadFiles() {
  read_again_at_ns_ = clock_.MonotonicNanos() + Nanos(kReadInterval);
  HttpTlsOptions tls = config_.tls;
  if (!config_.ca_file.empty()) {
    FF_ASSIGN_OR_RETURN(tls.ca_pem, ReadPem(config_.ca_file, "CA"));
  }
  if (!config_.client_cert_file.empty()) {
    FF_ASSIGN_OR_RETURN(tls.client_cert_pem,
                        ReadPem(config_.client_cert_file, "client certificate"));
  }
  if (!config_.client_key_file.empty()) {
    FF_ASSIGN_OR_RETURN(tls.client_key_pem, ReadPem(config_.client_key_file, "client key"));
  }
  if (credential_ && !credential_->client_cert_pem.empty()) {
    tls.client_cert_pem = credential_->client_cert_pem;
    tls.client_key_pem = credential_->client_key_pem;
  }
  return Use(tls);
}

Status Connection::AskPlugin() {
  const bool expired = credential_ && credential_->expires_ns != 0 &&
                       clock_.WallNanos() >= credential_->expires_ns - Nanos(kExpiryMargin);
  if (credential_ && !expired && !refused_) return OkStatus();
  if (clock_.MonotonicNanos() < ask_again_at_ns_) return plugin_;
  Result<ExecCredential> answer = RunExecPlugin(*config_.exec);
  ask_again_at_ns_ = clock_.MonotonicNanos() + Nanos(kMinPluginInterval);
  plugin_ = answer.status();
  if (!answer.ok()) return plugin_;
  credential_ = *std::move(answer);
  refused_ = false;
  return ReadFiles();
}

Status Connection::Use(const HttpTlsOptions& tls) {
  if (http_ && tls == tls_) {
    kept_ = false;
    return OkStatus();
  }
  HttpClientOptions options;
  options.base_url = config_.base_url;
  options.proxy_url = config_.proxy_url;
  options.tls = tls;
  FF_ASSIGN_OR_RETURN(std::unique_ptr<HttpClient> http, HttpClient::Create(options));
  if (http_) Log(LogLevel::kInfo, "certificates of the API server connection changed");
  http_ = std::move(http);  // what runs keeps the old one
  tls_ = tls;
  kept_ = false;
  return OkStatus();
}

void Connection::Keep(const Status& status) {
  if (std::exchange(kept_, true)) return;
  Log(LogLevel::kWarn, "credential files cannot be read again: the last ones stay",
      {{"error", status}});
}

void Connection::Refused() {
  MutexLock lock(&mutex_);
  token_.Refused();
  refused_ = true;
  read_again_at_ns_ = 0;
}

void Connection::Failed() {
  MutexLock lock(&mutex_);
  read_again_at_ns_ = 0;
}

}  // namespace flamefleet
