// SPDX-License-Identifier: Apache-2.0
// Connection: the HTTP client of the API server and what a request proves itself with, kept fresh
// while we run: token, CA and client certificate files are read again, because they are rotated; a
// credential plugin is run again when its answer expires.
//
// Thread: any; locked inside; Acquire may read files or run the plugin.
// Bounds: files are read at most once per kReadInterval, plus once after each refusal or failure.
//         The plugin runs once per expiry and refusal, but not within kMinPluginInterval of its
//         last run.
// Errors: what cannot be read while we run keeps what we have, and is logged once; without anything
//         the error of the read or of the plugin.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/http/client.h"
#include "base/mutex.h"
#include "base/status.h"
#include "operator/kube/client_config.h"
#include "operator/kube/token_source.h"

namespace flamefleet {

class Connection {
 public:
  static constexpr std::chrono::seconds kReadInterval{60};
  static constexpr std::chrono::seconds kMinPluginInterval{1};
  // A credential is asked for again so long before it expires.
  static constexpr std::chrono::seconds kExpiryMargin{10};

  static Result<std::unique_ptr<Connection>> Create(const ClientConfig& config, const Clock& clock);

  struct Access {
    std::shared_ptr<HttpClient> http;
    std::string authorization;  // header; empty: none
  };
  Result<Access> Acquire();

  // The server answered 401.
  void Refused();
  // There was no answer; the certificate of either side may have been changed.
  void Failed();

 private:
  Connection(const ClientConfig& config, const Clock& clock);
  Status ReadFiles() FF_REQUIRES(mutex_);
  Status AskPlugin() FF_REQUIRES(mutex_);
  // Makes http_ anew if `tls` is not what it has.
  Status Use(const HttpTlsOptions& tls) FF_REQUIRES(mutex_);
  void Keep(const Status& status) FF_REQUIRES(mutex_);

  const ClientConfig config_;
  const Clock& clock_;
  Mutex mutex_;
  TokenSource token_ FF_GUARDED_BY(mutex_);
  HttpTlsOptions tls_ FF_GUARDED_BY(mutex_);  // of http_
  std::shared_ptr<HttpClient> http_ FF_GUARDED_BY(mutex_);
  std::optional<ExecCredential> credential_ FF_GUARDED_BY(mutex_);  // the plugin's last
  bool refused_ FF_GUARDED_BY(mutex_) = false;                      // the server did not take it
  Status plugin_ FF_GUARDED_BY(mutex_);                             // how it ended the last time
  int64_t read_again_at_ns_ FF_GUARDED_BY(mutex_) = 0;              // monotonic
  int64_t ask_again_at_ns_ FF_GUARDED_BY(mutex_) = 0;               // monotonic; not before it
  bool kept_ FF_GUARDED_BY(mutex_) = false;  // the last read failed, and was logged
};

}  // namespace flamefleet
