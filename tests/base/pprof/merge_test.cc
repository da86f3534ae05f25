// SPDX-License-Identifier: Apache-2.0
#include "base/pprof/merge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "tests/base/pprof/test_profiles.h"
#include "tests/support/command.h"
#include "tests/support/skip.h"

namespace flamefleet::pprof {
namespace {

using ::testing::HasSubstr;

constexpr size_t kPlenty = 1 << 30;

Profile Merged(const std::vector<std::string>& files) {
  Merger merger(kPlenty);
  for (const std::string& file : files) {
    const Status status = merger.Add(DecodeOrDie(ReadProfileFile(file)));
    EXPECT_TRUE(status.ok()) << status;
  }
  return merger.Take();
}

TEST(Merge, EqualStacksSumTheirValues) {
  const Profile sum = Merged({"hand_cpu2.pb.gz", "hand_cpu2.pb.gz", "hand_plain.pb"});
  EXPECT_EQ(sum.samples.size(), 3U);
  EXPECT_EQ(sum.locations.size(), DecodeOrDie(ReadProfileFile("hand_cpu2.pb.gz")).locations.size());
  EXPECT_EQ(TotalValue(sum, 0), 18);
  EXPECT_EQ(TotalValue(sum, 1), 180'000'000);
}

TEST(Merge, TimeIsTheEarliestThatIsSetAndDurationTheSum) {
  const Profile cpu = DecodeOrDie(ReadProfileFile("hand_cpu2.pb.gz"));
  const Profile old = DecodeOrDie(ReadProfileFile("hand_old2h.pb.gz"));
  const Profile sum = Merged({"hand_cpu2.pb.gz", "hand_old2h.pb.gz", "hand_notime.pb.gz"});
  EXPECT_EQ(sum.time_ns, std::min(cpu.time_ns, old.time_ns));
  EXPECT_EQ(sum.duration_ns, 3 * cpu.duration_ns);
  EXPECT_EQ(sum.period, cpu.period);
}

TEST(Merge, ABinaryLoadedElsewhereIsTheSame) {
  Profile moved = DecodeOrDie(ReadProfileFile("hand_addronly.pb.gz"));
  constexpr uint64_t kSlide = 0x7f00'0000'0000;
  moved.mappings[0].memory_start += kSlide;
  moved.mappings[0].memory_limit += kSlide;
  for (Location& location : moved.locations)
    location.address += kSlide;
  Merger merger(kPlenty);
  ASSERT_TRUE(merger.Add(DecodeOrDie(ReadProfileFile("hand_addronly.pb.gz"))).ok());
  ASSERT_TRUE(merger.Add(moved).ok());
  const Profile sum = merger.Take();
  EXPECT_EQ(sum.mappings.size(), 1U);
  EXPECT_EQ(sum.samples.size(), 3U);
  EXPECT_EQ(sum.locations[0].address, 0x400010U + 0x20);
  EXPECT_EQ(TotalValue(sum, 0), 12);
}

TEST(Merge, SamplesThatSumToZeroVanish) {
  Profile minus = DecodeOrDie(ReadProfileFile("hand_cpu2.pb.gz"));
  for (int64_t& value : minus.values)
    value = -value;
  Merger merger(kPlenty);
  ASSERT_TRUE(merger.Add(DecodeOrDie(ReadProfileFile("hand_cpu2.pb.gz"))).ok());
  ASSERT_TRUE(merger.Add(minus).ok());
  const Profile sum = merger.Take();
  EXPECT_TRUE(sum.samples.empty());
  EXPECT_TRUE(sum.functions.empty());
}

TEST(Merge, OtherSampleTypesArePrecluded) {
  Merger merger(kPlenty);
  ASSERT_TRUE(merger.Add(DecodeOrDie(ReadProfileFile("hand_cpu2.pb.gz"))).ok());
  const Status status = merger.Add(DecodeOrDie(ReadProfileFile("hand_mem.pb.gz")));
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(ErrorMessage(status), HasSubstr("samples/count,cpu/nanoseconds"));
  EXPECT_EQ(TotalValue(merger.Take(), 0), 6);
}

TEST(Merge, MemoryIsBounded) {
  Merger merger(100'000);
  Profile profile;
  Status status;
  for (uint32_t seed = 0; status.ok() && seed < 1000; ++seed) {
    FillRandomProfile(1, 100, &profile);
    for (Location& location : profile.locations)
      location.address += seed;
    status = merger.Add(profile);
  }
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
}

TEST(Merge, KeepingOneSampleTypeKeepsItsTotal) {
  Profile profile = DecodeOrDie(ReadProfileFile("real_allocs.pb.gz"));
  KeepSampleType(3, &profile);
  EXPECT_EQ(SampleTypeNames(profile), "inuse_space/bytes");
  EXPECT_EQ(TotalValue(profile, 0), 13'125'135);
  EXPECT_EQ(profile.values.size(), profile.samples.size());
  EXPECT_EQ(std::count(profile.values.begin(), profile.values.end(), 0), 0);
}

// What `pprof -raw` prints, in an order that does not depend on ids: one line per sample with the
// names of its frames.
std::vector<std::string> PprofTraces(const std::vector<std::string>& files) {
  std::vector<std::string> argv = {PprofTool(), "-traces", "-symbolize=none", "-unit=raw",
                                   "-lines"};
  argv.insert(argv.end(), files.begin(), files.end());
  const CommandResult result = RunCommand(argv);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  std::vector<std::string> traces(1);
  std::istringstream lines(result.out);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("-----------+")) {
      traces.emplace_back();
    } else {
      traces.back() += line + "\n";
    }
  }
  std::sort(traces.begin() + 1, traces.end());
  return traces;
}

TEST(Merge, EqualsTheMergeOfPprof) {
  if (PprofTool().empty()) FF_SKIP("no Go: `go tool pprof` is the oracle");
  const std::vector<std::vector<std::string>> sets = {
      {"hand_cpu2.pb.gz", "hand_plain.pb", "hand_old2h.pb.gz", "real_cpu.pb.gz",
       "sdk_go_cpu.pb.gz"},
      {"hand_mem.pb.gz", "real_allocs.pb.gz", "sdk_go_heap.pb.gz"},
      {"hand_goroutine.pb.gz", "real_goroutine.pb.gz", "sdk_go_goroutine.pb.gz"},
      {"hand_addronly.pb.gz", "hand_addronly.pb.gz"},
      {"sdk_node_wall.pb.gz", "sdk_node_wall.pb.gz"},
  };
  const std::string ours = ::testing::TempDir() + "/merged.pb";
  for (const std::vector<std::string>& set : sets) {
    std::ofstream(ours, std::ios::binary) << EncodeToString(Merged(set));
    std::vector<std::string> paths;
    for (const std::string& file : set)
      paths.push_back("tests/data/pprof/" + file);
    EXPECT_EQ(PprofTraces({ours}), PprofTraces(paths)) << set[0];
  }
}

}  // namespace
}  // namespace flamefleet::pprof
