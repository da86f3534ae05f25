// SPDX-License-Identifier: Apache-2.0
// Log: one JSON object per line on stderr, {"time","level","event",...fields}.
//
// `event` is a constant text; what varies is a field. Keys are snake_case with the unit as suffix
// (_ns, _bytes) and the same everywhere: namespace, name, kind, uid, generation, node, error. An
// error is logged once, where it is decided. Levels: kError a human must act, kWarn degraded (and
// counted), kInfo lifecycle, kDebug off by default.
//
// Thread: any; one line is one write(2). Errors: none, a line that cannot be written is lost.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "base/status.h"

namespace flamefleet {

enum class LogLevel { kDebug, kInfo, kWarn, kError };

// A value of a field: text, number or boolean. A Status becomes its text.
class LogValue {
 public:
  template <typename T>
  requires std::is_integral_v<T> LogValue(T value)
      : value_(Narrow(value)) {}                             // NOLINT(google-explicit-constructor)
  LogValue(double value) : value_(value) {}                  // NOLINT(google-explicit-constructor)
  LogValue(const char* value) : value_(value) {}             // NOLINT(google-explicit-constructor)
  LogValue(std::string value) : value_(std::move(value)) {}  // NOLINT(google-explicit-constructor)
  LogValue(std::string_view value)
      : value_(std::string(value)) {}  // NOLINT(google-explicit-constructor)
  LogValue(const Status& status)
      : value_(ErrorMessage(status)) {}  // NOLINT(google-explicit-constructor)

  using Variant = std::variant<bool, int64_t, uint64_t, double, std::string>;
  const Variant& value() const { return value_; }

 private:
  template <typename T>
  static Variant Narrow(T value) {
    if constexpr (std::is_same_v<T, bool>)
      return value;
    else if constexpr (std::is_signed_v<T>)
      return static_cast<int64_t>(value);
    else
      return static_cast<uint64_t>(value);
  }
  Variant value_;
};

using LogField = std::pair<std::string_view, LogValue>;

void Log(LogLevel level, std::string_view event, std::initializer_list<LogField> fields = {});

// Lines below this level are not written. Set once by main() before threads start; the default is
// kInfo.
void SetLogLevel(LogLevel level);

// "debug", "info", "warn" or "error"; anything else is kInvalidArgument.
Result<LogLevel> ParseLogLevel(std::string_view name);

// The line that Log writes, without the newline: for tests.
std::string FormatLogLine(int64_t wall_ns, LogLevel level, std::string_view event,
                          std::initializer_list<LogField> fields);

}  // namespace flamefleet
