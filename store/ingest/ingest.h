// SPDX-License-Identifier: Apache-2.0
// POST /ingest, the older push API of Pyroscope that pyroscope-go and @pyroscope/nodejs send: from
// a request to profiles that can be stored. The parameters are in the query:
//
//   name        SERVICE{label=value,...}; labels that begin with "__" are dropped
//   from        the time of a profile that says none, in s, ms, us or ns
//   spyName     becomes the label pyroscope_spy
//   format      pprof: the body is one. lines: a stack "root;...;leaf" per line. folded (or none):
//               the same with a count behind it; both are CPU at sampleRate (100 per second)
//
// or the body is multipart/form-data with a part `profile`, a pprof, and perhaps a part
// `sample_type_config`, a JSON object whose "display-name"s tell mutex from block.
//
// The profile type is found from the sample types: process_cpu, wall, memory, mutex, block,
// goroutines, goroutine, else the name of the last one.
//
// Thread: any; pure. Bounds: PushLimits, kMaxParts. Errors: as ReadPush; kMalformedRequest with a
// message. A body without any stack is taken, and gives nothing.
// Source: what Pyroscope answers on the wire; the requests of the clients named above.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/pprof/profile.h"
#include "base/status.h"
#include "store/ingest/push.h"

namespace flamefleet::store {

constexpr size_t kMaxParts = 16;

struct IngestRequest {
  std::string name;
  std::string from;
  std::string spy_name;
  std::string format;
  std::string sample_rate;
  std::string content_type;
  std::string_view body;
};

// kInvalidArgument: there is no service, or a name has characters that it must not have. Other
// labels than service_name only.
Result<Labels> ParseIngestName(const std::string& name);

PushResult ReadIngest(const IngestRequest& request, const PushLimits& limits, int64_t now_ns);

}  // namespace flamefleet::store
