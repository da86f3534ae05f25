// SPDX-License-Identifier: Apache-2.0
// OTLP profiles: from an ExportProfilesServiceRequest in protobuf to profiles that can be stored.
//
// Labels are the attributes of the resource, and of the profile: service.name is service_name;
// k8s.namespace.name, k8s.pod.name, k8s.node.name and k8s.container.name are what agents call them,
// namespace, pod, node and container; the others keep their names. Attributes that are lists, or
// whose names begin with "__" or "pprof.", are no labels. Attributes of a sample are labels of that
// sample, attributes of a mapping its build ID; pprof.profile.drop_frames, keep_frames and doc_url
// are what they were in a pprof. Not kept: scopes, links, time stamps of samples, attributes of
// locations.
//
// The profile type is found as that of /ingest, which takes all contentions for those of a mutex.
// A count of samples with a period of CPU time becomes CPU time, as Pyroscope has it; not where
// the same scope has a profile of CPU time, as what was a pprof does.
//
// Thread: any; pure. Bounds: PushLimits; all profiles together, as pprof, take at most
// max_request_bytes, though many may share a large stack.
// Errors: as ReadPush: the good profiles of a request with bad ones are there, the bad are counted
// in `refused`. A request whose frame or dictionary is damaged gives kMalformedRequest.
// Source: proto/otlp/profiles.proto; what Pyroscope makes of the same request.
#pragma once

#include <cstdint>
#include <string_view>

#include "store/ingest/push.h"

namespace flamefleet::store {

PushResult ReadOtlp(std::string_view body, const PushLimits& limits, int64_t now_ns);

}  // namespace flamefleet::store
