// SPDX-License-Identifier: Apache-2.0
// The profiles of tests/data/pprof with what they are known to hold, and profiles made up from a
// seed.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "base/pprof/profile.h"

namespace flamefleet::pprof {

struct KnownProfile {
  std::string file;
  std::string sample_types;
  size_t samples;
  std::vector<int64_t> totals;
};

// Every good file of tests/data/pprof.
const std::vector<KnownProfile>& KnownProfiles();

// A file of tests/data/pprof; tests run in the root of the repository.
std::string ReadProfileFile(const std::string& file);

Profile DecodeOrDie(const std::string& data);
std::string EncodeToString(const Profile& profile);

// A valid profile that uses every field, with up to `samples` samples.
void FillRandomProfile(uint32_t seed, size_t samples, Profile* out);

}  // namespace flamefleet::pprof
