// SPDX-License-Identifier: Apache-2.0
// OTLP over HTTP: which requests can be read, and how they are answered.
//
// Thread: any.
// Source: https://opentelemetry.io/docs/specs/otlp/#otlphttp; what the OpenTelemetry collector
// answers.
#pragma once

#include <cstddef>
#include <optional>

#include "base/http/server.h"
#include "base/status.h"

namespace flamefleet::store {

inline constexpr char kOtlpPath[] = "/v1development/profiles";
inline constexpr char kOtlpContentType[] = "application/x-protobuf";
// The development version of the profiles; a request without it is one of version 1.
inline constexpr char kOtlpVersionHeader[] = "otlp-profiles-development-version";

// What is wrong with method, type, version or compression; nothing when it can be read.
std::optional<HttpServerResponse> RefuseOtlp(const HttpServerRequest& request);
// 200; `error` says why `refused` profiles are not stored.
HttpServerResponse OtlpAnswer(size_t refused, const Status& error);
HttpServerResponse OtlpError(int status, const Status& error);

}  // namespace flamefleet::store
