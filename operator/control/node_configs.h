// SPDX-License-Identifier: Apache-2.0
// Which credentials the agent of a node is sent: of the backends that its work goes to, and of
// those for which it says that profiles wait, so that nothing that waits is stranded. Of the other
// backends it hears without credentials and keeps what it may still have for them (hold).
//
// Thread: one at a time.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "base/clock.h"
#include "operator/control/outbox.h"
#include "operator/plan/fleet.h"

namespace flamefleet::control {

// The backends of one node. Bounds: those of its assignment, and kMaxBacklogs of its report.
class BackendUse {
 public:
  // A backend stays in use for so long: the last profiles for it are still made and sent, or are
  // reported as waiting.
  static constexpr int64_t kKeepNs = 300 * kNanosPerSecond;

  // Called for what is now; `now_ns` is monotonic.
  void Refresh(const plan::NodeAssignment& assignment, const plan::NodeReport& report,
               int64_t now_ns);
  // True when it is time for the next Refresh.
  bool IsDue(int64_t now_ns) const;
  std::set<std::string> Names() const;

 private:
  std::map<std::string, int64_t> until_ns_;  // by backend
};

// Configurations that nodes share. Bounds: kMaxKept, then it begins anew; what streams were sent
// is theirs.
class NodeConfigs {
 public:
  static constexpr size_t kMaxKept = 64;

  // `all` with the credentials of the backends in `used` alone.
  ConfigPtr For(const ConfigPtr& all, const std::set<std::string>& used);

 private:
  // By `all` and the names of the backends with credentials.
  std::map<std::pair<ConfigPtr, std::set<std::string>>, ConfigPtr> kept_;
};

}  // namespace flamefleet::control
