// SPDX-License-Identifier: Apache-2.0
// The version of a day's schema (docs/store.md), PRAGMA user_version of its file.
#pragma once

#include <cstdint>

namespace flamefleet::store {

constexpr int64_t kSchemaVersion = 4;
// A file of it or a later one is turned into one of kSchemaVersion when it is opened to be written.
constexpr int64_t kOldestSchemaVersion = 3;

}  // namespace flamefleet::store
