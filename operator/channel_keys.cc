// SPDX-License-Identifier: Apache-2.0
#include "operator/channel_keys.h"

#include <utility>

#include "base/log.h"
#include "base/thread.h"

namespace flamefleet {

ChannelKeys::ChannelKeys(security::TlsStore store, control::ControlServer& server, Metrics& metrics)
    : store_(std::move(store)),
      server_(server),
      expiry_(metrics.Gauge("flamefleet_operator_certificate_expiry_timestamp_seconds",
                            "When the certificate that agents are shown ends, Unix time.")) {}

Status ChannelKeys::Begin(const std::stop_token& stop) {
  while (!Sync(stop).ok()) {
    if (WaitForStop(stop, kRetryInterval)) return CancelledError("wait for keys: stopped");
  }
  thread_ = StartThread("keys", [this](const std::stop_token& done) {
    while (!WaitForStop(done, kCheckInterval))
      (void)Sync(done).ok();
  });
  return OkStatus();
}

Status ChannelKeys::Sync(const std::stop_token& stop) {
  Result<CertificatePair> pair = store_.Sync(stop);
  if (!pair.ok()) {
    const std::string error = ErrorMessage(pair.status());
    if (error != logged_) {
      Log(LogLevel::kError, "keys of the control channel cannot be kept in date, trying again",
          {{"error", error}});
    }
    logged_ = error;
    return pair.status();
  }
  logged_.clear();
  const Result<CertificateInfo> info = InspectCertificate(pair->certificate);
  if (info.ok()) {
    expiry_.Set(static_cast<double>(info->not_after_ns) / static_cast<double>(kNanosPerSecond));
  }
  server_.SetCertificate(*std::move(pair));
  return OkStatus();
}

}  // namespace flamefleet
