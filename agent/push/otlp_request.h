// SPDX-License-Identifier: Apache-2.0
// A push of the spool as a request of OTLP profiles: a profile for each sample type, in one scope
// that has the name of the profile type (process_cpu, mutex), which OTLP knows in no other way. A
// count of samples is left out beside its CPU time, for receivers make CPU time of it as well.
//
// Labels are attributes of the resource, under OpenTelemetry's names for a service, a namespace, a
// pod, a node and a container; labels of samples are attributes of samples. All texts of attributes
// are in the attributes themselves, since not every receiver knows those of the dictionary.
//
// Thread: any; pure. Source: proto/otlp/profiles.proto
#pragma once

#include <optional>
#include <string>

namespace opentelemetry::proto::collector::profiles::v1development {
class ExportProfilesServiceRequest;
}

namespace flamefleet::agent {

// Of the form that the spool keeps; empty when it is damaged.
std::optional<
    opentelemetry::proto::collector::profiles::v1development::ExportProfilesServiceRequest>
ToOtlp(const std::string& body);

}  // namespace flamefleet::agent
