// SPDX-License-Identifier: Apache-2.0
// Field: one field of a Kubernetes object, by its name in JSON and its number in protobuf, so that
// one decoder reads both encodings.
//
// Source: k8s.io/api/core/v1/generated.proto and
// k8s.io/apimachinery/pkg/apis/meta/v1/generated.proto
#pragma once

#include <cstdint>

namespace flamefleet::api {

struct Field {
  const char* name;
  uint32_t number;
};

}  // namespace flamefleet::api
