// SPDX-License-Identifier: Apache-2.0
// The oracles are libprotobuf, zlib (inside Decode) and google/pprof.
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/gzip.h"
#include "proto/pprof/profile.pb.h"
#include "tests/base/pprof/test_profiles.h"
#include "tests/support/command.h"
#include "tests/support/skip.h"

namespace flamefleet::pprof {
namespace {

namespace pb = ::perftools::profiles;

std::string Plain(const std::string& data) {
  return IsGzip(data) ? *GunzipBounded(data, 1 << 24) : data;
}

pb::Profile Parsed(const std::string& plain) {
  pb::Profile message;
  EXPECT_TRUE(message.ParseFromString(plain));
  return message;
}

TEST(Encode, WhatWasDecodedIsWrittenAsAnEqualMessage) {
  for (const KnownProfile& known : KnownProfiles()) {
    const std::string plain = Plain(ReadProfileFile(known.file));
    const pb::Profile original = Parsed(plain);
    const pb::Profile written = Parsed(EncodeToString(DecodeOrDie(plain)));
    google::protobuf::util::MessageDifferencer differ;
    std::string difference;
    differ.ReportDifferencesToString(&difference);
    EXPECT_TRUE(differ.Compare(original, written)) << known.file << "\n" << difference;
  }
}

TEST(Encode, BytesAreThoseOfLibprotobuf) {
  for (const KnownProfile& known : KnownProfiles()) {
    const std::string written = EncodeToString(DecodeOrDie(ReadProfileFile(known.file)));
    EXPECT_EQ(written, Parsed(written).SerializeAsString()) << known.file;
  }
  Profile profile;
  for (uint32_t seed = 0; seed < 50; ++seed) {
    FillRandomProfile(seed, 200, &profile);
    const std::string written = EncodeToString(profile);
    EXPECT_EQ(written, Parsed(written).SerializeAsString()) << seed;
    EXPECT_EQ(written, EncodeToString(DecodeOrDie(written))) << seed;
  }
}

TEST(Encode, AppendsToWhatIsThere) {
  Profile profile;
  FillRandomProfile(1, 10, &profile);
  std::string out = "before";
  Encode(profile, &out);
  EXPECT_EQ(out, "before" + EncodeToString(profile));
}

TEST(Encode, PprofReadsTheSameFromOursAsFromTheOriginal) {
  if (PprofTool().empty()) FF_SKIP("no Go: `go tool pprof` is the oracle");
  const std::string ours = ::testing::TempDir() + "/encoded.pb";
  for (const KnownProfile& known : KnownProfiles()) {
    std::ofstream(ours, std::ios::binary)
        << EncodeToString(DecodeOrDie(ReadProfileFile(known.file)));
    for (const char* report : {"-raw", "-top"}) {
      const CommandResult want =
          RunCommand({PprofTool(), report, "-symbolize=none", "tests/data/pprof/" + known.file});
      const CommandResult got = RunCommand({PprofTool(), report, "-symbolize=none", ours});
      EXPECT_EQ(got.exit_code, 0) << known.file << got.err;
      EXPECT_EQ(got.out, want.out) << known.file;
    }
  }
}

}  // namespace
}  // namespace flamefleet::pprof
