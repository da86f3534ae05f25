// SPDX-License-Identifier: Apache-2.0
// ObjectEvent: what a controller says about an object: why the pods of a DaemonSet are not created
// stands nowhere else.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <string>

#include "base/status.h"
#include "operator/api/kinds.h"

namespace flamefleet::api {

struct ObjectEvent {
  ObjectMeta meta;     // of the event, without the version, which nobody reads
  std::string object;  // name of the object that it is about, of the event's namespace
  std::string object_uid;
  std::string message;
  int64_t last_ns = 0;  // wall clock, when it was said last

  friend bool operator==(const ObjectEvent&, const ObjectEvent&) = default;
};

// An events.k8s.io/v1 Event. Errors as DecodePod.
Result<ObjectEvent> DecodeObjectEvent(const nlohmann::json& object);

}  // namespace flamefleet::api
