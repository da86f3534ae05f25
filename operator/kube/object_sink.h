// SPDX-License-Identifier: Apache-2.0
// ObjectSink: where the objects of one kind go, in the order in which the API server tells them.
//
// A list is told object by object and is in force at once, so that it never exists twice:
// BeginList, an Upsert for each object there is, EndList. A list that breaks off is followed by
// another BeginList, and nothing is deleted for it.
//
// Thread: all calls from the thread of one reflector.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "base/status.h"

namespace flamefleet {

class ObjectSink {
 public:
  virtual ~ObjectSink() = default;
  // A list begins: what is not told until its end is gone.
  virtual void BeginList() = 0;
  // The list is complete: deletes what it did not tell.
  virtual void EndList() = 0;
  // An object of a list, or one that was added or changed; an error when it cannot be read, then
  // what we had of it stays.
  virtual Status Upsert(const nlohmann::json& object) = 0;
  virtual void Delete(const std::string& ns, const std::string& name) = 0;

  // True when UpsertMessage works: then the kind is asked for in protobuf.
  virtual bool TakesMessages() const { return false; }
  // Upsert, of the kind's protobuf message.
  virtual Status UpsertMessage(std::string_view /*message*/) {
    return UnimplementedError("read an object: this kind is read as JSON");
  }
};

}  // namespace flamefleet
