// SPDX-License-Identifier: Apache-2.0
// FaultProxy: an API server that a test can make answer wrongly. It ends TLS, reads the request,
// and lets it through to the real server or does to it what the test says.
//
// Thread: any; one thread per connection inside. Bounds: a few connections, each of one request.
// Errors: a port or a certificate that cannot be used ends the test program.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/http/client.h"

namespace flamefleet {

class FaultProxy {
 public:
  // What happens to one request.
  struct Fault {
    enum class Kind {
      kPass,    // it goes to the server, its answer comes back
      kAnswer,  // `answer` comes back, then the connection is closed
      kHang,    // nothing comes back, and the connection stays open
    };
    Kind kind = Kind::kPass;
    std::string target;      // kPass: sent instead of the request's own, unless empty
    size_t cut_after = 0;    // kPass: the connection is cut after so many bytes of answer; 0: never
    std::string answer;      // kAnswer: a whole HTTP answer
    bool stay_open = false;  // kAnswer: the connection is not closed
  };
  using Script = std::function<Fault(const std::string& target)>;

  // A PEM certificate and its key.
  struct Certificate {
    std::string cert_pem;
    std::string key_pem;
  };

  // In front of the server on this port of 127.0.0.1. A request without a token of its own is
  // forwarded with the client certificate of `upstream`.
  FaultProxy(uint16_t port, const HttpTlsOptions& upstream, const Certificate& own);
  ~FaultProxy();
  FaultProxy(const FaultProxy&) = delete;
  FaultProxy& operator=(const FaultProxy&) = delete;

  uint16_t port() const;
  // From the next request on; none: all pass.
  void SetScript(Script script);
  // Of connections from now on.
  void SetCertificate(const Certificate& own);
  // Cuts every connection, now.
  void CutAll();
  // Path and query of every request so far.
  std::vector<std::string> Targets() const;

  // An HTTP answer with these headers ("Name: value\r\n" each) and body.
  static std::string Answer(int status, const std::string& headers, const std::string& body);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace flamefleet
