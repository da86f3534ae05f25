// SPDX-License-Identifier: Apache-2.0
// The values that annotations of both families may have. Strict: what is not allowed is a Problem
// that names key, value and what would be allowed, never a guess.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "operator/plan/annotations.h"

namespace flamefleet::plan {

// One annotation. `problem` takes the first bad value.
class AnnotationValue {
 public:
  AnnotationValue(const std::string& key, const std::string& value, std::optional<Problem>& problem)
      : key_(key), value_(value), problem_(problem) {}

  std::optional<bool> Bool() const;                  // "true" or "false"
  std::optional<int32_t> PortNumber() const;         // 1..65535
  std::optional<std::string> PortName() const;       // as Kubernetes names ports
  std::optional<std::string> Path() const;           // begins with "/"; no space, query or fragment
  std::optional<std::string> Parameter() const;      // at most kMaxParameterLength characters
  std::optional<std::string> ContainerName() const;  // a DNS label
  std::optional<std::string> Name() const;  // a service name: letters, digits, "_", ".", "/", "-"
  std::optional<int64_t> WholeSeconds() const;  // 1..3600
  std::optional<bool> Https() const;            // "http" or "https"

  static constexpr size_t kMaxParameterLength = 256;
  static constexpr size_t kMaxPathLength = 512;
  static constexpr size_t kMaxNameLength = 253;

 private:
  std::nullopt_t Refuse(std::string_view want) const;

  const std::string& key_;
  const std::string& value_;
  std::optional<Problem>& problem_;
};

}  // namespace flamefleet::plan
