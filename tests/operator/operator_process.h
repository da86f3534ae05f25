// SPDX-License-Identifier: Apache-2.0
// OperatorProcess: the operator's binary, started by a test, on ports of loopback.
//
// Thread: one. Errors: a binary that cannot be started fails the test program.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "base/http/client.h"
#include "tests/operator/apiserver_fixture.h"

namespace flamefleet {

inline constexpr const char* kOperatorNamespace = "flamefleet-system";

// A port that nobody uses now.
uint16_t FreePort();

class OperatorProcess {
 public:
  // `flags` come after those that every test needs. The ports stay those of this object when it is
  // started again.
  explicit OperatorProcess(std::string kubeconfig, std::vector<std::string> flags = {});
  // Asks it to end, so that it gives its lease back; kills it when it does not.
  ~OperatorProcess();
  OperatorProcess(const OperatorProcess&) = delete;
  OperatorProcess& operator=(const OperatorProcess&) = delete;

  void Start();
  // Its wait status.
  int End(int signal);
  // Waits until it has ended by itself; its wait status.
  int Wait();
  void Signal(int signal) const;
  bool running() const { return pid_ > 0; }

  // Of the port that everybody may reach, and of the one on loopback.
  HttpResponse Http(const std::string& path) const { return Http(http_port_, path); }
  HttpResponse Debug(const std::string& path) const { return Http(debug_port_, path); }
  // -1: there is no such series.
  double Metric(const std::string& series) const;
  // Serves agents, and writes.
  bool Leads() const;
  // Has every object of our kinds reconciled until none of that has anything to write or to wait
  // for; false when it does not end.
  bool Settles(const ApiServer& server) const;
  std::string agents_address() const { return "127.0.0.1:" + std::to_string(agents_port_); }

 private:
  static HttpResponse Http(uint16_t port, const std::string& path);

  const std::string kubeconfig_;
  const std::vector<std::string> flags_;
  const uint16_t http_port_ = FreePort();
  const uint16_t debug_port_ = FreePort();
  const uint16_t agents_port_ = FreePort();
  std::atomic<pid_t> pid_ = -1;  // the relay of a test signals from its own thread
};

}  // namespace flamefleet
