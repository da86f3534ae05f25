// SPDX-License-Identifier: Apache-2.0
// ServerObject: one object as the API server sent it, in either of the two encodings that we read,
// and what every kind has of it.
//
// Thread: any. Lifetime: a ServerObject is a view, valid during the call that it is given to.
// Errors: none; what is not there is empty.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace flamefleet {

enum class Encoding { kJson, kProtobuf };

struct ServerObject {
  const nlohmann::json* json = nullptr;  // nullptr: it is `message`
  std::string_view message;              // of the kind's own protobuf type
};

struct ObjectHead {
  std::string ns;
  std::string name;
  std::string version;              // metadata.resourceVersion
  bool initial_events_end = false;  // of a bookmark: the list that a watch began with is complete
};

ObjectHead HeadOf(const ServerObject& object);

// The message inside the envelope that the API server puts around each (runtime.Unknown); empty
// when `bytes` are not one. `is_protobuf`: they begin as one.
bool IsProtobuf(std::string_view bytes);
std::string_view OpenEnvelope(std::string_view bytes);

}  // namespace flamefleet
