// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <nlohmann/json.hpp>

#include "base/clock.h"

namespace flamefleet {
namespace {

constexpr std::array<const char*, 4> kLevelNames = {"debug", "info", "warn", "error"};

std::atomic<LogLevel>& MinimumLevel() {
  static std::atomic<LogLevel> level{LogLevel::kInfo};
  return level;
}

// A JSON string; bytes that are not UTF-8 become U+FFFD.
std::string Quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

struct ValueText {
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(int64_t value) const { return std::to_string(value); }
  std::string operator()(uint64_t value) const { return std::to_string(value); }
  std::string operator()(double value) const { return nlohmann::json(value).dump(); }
  std::string operator()(const std::string& value) const { return Quoted(value); }
};

}  // namespace

std::string FormatLogLine(int64_t wall_ns, LogLevel level, std::string_view event,
                          std::initializer_list<LogField> fields) {
  std::string line = "{\"time\":\"" + FormatRfc3339(wall_ns) + "\",\"level\":\"" +
                     kLevelNames[static_cast<size_t>(level)] +
                     "\",\"event\":" + Quoted(std::string(event));
  for (const auto& [key, value] : fields) {
    line += ',';
    line += Quoted(std::string(key));
    line += ':';
    line += std::visit(ValueText{}, value.value());
  }
  line += '}';
  return line;
}

void Log(LogLevel level, std::string_view event, std::initializer_list<LogField> fields) {
  if (level < MinimumLevel().load(std::memory_order_relaxed)) return;
  std::string line = FormatLogLine(SystemClock().WallNanos(), level, event, fields);
  line += '\n';
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
}

void SetLogLevel(LogLevel level) {
  MinimumLevel().store(level, std::memory_order_relaxed);
}

Result<LogLevel> ParseLogLevel(std::string_view name) {
  for (size_t i = 0; i < kLevelNames.size(); ++i) {
    if (name == kLevelNames[i]) return static_cast<LogLevel>(i);
  }
  return InvalidArgumentError("log level '" + std::string(name) +
                              "': want debug, info, warn or error");
}

}  // namespace flamefleet
