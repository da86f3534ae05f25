// SPDX-License-Identifier: Apache-2.0
// ListParser, WatchParser: the objects of a list and the events of a watch while they arrive, in
// either encoding.
//
// Thread: one. Bounds: one object is in memory, see ObjectSplitter and MessageListSplitter.
// Errors: those of the splitters; kDataLoss an event that is none; what the handler returns.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "operator/kube/server_object.h"

namespace flamefleet {

class ListParser {
 public:
  // The status of an object that the handler cannot use is its own affair: an error ends the list.
  using Handler = std::function<Status(const ServerObject& object)>;

  static std::unique_ptr<ListParser> Create(Encoding encoding, Handler on_object);
  virtual ~ListParser() = default;

  virtual Status Feed(std::string_view piece) = 0;
  // The answer has ended: kDataLoss when it was cut.
  virtual Status Finish() = 0;

  // After Finish.
  const std::string& version() const { return version_; }
  const std::string& continue_token() const { return continue_token_; }

 protected:
  std::string version_;
  std::string continue_token_;
};

struct WatchEvent {
  std::string type;  // "ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"
  ServerObject object;
};

class WatchParser {
 public:
  using Handler = std::function<Status(const WatchEvent& event)>;

  static std::unique_ptr<WatchParser> Create(Encoding encoding, Handler on_event);
  virtual ~WatchParser() = default;

  virtual Status Feed(std::string_view piece) = 0;
};

}  // namespace flamefleet
