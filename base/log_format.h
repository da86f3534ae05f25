// SPDX-License-Identifier: Apache-2.0
// LogFormat: how lines of base/log.h look: JSON for machines (the default), or text for people:
//   2026-11-29T17:05:00.123Z INFO  leading  lease=flamefleet-operator transitions=3
//
// Thread: SetLogFormat once by main() before threads start. Errors: kInvalidArgument another name.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "base/log.h"

namespace flamefleet {

enum class LogFormat { kJson, kText };

void SetLogFormat(LogFormat format);

// "json" or "text".
Result<LogFormat> ParseLogFormat(std::string_view name);

// The line that Log writes as text, without the newline: for tests. A value with other characters
// than visible ones stands in quotes, as in JSON, so that a line is a line.
std::string FormatLogText(int64_t wall_ns, LogLevel level, std::string_view event,
                          std::initializer_list<LogField> fields);

}  // namespace flamefleet
