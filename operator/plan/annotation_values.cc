// SPDX-License-Identifier: Apache-2.0
#include "operator/plan/annotation_values.h"

#include <algorithm>
#include <charconv>

#include "base/reasons.h"

namespace flamefleet::plan {
namespace {

constexpr size_t kMaxShownValue = 64;  // of a bad value in a message

bool IsLowerAlnum(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

bool IsAlnum(char c) {
  return IsLowerAlnum(c) || (c >= 'A' && c <= 'Z');
}

// A DNS label of at most `max` characters.
bool IsLabel(const std::string& text, size_t max) {
  return !text.empty() && text.size() <= max && IsLowerAlnum(text.front()) &&
         IsLowerAlnum(text.back()) &&
         std::ranges::all_of(text, [](char c) { return IsLowerAlnum(c) || c == '-'; });
}

std::optional<int64_t> Number(const std::string& text, int64_t min, int64_t max) {
  int64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || rest != end || number < min || number > max) return std::nullopt;
  return number;
}

}  // namespace

std::optional<bool> AnnotationValue::Bool() const {
  if (value_ == "true") return true;
  if (value_ == "false") return false;
  return Refuse("\"true\" or \"false\"");
}

std::optional<int32_t> AnnotationValue::PortNumber() const {
  const std::optional<int64_t> number = Number(value_, 1, 65535);
  if (!number) return Refuse("a port number from 1 to 65535");
  return static_cast<int32_t>(*number);
}

std::optional<std::string> AnnotationValue::PortName() const {
  constexpr size_t kMaxPortName = 15;  // as Kubernetes has it
  const bool has_letter = std::ranges::any_of(value_, [](char c) { return c >= 'a' && c <= 'z'; });
  if (!IsLabel(value_, kMaxPortName) || !has_letter) return Refuse("the name of a container port");
  return value_;
}

std::optional<std::string> AnnotationValue::Path() const {
  const bool clean = std::ranges::all_of(
      value_, [](char c) { return c > ' ' && c < 0x7f && c != '?' && c != '#'; });
  if (!value_.starts_with('/') || value_.size() > kMaxPathLength || !clean) {
    return Refuse("a path such as /debug/pprof/heap, without query");
  }
  return value_;
}

std::optional<std::string> AnnotationValue::Parameter() const {
  if (value_.size() > kMaxParameterLength) return Refuse("at most 256 characters");
  return value_;
}

std::optional<std::string> AnnotationValue::ContainerName() const {
  constexpr size_t kMaxLabel = 63;
  if (!IsLabel(value_, kMaxLabel)) return Refuse("the name of a container");
  return value_;
}

std::optional<std::string> AnnotationValue::Name() const {
  const auto allowed = [](char c) {
    return IsAlnum(c) || c == '_' || c == '.' || c == '/' || c == '-';
  };
  if (value_.empty() || value_.size() > kMaxNameLength || !std::ranges::all_of(value_, allowed)) {
    return Refuse("1 to 253 letters, digits, \"_\", \".\", \"/\" or \"-\"");
  }
  return value_;
}

std::optional<int64_t> AnnotationValue::WholeSeconds() const {
  const std::optional<int64_t> number = Number(value_, 1, 3600);
  if (!number) return Refuse("a number of seconds from 1 to 3600");
  return number;
}

std::optional<bool> AnnotationValue::Https() const {
  if (value_ == "http") return false;
  if (value_ == "https") return true;
  return Refuse("\"http\" or \"https\"");
}

std::nullopt_t AnnotationValue::Refuse(std::string_view want) const {
  if (!problem_) {
    std::string shown = value_.substr(0, kMaxShownValue);
    if (shown.size() < value_.size()) shown += "...";
    problem_ = Problem{reasons::kInvalidAnnotation,
                       key_ + ": \"" + shown + "\" is not " + std::string(want)};
  }
  return std::nullopt;
}

}  // namespace flamefleet::plan
