// SPDX-License-Identifier: Apache-2.0
// TokenSource: the bearer token of a request, read again because the kubelet rotates it.
//
// Thread: any; locked inside. Bounds: the file is read at most once per kTokenReadInterval, plus
// once after each refusal. Errors: a file that cannot be read keeps the token we have; without one
// the error of the read is returned.
#pragma once

#include <chrono>
#include <string>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"

namespace flamefleet {

class TokenSource {
 public:
  static constexpr std::chrono::seconds kTokenReadInterval{60};

  // `file` wins over `token`; with neither, Token() is empty.
  TokenSource(std::string token, std::string file, const Clock& clock);

  Result<std::string> Token();
  // The server answered 401: the next Token() reads the file.
  void Refused();

 private:
  const std::string file_;
  const Clock& clock_;
  Mutex mutex_;
  std::string token_ FF_GUARDED_BY(mutex_);
  int64_t read_again_at_ns_ FF_GUARDED_BY(mutex_) = 0;  // monotonic
};

}  // namespace flamefleet
