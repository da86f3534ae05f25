// SPDX-License-Identifier: Apache-2.0
// Profiles that come without a profile type: it is found from their sample types. Private to
// store/ingest. Thread: any; pure.
#pragma once

#include <map>
#include <string>

#include "base/pprof/profile.h"
#include "store/match/labels.h"

namespace flamefleet::pyroscope {
class PushRequest;
}

namespace flamefleet::store {

// process_cpu, wall, memory, mutex, block, goroutines, goroutine, else the name of the last sample
// type. `display_names`, by sample type, tell block from mutex.
std::string ProfileTypeOf(const pprof::Profile& profile,
                          const std::map<std::string, std::string>& display_names);

// Adds a series with this one profile.
void AddSeries(const Labels& labels, const pprof::Profile& profile, pyroscope::PushRequest* push);

}  // namespace flamefleet::store
