// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/log_format.h"

namespace flamefleet {
namespace {

constexpr std::array<const char*, 4> kLevelNames = {"debug", "info", "warn", "error"};

std::atomic<LogLevel>& MinimumLevel() {
  static std::atomic<LogLevel> level{LogLevel::kInfo};
  return level;
}

std::atomic<LogFormat>& Format() {
  static std::atomic<LogFormat> format{LogFormat::kJson};
  return format;
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

// In quotes only where they are needed.
std::string Unquoted(std::string text) {
  const auto plain = [](char c) {
    return c > ' ' && c <= '~' && c != '"' && c != '=' && c != '\\';
  };
  const bool is_plain = text.size() > 2 && std::all_of(text.begin() + 1, text.end() - 1, plain);
  return is_plain && text.front() == '"' ? text.substr(1, text.size() - 2) : text;
}

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

std::string FormatLogText(int64_t wall_ns, LogLevel level, std::string_view event,
                          std::initializer_list<LogField> fields) {
  constexpr std::array<const char*, 4> kColumn = {"DEBUG", "INFO ", "WARN ", "ERROR"};
  std::string line =
      FormatRfc3339(wall_ns) + " " + kColumn[static_cast<size_t>(level)] + " " + std::string(event);
  const char* separator = "  ";
  for (const auto& [key, value] : fields) {
    line += separator;
    line += key;
    line += '=';
    line += Unquoted(std::visit(ValueText{}, value.value()));
    separator = " ";
  }
  return line;
}

void SetLogFormat(LogFormat format) {
  Format().store(format, std::memory_order_relaxed);
}

Result<LogFormat> ParseLogFormat(std::string_view name) {
  if (name == "json") return LogFormat::kJson;
  if (name == "text") return LogFormat::kText;
  return InvalidArgumentError("log format '" + std::string(name) + "': want json or text");
}

void Log(LogLevel level, std::string_view event, std::initializer_list<LogField> fields) {
  if (level < MinimumLevel().load(std::memory_order_relaxed)) return;
  const bool text = Format().load(std::memory_order_relaxed) == LogFormat::kText;
  std::string line =
      (text ? FormatLogText : FormatLogLine)(SystemClock().WallNanos(), level, event, fields);
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
