// SPDX-License-Identifier: Apache-2.0
// ObjectSink: where the objects of one kind go, in the order in which the API server tells them.
//
// Thread: all calls from the thread of one reflector.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/status.h"

namespace flamefleet {

class ObjectSink {
 public:
  virtual ~ObjectSink() = default;
  // One object of a list in progress; an error when it cannot be read.
  virtual Status Collect(const nlohmann::json& object) = 0;
  // The list is complete: what was collected since the last Replace or Abandon is all there is.
  virtual void Replace() = 0;
  // The list failed: forget what was collected.
  virtual void Abandon() = 0;
  // An object was added or changed; an error when it cannot be read, then what we had stays.
  virtual Status Upsert(const nlohmann::json& object) = 0;
  virtual void Delete(const std::string& ns, const std::string& name) = 0;
};

}  // namespace flamefleet
