// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "base/pprof/merge.h"
#include "base/wire.h"
#include "proto/pprof/profile.pb.h"
#include "tests/base/pprof/test_profiles.h"

namespace flamefleet::pprof {
namespace {

namespace pb = ::perftools::profiles;
using ::testing::HasSubstr;

// One sample of one location of one function of one mapping; ids 1.
pb::Profile Small() {
  pb::Profile p;
  for (const char* text : {"", "cpu", "nanoseconds", "main", "/bin/app"})
    p.add_string_table(text);
  p.add_sample_type()->set_type(1);
  p.mutable_sample_type(0)->set_unit(2);
  p.add_mapping()->set_id(1);
  p.mutable_mapping(0)->set_filename(4);
  p.add_function()->set_id(1);
  p.mutable_function(0)->set_name(3);
  p.add_location()->set_id(1);
  p.mutable_location(0)->set_mapping_id(1);
  p.mutable_location(0)->add_line()->set_function_id(1);
  p.add_sample()->add_location_id(1);
  p.mutable_sample(0)->add_value(7);
  return p;
}

Status DecodeBytes(const std::string& bytes, const DecodeLimits& limits = {}) {
  Profile profile;
  return Decode(bytes, limits, &profile);
}

TEST(Decode, KnownProfilesHaveTheirTotals) {
  for (const KnownProfile& known : KnownProfiles()) {
    SCOPED_TRACE(known.file);
    const Profile profile = DecodeOrDie(ReadProfileFile(known.file));
    EXPECT_EQ(SampleTypeNames(profile), known.sample_types);
    EXPECT_EQ(profile.samples.size(), known.samples);
    for (size_t i = 0; i < known.totals.size(); ++i) {
      EXPECT_EQ(TotalValue(profile, i), known.totals[i]);
    }
  }
}

TEST(Decode, WhatIsNoProfileIsInvalid) {
  for (const std::string& bad : {ReadProfileFile("bad_corruptgzip.bin"),
                                 ReadProfileFile("bad_garbage.bin"), std::string()}) {
    EXPECT_EQ(DecodeBytes(bad).code(), StatusCode::kInvalidArgument);
  }
}

TEST(Decode, IdsMayBeSparseAndInAnyOrder) {
  pb::Profile p = Small();
  p.add_function()->set_id(0xffff'ffff'ffff'ffff);
  p.mutable_function(1)->set_name(4);
  p.mutable_function(0)->set_id(900);
  p.mutable_location(0)->mutable_line(0)->set_function_id(0xffff'ffff'ffff'ffff);
  p.mutable_location(0)->set_id(70);
  p.add_location()->set_id(7);
  p.mutable_mapping(0)->set_id(1'000'000'007);
  p.mutable_location(1)->set_mapping_id(1'000'000'007);
  p.mutable_location(0)->set_mapping_id(0);
  p.mutable_sample(0)->set_location_id(0, 7);
  p.mutable_sample(0)->add_location_id(70);

  const Profile profile = DecodeOrDie(p.SerializeAsString());
  EXPECT_EQ(profile.sample_locations, (std::vector<uint32_t>{1, 0}));
  EXPECT_EQ(profile.locations[0].mapping, kNone);
  EXPECT_EQ(profile.locations[1].mapping, 0U);
  EXPECT_EQ(profile.strings.Get(profile.functions[profile.lines[0].function].name), "/bin/app");
}

TEST(Decode, PackedAndUnpackedNumbersReadTheSame) {
  pb::Profile p = Small();
  p.clear_sample();
  // Sample with location_id 1, 1 and values 5 unpacked; then the same packed.
  const std::string unpacked("\x08\x01\x08\x01\x10\x05", 6);
  const std::string packed("\x0a\x02\x01\x01\x12\x01\x05", 7);
  std::string bytes = p.SerializeAsString();
  for (const std::string& sample : {unpacked, packed}) {
    bytes += '\x12';
    bytes += static_cast<char>(sample.size());
    bytes += sample;
  }
  const Profile profile = DecodeOrDie(bytes);
  ASSERT_EQ(profile.samples.size(), 2U);
  EXPECT_EQ(profile.values, (std::vector<int64_t>{5, 5}));
  EXPECT_EQ(profile.sample_locations, (std::vector<uint32_t>{0, 0, 0, 0}));
}

TEST(Decode, UnknownFieldsAreSkipped) {
  std::string bytes = Small().SerializeAsString();
  bytes += std::string("\xf8\x07\x01", 3);                 // field 127, varint
  bytes += std::string("\xf9\x07\1\2\3\4\5\6\7\x08", 10);  // fixed64
  bytes += std::string("\xfd\x07\1\2\3\4", 6);             // fixed32
  bytes += std::string("\xfa\x07\x03", 3) + "abc";         // bytes
  EXPECT_EQ(EncodeToString(DecodeOrDie(bytes)), Small().SerializeAsString());
}

TEST(Decode, DamagedWireIsInvalid) {
  const std::string good = Small().SerializeAsString();
  for (const std::string& tail : {
           std::string("\xfb\x07", 2),      // group
           std::string("\x00\x01", 2),      // field 0
           std::string("\xfa\x07\x7f", 3),  // ends inside
           std::string("\x48\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
                       12),                 // varint of 11 bytes
           std::string("\x4a\x01\x01", 3),  // time_nanos as bytes
           std::string("\x10\x01", 2),      // sample as varint
       }) {
    EXPECT_EQ(DecodeBytes(good + tail).code(), StatusCode::kInvalidArgument);
  }
}

TEST(Decode, MessageSaysWhatIsWrong) {
  const std::vector<std::pair<std::string, std::function<void(pb::Profile*)>>> cases = {
      {"string 0 is not empty", [](auto* p) { p->set_string_table(0, "x"); }},
      {"string index 99 of 5", [](auto* p) { p->mutable_function(0)->set_name(99); }},
      {"string index 18446744073709551615", [](auto* p) { p->set_drop_frames(-1); }},
      {"string index 5 of 5", [](auto* p) { p->mutable_sample(0)->add_label()->set_key(5); }},
      {"function with id 0", [](auto* p) { p->mutable_function(0)->set_id(0); }},
      {"two functions with id 1", [](auto* p) { p->add_function()->set_id(1); }},
      {"two locations with id 1", [](auto* p) { p->add_location()->set_id(1); }},
      {"two mappings with id 1", [](auto* p) { p->add_mapping()->set_id(1); }},
      {"location 1 names mapping 8", [](auto* p) { p->mutable_location(0)->set_mapping_id(8); }},
      {"a line names function 0",
       [](auto* p) { p->mutable_location(0)->mutable_line(0)->clear_function_id(); }},
      {"a sample names location 9", [](auto* p) { p->mutable_sample(0)->set_location_id(0, 9); }},
      {"a sample has 2 values, there are 1", [](auto* p) { p->mutable_sample(0)->add_value(1); }},
      {"samples but no sample type", [](auto* p) {
         p->clear_sample_type();
         p->mutable_sample(0)->clear_value();
       }}};
  for (const auto& [message, damage] : cases) {
    pb::Profile p = Small();
    damage(&p);
    const Status status = DecodeBytes(p.SerializeAsString());
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << message;
    EXPECT_THAT(ErrorMessage(status), HasSubstr(message));
  }
}

TEST(Decode, TextThatIsNotUtf8IsInvalid) {
  for (const char* text : {"\xff", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82"}) {
    // Built by hand: libprotobuf does not write such a text.
    std::string bytes = Small().SerializeAsString() + "\x32";
    bytes += static_cast<char>(std::string(text).size());
    bytes += text;
    EXPECT_THAT(ErrorMessage(DecodeBytes(bytes)), HasSubstr("not UTF-8"));
  }
  pb::Profile p = Small();
  p.set_string_table(3, "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x94\xa5");
  EXPECT_TRUE(DecodeBytes(p.SerializeAsString()).ok());
}

TEST(Decode, EachLimitIsAnExhaustedResource) {
  pb::Profile p = Small();
  p.add_sample_type();
  p.mutable_sample(0)->add_value(1);
  *p.add_sample() = p.sample(0);
  p.mutable_sample(0)->add_location_id(1);
  const std::string bytes = p.SerializeAsString();
  ASSERT_TRUE(DecodeBytes(bytes).ok());
  const std::vector<DecodeLimits> limits = {
      {.max_sample_types = 1}, {.max_bytes = 10}, {.max_samples = 1},  {.max_locations = 0},
      {.max_strings = 2},      {.max_depth = 1},  {.max_elements = 1}, {.max_memory = 100}};
  for (size_t i = 0; i < limits.size(); ++i) {
    EXPECT_EQ(DecodeBytes(bytes, limits[i]).code(), StatusCode::kResourceExhausted) << i;
  }
}

// Flips, cuts and inserts: any answer is right but a crash or an invalid profile.
TEST(Decode, MutatedBytesGiveAnErrorOrAValidProfile) {
  std::mt19937 random(1);
  Profile profile;
  std::string encoded;
  for (const KnownProfile& known : KnownProfiles()) {
    const std::string good = EncodeToString(DecodeOrDie(ReadProfileFile(known.file)));
    const int rounds = good.size() > 10'000 ? 100 : 500;
    for (int i = 0; i < rounds; ++i) {
      std::string bad = good;
      for (uint32_t k = 0; k <= random() % 4; ++k) {
        const size_t at = random() % bad.size();
        switch (random() % 3) {
          case 0:
            bad[at] = static_cast<char>(random());
            break;
          case 1:
            bad.resize(at + 1);
            break;
          default:
            bad.insert(at, 1, static_cast<char>(random()));
        }
      }
      if (!Decode(bad, DecodeLimits{}, &profile).ok()) continue;
      encoded.clear();
      Encode(profile, &encoded);
      pb::Profile parsed;
      EXPECT_TRUE(parsed.ParseFromString(encoded));
      Merger merger(1 << 30);
      EXPECT_TRUE(merger.Add(profile).ok());
    }
  }
}

}  // namespace
}  // namespace flamefleet::pprof
