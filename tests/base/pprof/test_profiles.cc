// SPDX-License-Identifier: Apache-2.0
#include "tests/base/pprof/test_profiles.h"

#include <array>
#include <fstream>
#include <sstream>

namespace flamefleet::pprof {
namespace {

class Random {
 public:
  explicit Random(uint32_t seed) : engine_(seed) {}
  uint32_t Below(size_t n) { return static_cast<uint32_t>(engine_() % n); }
  // Of any magnitude: each length of varint occurs.
  uint64_t Number() { return engine_() >> Below(64); }
  bool Coin() { return Below(2) == 0; }

 private:
  std::mt19937_64 engine_;
};

}  // namespace

const std::vector<KnownProfile>& KnownProfiles() {
  static const auto* const known = new std::vector<KnownProfile>{
      {"hand_addronly.pb.gz", "samples/count", 3, {6}},
      {"hand_cpu1.pb.gz", "cpu/nanoseconds", 3, {60'000'000}},
      {"hand_cpu2.pb.gz", "samples/count,cpu/nanoseconds", 3, {6, 60'000'000}},
      {"hand_deep1500.pb.gz", "samples/count,cpu/nanoseconds", 1, {1, 10'000'000}},
      {"hand_goroutine.pb.gz", "goroutine/count", 3, {18}},
      {"hand_mem.pb.gz",
       "alloc_objects/count,alloc_space/bytes,inuse_objects/count,inuse_space/bytes",
       3,
       {60, 6000, 6, 600}},
      {"hand_mutex.pb.gz", "contentions/count,delay/nanoseconds", 3, {6, 600}},
      {"hand_negative.pb.gz", "samples/count,cpu/nanoseconds", 2, {2, 20'000'000}},
      {"hand_noperiod.pb.gz", "samples/count,cpu/nanoseconds", 3, {6, 60'000'000}},
      {"hand_nosamples.pb.gz", "samples/count,cpu/nanoseconds", 0, {0, 0}},
      {"hand_notime.pb.gz", "samples/count,cpu/nanoseconds", 3, {6, 60'000'000}},
      {"hand_old2h.pb.gz", "samples/count,cpu/nanoseconds", 3, {6, 60'000'000}},
      {"hand_plain.pb", "samples/count,cpu/nanoseconds", 3, {6, 60'000'000}},
      {"real_allocs.pb.gz",
       "alloc_objects/count,alloc_space/bytes,inuse_objects/count,inuse_space/bytes",
       50,
       {423, 15'570'183, 295, 13'125'135}},
      {"real_block.pb.gz", "contentions/count,delay/nanoseconds", 4, {83, 340'866'489}},
      {"real_cpu.pb.gz", "samples/count,cpu/nanoseconds", 14, {195, 1'950'000'000}},
      {"real_goroutine.pb.gz", "goroutine/count", 1, {1}},
      {"sdk_go_cpu.pb.gz", "samples/count,cpu/nanoseconds", 418, {489, 4'890'000'000}},
      {"sdk_go_goroutine.pb.gz", "goroutine/count", 5, {9}},
      {"sdk_go_heap.pb.gz",
       "alloc_objects/count,alloc_space/bytes,inuse_objects/count,inuse_space/bytes",
       3,
       {4752, 9'268'426, 4752, 9'268'426}},
      {"sdk_node_wall.pb.gz",
       "samples/count,wall/nanoseconds,cpu/nanoseconds",
       297,
       {384, 3'881'448'000, 1'527'712'979}},
      {"sdk_py_cpu.pb", "cpu/nanoseconds", 7, {9'890'000'000}},
  };
  return *known;
}

std::string ReadProfileFile(const std::string& file) {
  std::ifstream in("tests/data/pprof/" + file, std::ios::binary);
  FF_CHECK(in.is_open());
  std::ostringstream content;
  content << in.rdbuf();
  return content.str();
}

Profile DecodeOrDie(const std::string& data) {
  Profile profile;
  FF_CHECK(Decode(data, DecodeLimits{}, &profile).ok());
  return profile;
}

std::string EncodeToString(const Profile& profile) {
  std::string out;
  Encode(profile, &out);
  return out;
}

void FillRandomProfile(uint32_t seed, size_t samples, Profile* out) {
  Random random(seed);
  Profile& p = *out;
  p.Clear();
  constexpr size_t kStrings = 200;
  std::array<char, 400> text{};
  for (size_t i = 1; i < kStrings; ++i) {
    const size_t size = random.Below(20) == 0 ? text.size() : 1 + random.Below(30);
    for (size_t k = 0; k < size; ++k)
      text[k] = static_cast<char>('a' + random.Below(26));
    p.strings.Intern(std::string_view(text.data(), size));
  }
  const auto any_string = [&] { return random.Below(p.strings.Size()); };

  const size_t types = 1 + random.Below(4);
  for (size_t i = 0; i < types; ++i)
    p.sample_types.push_back({any_string(), any_string()});
  for (size_t i = 0; i < 5; ++i) {
    p.mappings.push_back({random.Number(), random.Number(), random.Number(), any_string(),
                          any_string(), random.Coin(), random.Coin(), random.Coin(),
                          random.Coin()});
  }
  for (size_t i = 0; i < 300; ++i) {
    p.functions.push_back(
        {any_string(), any_string(), any_string(), static_cast<int64_t>(random.Number())});
  }
  for (size_t i = 0; i < 500; ++i) {
    Location location{.address = random.Number(), .is_folded = random.Coin()};
    if (random.Coin()) location.mapping = random.Below(p.mappings.size());
    location.first_line = static_cast<uint32_t>(p.lines.size());
    location.line_count = random.Below(4);
    for (uint32_t k = 0; k < location.line_count; ++k) {
      p.lines.push_back({random.Below(p.functions.size()), static_cast<int64_t>(random.Number()),
                         static_cast<int64_t>(random.Number())});
    }
    p.locations.push_back(location);
  }
  for (size_t i = 0; i < samples; ++i) {
    Sample sample{.first_location = static_cast<uint32_t>(p.sample_locations.size()),
                  .location_count = random.Below(150),
                  .first_label = static_cast<uint32_t>(p.sample_labels.size()),
                  .label_count = random.Below(4)};
    for (uint32_t k = 0; k < sample.location_count; ++k) {
      p.sample_locations.push_back(random.Below(p.locations.size()));
    }
    for (uint32_t k = 0; k < sample.label_count; ++k) {
      if (random.Coin()) {
        p.sample_labels.push_back({.key = any_string(), .text = any_string()});
      } else {
        p.sample_labels.push_back(
            {any_string(), 0, static_cast<int64_t>(random.Number()), any_string()});
      }
    }
    for (size_t k = 0; k < types; ++k)
      p.values.push_back(static_cast<int64_t>(random.Number()));
    p.samples.push_back(sample);
  }
  for (uint32_t i = 0; i < 3; ++i)
    p.comments.push_back(any_string());
  p.drop_frames = any_string();
  p.keep_frames = any_string();
  p.default_sample_type = any_string();
  p.doc_url = any_string();
  p.time_ns = static_cast<int64_t>(random.Number());
  p.duration_ns = static_cast<int64_t>(random.Number());
  p.period_type = {any_string(), any_string()};
  p.period = static_cast<int64_t>(random.Number());
}

}  // namespace flamefleet::pprof
