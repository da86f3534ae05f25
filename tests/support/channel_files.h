// SPDX-License-Identifier: Apache-2.0
// ChannelFiles: what the kubelet gives an agent to talk to the operator, a token and authorities to
// trust, and the certificate of an operator on 127.0.0.1 that goes with them.
//
// Thread: one.
#pragma once

#include <string>

#include "base/clock.h"
#include "base/fd.h"
#include "base/tls/certificate.h"
#include "tests/support/temp_dir.h"

namespace flamefleet {

class ChannelFiles {
 public:
  static constexpr int64_t kLifeNs = 3600 * kNanosPerSecond;

  ChannelFiles() {
    WriteToken("token-1");
    Rotate();
  }

  std::string trust_file() const { return dir_.path() + "/ca.crt"; }
  std::string token_file() const { return dir_.path() + "/token"; }
  const std::string& trusted() const { return trusted_; }
  const CertificatePair& serving() const { return serving_; }

  void WriteToken(const std::string& token) const { Write(token_file(), token + "\n"); }
  // Another authority; `keep`: the one before is trusted too.
  void Rotate(bool keep = false) {
    const auto now_ns = SystemClock().WallNanos();
    Result<CertificatePair> authority = MakeAuthority(now_ns, kLifeNs);
    FF_CHECK(authority.ok());
    Result<CertificatePair> serving =
        IssueServing(*authority, {"127.0.0.1", "localhost"}, now_ns, kLifeNs);
    FF_CHECK(serving.ok());
    serving_ = *std::move(serving);
    trusted_ = authority->certificate + (keep ? trusted_ : "");
    Write(trust_file(), trusted_);
  }

 private:
  static void Write(const std::string& path, const std::string& text) {
    FF_CHECK(WriteFileAtomically(path, text, 0600).ok());
  }

  TempDir dir_;
  std::string trusted_;
  CertificatePair serving_;
};

}  // namespace flamefleet
