// SPDX-License-Identifier: Apache-2.0
// Pack: the values of many profiles of one series, without their stacks: how a day keeps them.
//
// A stack is its number in the symbols of the series (Day); what a profile is besides its samples
// is its head, which nearly always is that of the profile before.
//
// clang-format off
//   pack     = zstd( width heads profiles divisors stacks values )
//   heads    = count { length pprof }                        a pprof without samples, see HeadOf
//   profiles = count { time has_time duration head stacks }  time: difference to the one before
//   divisors = { divisor }                                   per sample type; divides all its values
//   stacks   = { number }                                    per profile, ascending; differences
//   values   = { value / divisor }                           per profile, sample type and stack
// clang-format on
//
// All numbers are varints, zigzag where they can be negative.
//
// Thread: any; pure. Bounds: kMaxPackBytes, kMaxPackProfiles. Errors: kDataLoss for bytes that are
// no pack.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/pprof/profile.h"
#include "base/status.h"

namespace flamefleet::store {

constexpr size_t kMaxPackBytes = 128 << 20;  // decompressed
constexpr size_t kMaxPackProfiles = 1024;    // and heads

struct PackedProfile {
  int64_t time_ns = 0;    // that it is stored under
  bool has_time = false;  // the profile itself says so
  int64_t duration_ns = 0;
  uint32_t head = 0;             // in Pack::heads
  std::vector<uint32_t> stacks;  // ascending
  std::vector<int64_t> values;   // of the first sample type, then of the second...
};

struct Pack {
  size_t width = 0;                // sample types
  std::vector<std::string> heads;  // in the order of their first profile
  std::vector<PackedProfile> profiles;
};

std::string EncodePack(const Pack& pack);
Result<Pack> DecodePack(std::string_view bytes);

// The pprof, without samples, of what a merge keeps of a profile, but for time and duration.
std::string HeadOf(const pprof::Profile& profile);

// The number of `head` in the pack, which gets it if it is new.
uint32_t FindOrAddHead(Pack* pack, std::string head);

// The sum of all profiles, which are ordered by time, as one, and all heads. Its time is the first
// that a profile itself has.
Pack SumOf(const Pack& pack);

}  // namespace flamefleet::store
