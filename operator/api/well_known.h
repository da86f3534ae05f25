// SPDX-License-Identifier: Apache-2.0
// Names in objects of the API server that more than one of our folders goes by.
#pragma once

namespace flamefleet::api {

// reportingController of the Events that the operator writes.
inline constexpr const char* kReportingController = "flamefleet.dev/operator";

// The label with its own name that the API server puts on each Namespace.
inline constexpr const char* kNamespaceNameLabel = "kubernetes.io/metadata.name";

}  // namespace flamefleet::api
