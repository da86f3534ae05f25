// SPDX-License-Identifier: Apache-2.0
// Plain scalars by the rules of YAML 1.1 as the Kubernetes tools apply them.
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "operator/render/yaml_reader.h"

namespace flamefleet::render {
namespace {

using nlohmann::json;

struct Word {
  std::string_view text;
  std::optional<bool> value;  // nothing: null
};
constexpr Word kWords[] = {{"", {}},         {"~", {}},        {"null", {}},    {"Null", {}},
                           {"NULL", {}},     {"y", true},      {"Y", true},     {"yes", true},
                           {"Yes", true},    {"YES", true},    {"on", true},    {"On", true},
                           {"ON", true},     {"true", true},   {"True", true},  {"TRUE", true},
                           {"n", false},     {"N", false},     {"no", false},   {"No", false},
                           {"NO", false},    {"off", false},   {"Off", false},  {"OFF", false},
                           {"false", false}, {"False", false}, {"FALSE", false}};

// The digits' base by their prefix: 0x, 0o, 0b, 0 (octal), else decimal. Removes the prefix.
int TakeBase(std::string_view& digits) {
  if (digits.size() < 2 || digits[0] != '0') return 10;
  const char prefix = digits[1];
  const int base = prefix == 'x' || prefix == 'X'   ? 16
                   : prefix == 'o' || prefix == 'O' ? 8
                   : prefix == 'b' || prefix == 'B' ? 2
                                                    : 0;
  digits.remove_prefix(base == 0 ? 1 : 2);
  return base == 0 ? 8 : base;
}

std::optional<json> Integer(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  const int base = TakeBase(text);
  uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number, base);
  if (text.empty() || error != std::errc() || rest != end) return std::nullopt;
  if (!negative) return json(number);
  constexpr uint64_t kLowest = uint64_t{1} << 63;
  if (number > kLowest) return std::nullopt;
  return json(number == kLowest ? INT64_MIN : -static_cast<int64_t>(number));
}

// Digits with an optional point and exponent: what std::from_chars reads, less its "inf" and "nan".
std::optional<json> Decimal(std::string_view text) {
  std::string_view digits = text;
  if (digits.starts_with('-') || digits.starts_with('+')) digits.remove_prefix(1);
  const bool begins =
      !digits.empty() && (digits[0] == '.' || (digits[0] >= '0' && digits[0] <= '9'));
  if (!begins) return std::nullopt;
  double number = 0;
  const char* const end = digits.data() + digits.size();
  const auto [rest, error] = std::from_chars(digits.data(), end, number);
  if (error != std::errc() || rest != end) return std::nullopt;
  return json(text.starts_with('-') ? -number : number);
}

}  // namespace

json ResolvePlainScalar(const std::string& text) {
  for (const Word& word : kWords) {
    if (word.text != text) continue;
    return word.value ? json(*word.value) : json(nullptr);
  }
  constexpr std::string_view kFirstOfNumber = "+-.0123456789";
  if (kFirstOfNumber.find(text[0]) == std::string_view::npos) return text;
  std::string digits;
  for (const char c : text) {
    if (c != '_') digits += c;
  }
  if (const std::optional<json> number = Integer(digits)) return *number;
  if (const std::optional<json> number = Decimal(digits)) return *number;
  return text;
}

}  // namespace flamefleet::render
