// SPDX-License-Identifier: Apache-2.0
// OwnedFields: which fields of a live object are ours, by the server's own book-keeping
// (metadata.managedFields). When anyone else changes or removes a field that we applied, the server
// takes it out of our entry; so an entry that is unchanged means that our intent is still in force.
//
// Thread: any. Errors: none; an object without an entry of ours has empty text.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace flamefleet {

// The field managers of our two kinds of writes. Never renamed: a field whose manager is gone
// stays.
inline constexpr const char* kFieldManager = "flamefleet-operator";
inline constexpr const char* kStatusFieldManager = "flamefleet-operator-status";

struct OwnedFields {
  std::string version;  // resourceVersion of the object this was read from
  size_t spec = 0;      // hash of the fields applied by kFieldManager; 0: none
  size_t status = 0;    // hash of the fields applied by kStatusFieldManager to the status; 0: none

  friend bool operator==(const OwnedFields&, const OwnedFields&) = default;
};

OwnedFields ReadOwnedFields(const nlohmann::json& object);

}  // namespace flamefleet
