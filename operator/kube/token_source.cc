// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/token_source.h"

#include "base/fd.h"

namespace flamefleet {
namespace {

constexpr size_t kMaxTokenBytes = 64 << 10;

}  // namespace

TokenSource::TokenSource(std::string token, std::string file, const Clock& clock)
    : file_(std::move(file)), clock_(clock), token_(std::move(token)) {}

Result<std::string> TokenSource::Token() {
  MutexLock lock(&mutex_);
  if (file_.empty() || clock_.MonotonicNanos() < read_again_at_ns_) return token_;
  Result<std::string> content = ReadFile(file_, kMaxTokenBytes);
  if (content.ok()) {
    token_ = *content;
    while (!token_.empty() && std::isspace(static_cast<unsigned char>(token_.back())) != 0) {
      token_.pop_back();
    }
  } else if (token_.empty()) {
    return Annotate(content.status(), "read the API server token");
  }
  read_again_at_ns_ =
      clock_.MonotonicNanos() + std::chrono::nanoseconds(kTokenReadInterval).count();
  return token_;
}

void TokenSource::Refused() {
  MutexLock lock(&mutex_);
  read_again_at_ns_ = 0;
}

}  // namespace flamefleet
