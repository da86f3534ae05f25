// SPDX-License-Identifier: Apache-2.0
#include "base/pprof/top.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "tests/base/pprof/test_profiles.h"
#include "tests/support/command.h"
#include "tests/support/skip.h"

namespace flamefleet::pprof {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAreArray;

std::string Row(const std::string& name, int64_t flat, int64_t cum) {
  return name + " " + std::to_string(flat) + " " + std::to_string(cum);
}

std::vector<std::string> Rows(const Top& top) {
  std::vector<std::string> rows;
  for (const TopFunction& f : top.functions)
    rows.push_back(Row(f.name, f.flat, f.cum));
  return rows;
}

TEST(Top, FlatAndCumAreThoseOfTheStacks) {
  const Top top = HottestFunctions(DecodeOrDie(ReadProfileFile("hand_cpu2.pb.gz")), 1, 10);
  EXPECT_EQ(top.total, 60'000'000);
  EXPECT_THAT(Rows(top), ElementsAre("main.leafA 30000000 30000000", "main.leafB 20000000 20000000",
                                     "main.work 10000000 60000000", "main.main 0 60000000"));
}

TEST(Top, LimitCutsTheColdest) {
  const Top top = HottestFunctions(DecodeOrDie(ReadProfileFile("hand_cpu2.pb.gz")), 0, 2);
  EXPECT_THAT(Rows(top), ElementsAre("main.leafA 3 3", "main.leafB 2 2"));
  EXPECT_EQ(top.function_count, 4U);
}

TEST(Top, RecursionIsCountedOnce) {
  const Top top = HottestFunctions(DecodeOrDie(ReadProfileFile("hand_deep1500.pb.gz")), 0, 10);
  for (const TopFunction& f : top.functions)
    EXPECT_EQ(f.cum, 1) << f.name;
}

TEST(Top, SumsThatOverflowWrap) {
  Profile profile = DecodeOrDie(ReadProfileFile("hand_cpu2.pb.gz"));
  for (int64_t& value : profile.values)
    value = INT64_MAX;
  EXPECT_EQ(HottestFunctions(profile, 0, 1).total, INT64_MAX - 2);  // of three samples
}

// The rows of `go tool pprof -top`: flat flat% sum% cum cum% name. Rows of equal flat it orders by
// name, we by cum.
TEST(Top, AgreesWithPprof) {
  if (PprofTool().empty()) FF_SKIP("no Go: `go tool pprof` is the oracle");
  for (const KnownProfile& known : KnownProfiles()) {
    if (known.file == "hand_negative.pb.gz") continue;  // pprof totals absolute values
    for (size_t type = 0; type < known.totals.size(); ++type) {
      const Profile profile = DecodeOrDie(ReadProfileFile(known.file));
      const std::string unit(profile.strings.Get(profile.sample_types[type].unit));
      const CommandResult pprof =
          RunCommand({PprofTool(), "-top", "-symbolize=none", "-nodefraction=0", "-edgefraction=0",
                      "-nodecount=0", "-unit=" + unit, "-sample_index=" + std::to_string(type),
                      "tests/data/pprof/" + known.file});
      ASSERT_EQ(pprof.exit_code, 0) << pprof.err;
      std::vector<std::string> want;
      std::istringstream lines(pprof.out.substr(pprof.out.find("cum%\n") + 5));
      for (std::string line; std::getline(lines, line);) {
        std::istringstream row(line);
        std::string flat;
        std::string cum;
        std::string skipped;
        std::string name;
        row >> flat >> skipped >> skipped >> cum >> skipped >> std::ws;
        std::getline(row, name);
        if (name.ends_with(" (inline)")) name.resize(name.size() - 9);
        want.push_back(Row(name, std::stoll(flat), std::stoll(cum)));
      }
      const Top top = HottestFunctions(profile, type, SIZE_MAX);
      EXPECT_EQ(top.total, known.totals[type]);
      EXPECT_THAT(Rows(top), UnorderedElementsAreArray(want)) << known.file << " " << type << "\n"
                                                              << pprof.out;
    }
  }
}

}  // namespace
}  // namespace flamefleet::pprof
