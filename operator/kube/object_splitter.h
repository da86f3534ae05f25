// SPDX-License-Identifier: Apache-2.0
// ObjectSplitter: cuts the JSON of a watch or of a list into its objects while it arrives.
//
// It counts brackets outside strings and nothing else; each object is then parsed on its own. So a
// list of any length costs the memory of its largest object.
//
// Thread: one. Bounds: an object, or all that is around the items of a list, of at most
// kMaxObjectBytes (a stored object has at most 1.5 MB; this is the room its JSON may take).
// Errors: kDataLoss text that cannot be such a stream; kResourceExhausted an object over its bound;
// what the handler returns.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace flamefleet {

class ObjectSplitter {
 public:
  static constexpr size_t kMaxObjectBytes = 8 << 20;

  enum class Mode {
    kStream,  // {...} {...} {...}
    kList,    // one object with one array of objects: {"metadata":{...},"items":[{...},{...}]}
  };
  using ObjectHandler = std::function<Status(std::string_view object)>;

  ObjectSplitter(Mode mode, ObjectHandler on_object);

  Status Feed(std::string_view piece);
  // The stream has ended: kDataLoss when it was cut inside an object.
  Status Finish() const;
  // kList, after Finish: the object without its items, {"metadata":{...},"items":[]}.
  const std::string& envelope() const { return envelope_; }

 private:
  Status Take(char c);
  static Status Append(std::string& to, std::string_view text);
  bool BetweenObjects() const;
  bool InObject() const;
  void EnterOrLeave(char c);

  const Mode mode_;
  const int base_;  // depth at which the objects begin
  const ObjectHandler on_object_;
  std::string object_;    // the object in progress
  std::string envelope_;  // kList only
  int depth_ = 0;         // open brackets of either kind
  bool in_items_ = false;
  bool in_string_ = false;
  bool escaped_ = false;
  bool list_ended_ = false;
};

}  // namespace flamefleet
