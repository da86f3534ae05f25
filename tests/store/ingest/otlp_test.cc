// SPDX-License-Identifier: Apache-2.0
// Requests as libprotobuf writes them; tests/clients has those of the OpenTelemetry collector.
#include "store/ingest/otlp.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "base/clock.h"
#include "proto/otlp/profiles.pb.h"

namespace flamefleet::store {
namespace {

namespace pb = opentelemetry::proto::collector::profiles::v1development;
using ::testing::HasSubstr;

constexpr int64_t kNow = int64_t{1'764'435'600} * kNanosPerSecond;

PushLimits Limits() {
  PushLimits limits;
  limits.max_age_ns = 3600 * kNanosPerSecond;
  return limits;
}

PushResult Read(const pb::ExportProfilesServiceRequest& request,
                const PushLimits& limits = Limits()) {
  return ReadOtlp(request.SerializeAsString(), limits, kNow);
}

// One resource with one profile: main -> work, 7 of cpu/nanoseconds.
class OtlpTest : public ::testing::Test {
 protected:
  OtlpTest() {
    pb::ProfilesDictionary& tables = *request_.mutable_dictionary();
    tables.add_string_table("");
    tables.add_mapping_table();
    tables.add_location_table();
    tables.add_function_table();
    tables.add_attribute_table();
    tables.add_stack_table();
    pb::Mapping* const mapping = tables.add_mapping_table();
    mapping->set_filename_strindex(Text("/bin/shop"));
    for (const char* name : {"main", "work"}) {
      tables.add_function_table()->set_name_strindex(Text(name));
      pb::Location* const location = tables.add_location_table();
      location->set_mapping_index(1);
      location->add_lines()->set_function_index(tables.function_table_size() - 1);
    }
    tables.add_stack_table()->add_location_indices(2);
    tables.mutable_stack_table(1)->add_location_indices(1);
    resource_ = request_.add_resource_profiles();
    profile_ = resource_->add_scope_profiles()->add_profiles();
    profile_->set_time_unix_nano(kNow);
    SetType("cpu", "nanoseconds");
    sample_ = profile_->add_samples();
    sample_->set_stack_index(1);
    sample_->add_values(7);
  }

  int Text(const std::string& text) {
    request_.mutable_dictionary()->add_string_table(text);
    return request_.dictionary().string_table_size() - 1;
  }
  int Attribute(const std::string& key) {
    request_.mutable_dictionary()->add_attribute_table()->set_key_strindex(Text(key));
    return request_.dictionary().attribute_table_size() - 1;
  }
  pb::AnyValue* ValueOf(int attribute) {
    return request_.mutable_dictionary()->mutable_attribute_table(attribute)->mutable_value();
  }
  void SetType(const std::string& type, const std::string& unit) {
    profile_->mutable_sample_type()->set_type_strindex(Text(type));
    profile_->mutable_sample_type()->set_unit_strindex(Text(unit));
  }
  void SetPeriod(int64_t period) {
    profile_->mutable_period_type()->set_type_strindex(Text("cpu"));
    profile_->mutable_period_type()->set_unit_strindex(Text("nanoseconds"));
    profile_->set_period(period);
  }
  void AddResource(const std::string& key, const std::string& value) {
    pb::KeyValue* const attribute = resource_->mutable_resource()->add_attributes();
    attribute->set_key(key);
    attribute->mutable_value()->set_string_value(value);
  }
  pprof::Profile ReadOne() {
    const PushResult result = Read(request_);
    EXPECT_TRUE(result.error.ok()) << result.error;
    EXPECT_EQ(result.profiles.size(), 1U);
    pprof::Profile profile;
    EXPECT_TRUE(pprof::Decode(result.profiles.at(0).pprof, {}, &profile).ok());
    return profile;
  }
  Labels ReadLabels() {
    const PushResult result = Read(request_);
    EXPECT_TRUE(result.error.ok()) << result.error;
    return result.profiles.at(0).labels;
  }

  pb::ExportProfilesServiceRequest request_;
  pb::ResourceProfiles* resource_ = nullptr;
  pb::Profile* profile_ = nullptr;
  pb::Sample* sample_ = nullptr;
};

TEST_F(OtlpTest, AProfileKeepsItsStacksValuesAndTime) {
  const pprof::Profile profile = ReadOne();
  EXPECT_EQ(profile.time_ns, kNow);
  ASSERT_EQ(profile.samples.size(), 1U);
  EXPECT_EQ(profile.values, std::vector<int64_t>{7});
  std::string stack;
  for (const uint32_t location : profile.sample_locations) {
    const pprof::Line& line = profile.lines[profile.locations[location].first_line];
    stack += std::string(profile.strings.Get(profile.functions[line.function].name)) + ";";
  }
  EXPECT_EQ(stack, "work;main;");
  ASSERT_EQ(profile.mappings.size(), 1U);
  EXPECT_EQ(profile.strings.Get(profile.mappings[0].file_name), "/bin/shop");
}

TEST_F(OtlpTest, ResourceAttributesAreLabelsInBothForms) {
  AddResource("service.name", "shop");
  AddResource("k8s.pod.name", "shop-1");
  AddResource("deployment.environment", "");
  AddResource("__name__", "forged");
  pb::KeyValue* const indexed = resource_->mutable_resource()->add_attributes();
  indexed->set_key_strindex(Text("host.name"));
  indexed->mutable_value()->set_string_value_strindex(Text("node-7"));
  pb::KeyValue* const number = resource_->mutable_resource()->add_attributes();
  number->set_key("process.pid");
  number->mutable_value()->set_int_value(-3);
  pb::KeyValue* const fraction = resource_->mutable_resource()->add_attributes();
  fraction->set_key("share");
  fraction->mutable_value()->set_double_value(0.5);
  pb::KeyValue* const list = resource_->mutable_resource()->add_attributes();
  list->set_key("process.command_args");
  list->mutable_value()->set_array_value("\x0a\x00");
  EXPECT_EQ(ReadLabels(), (Labels{{"__name__", "process_cpu"},
                                  {"service_name", "shop"},
                                  {"pod", "shop-1"},
                                  {"host.name", "node-7"},
                                  {"process.pid", "-3"},
                                  {"share", "0.5"}}));
}

TEST_F(OtlpTest, ContentionsAreOfAMutexUnlessTheirScopeSaysBlock) {
  SetType("delay", "nanoseconds");
  EXPECT_EQ(ReadLabels().at(kProfileName), "mutex");
  resource_->mutable_scope_profiles(0)->mutable_scope()->set_name("block");
  EXPECT_EQ(ReadLabels().at(kProfileName), "block");
  SetType("samples", "count");
  EXPECT_EQ(ReadLabels().at(kProfileName), "process_cpu");
}

TEST_F(OtlpTest, WithoutAServiceItIsUnknown) {
  EXPECT_EQ(ReadLabels().at("service_name"), "unknown_service");
}

TEST_F(OtlpTest, AttributesOfProfileSampleAndMappingFindTheirPlace) {
  const int region = Attribute("region");
  ValueOf(region)->set_string_value("eu");
  profile_->add_attribute_indices(region);
  const int thread = Attribute("thread.name");
  ValueOf(thread)->set_string_value_strindex(Text("gc"));
  sample_->add_attribute_indices(thread);
  const int id = Attribute("thread.id");
  ValueOf(id)->set_int_value(12);
  sample_->add_attribute_indices(id);
  const int build_id = Attribute("process.executable.build_id.gnu");
  ValueOf(build_id)->set_string_value("abcd");
  request_.mutable_dictionary()->mutable_mapping_table(1)->add_attribute_indices(build_id);
  const int drop = Attribute("pprof.profile.drop_frames");
  ValueOf(drop)->set_string_value("runtime.*");
  profile_->add_attribute_indices(drop);
  const Labels labels = ReadLabels();
  EXPECT_EQ(labels.at("region"), "eu");
  EXPECT_FALSE(labels.contains("pprof.profile.drop_frames"));
  const pprof::Profile profile = ReadOne();
  EXPECT_EQ(profile.strings.Get(profile.drop_frames), "runtime.*");
  EXPECT_EQ(profile.strings.Get(profile.mappings.at(0).build_id), "abcd");
  ASSERT_EQ(profile.sample_labels.size(), 2U);
  EXPECT_EQ(profile.strings.Get(profile.sample_labels[0].text), "gc");
  EXPECT_EQ(profile.sample_labels[1].number, 12);
}

TEST_F(OtlpTest, ACountOfSamplesWithACpuPeriodIsCpuTime) {
  SetType("samples", "count");
  SetPeriod(50);
  const pprof::Profile profile = ReadOne();
  EXPECT_EQ(profile.strings.Get(profile.sample_types[0].type), "cpu");
  EXPECT_EQ(profile.strings.Get(profile.sample_types[0].unit), "nanoseconds");
  EXPECT_EQ(profile.values, std::vector<int64_t>{350});
}

TEST_F(OtlpTest, ACountBesideItsCpuTimeStaysACount) {
  *resource_->mutable_scope_profiles(0)->add_profiles() = *profile_;
  profile_ = resource_->mutable_scope_profiles(0)->mutable_profiles(0);
  SetType("samples", "count");
  SetPeriod(50);
  const PushResult result = Read(request_);
  ASSERT_EQ(result.profiles.size(), 2U);
  EXPECT_EQ(result.profiles[0].totals[0].type.type, "samples");
  EXPECT_EQ(result.profiles[0].totals[0].value, 7);
  EXPECT_EQ(result.profiles[1].totals[0].type.type, "cpu");
}

TEST_F(OtlpTest, TimeStampsCountWhereThereAreNoValues) {
  sample_->add_timestamps_unix_nano(kNow);
  sample_->add_timestamps_unix_nano(kNow + 1);
  EXPECT_EQ(ReadOne().values, std::vector<int64_t>{7});
  sample_->clear_values();
  EXPECT_EQ(ReadOne().values, std::vector<int64_t>{2});
  sample_->add_values(3);
  sample_->add_values(4);
  EXPECT_EQ(ReadOne().values, std::vector<int64_t>{7});
}

TEST_F(OtlpTest, ABadProfileCostsNoOther) {
  pb::Profile* const bad = resource_->mutable_scope_profiles(0)->add_profiles();
  bad->add_samples()->set_stack_index(9);
  pb::ResourceProfiles* const unnamed = request_.add_resource_profiles();
  *unnamed->add_scope_profiles()->add_profiles() = resource_->scope_profiles(0).profiles(0);
  unnamed->mutable_resource()->add_attributes()->set_key_strindex(999);
  pb::ResourceProfiles* const old = request_.add_resource_profiles();
  *old->add_scope_profiles()->add_profiles() = resource_->scope_profiles(0).profiles(0);
  old->mutable_scope_profiles(0)->mutable_profiles(0)->set_time_unix_nano(kNow -
                                                                          7200 * kNanosPerSecond);
  const PushResult result = Read(request_);
  EXPECT_EQ(result.profiles.size(), 1U);
  EXPECT_EQ(result.refused, 3U);
  EXPECT_EQ(result.refusal, Refusal::kMalformedProfile);
  EXPECT_THAT(ErrorMessage(result.error), HasSubstr("index 9 into 2 stacks"));
}

TEST_F(OtlpTest, IndexesOutOfTheirTablesAreRefused) {
  const auto expect_refused = [&](const char* what, const auto& change) {
    pb::ExportProfilesServiceRequest request = request_;
    change(request.mutable_dictionary());
    const PushResult result = Read(request);
    EXPECT_EQ(result.refusal, Refusal::kMalformedRequest) << what;
    EXPECT_TRUE(result.profiles.empty()) << what;
  };
  using Tables = pb::ProfilesDictionary*;
  expect_refused("string", [](Tables t) { t->mutable_function_table(1)->set_name_strindex(99); });
  expect_refused("negative", [](Tables t) { t->mutable_function_table(1)->set_name_strindex(-1); });
  expect_refused("function", [](Tables t) {
    t->mutable_location_table(1)->mutable_lines(0)->set_function_index(3);
  });
  expect_refused("mapping", [](Tables t) { t->mutable_location_table(1)->set_mapping_index(2); });
  expect_refused("location", [](Tables t) { t->mutable_stack_table(1)->add_location_indices(3); });
  expect_refused("attribute",
                 [](Tables t) { t->mutable_mapping_table(1)->add_attribute_indices(1); });
  expect_refused("string 0", [](Tables t) { t->set_string_table(0, "x"); });
  expect_refused("UTF-8", [](Tables t) { t->set_string_table(1, "\xff"); });
}

TEST_F(OtlpTest, WithoutADictionaryOnlyWhatNamesNothingIsRead) {
  request_.clear_dictionary();
  EXPECT_EQ(Read(request_).refusal, Refusal::kMalformedProfile);
  EXPECT_TRUE(Read({}).error.ok());
  EXPECT_EQ(ReadOtlp("not protobuf", Limits(), kNow).refusal, Refusal::kMalformedRequest);
}

TEST_F(OtlpTest, TooManyAttributesAreRefusedByTheLimitOfLabels) {
  for (int i = 0; i < 40; ++i)
    AddResource("label" + std::to_string(i), "x");
  const PushResult result = Read(request_);
  EXPECT_EQ(result.refusal, Refusal::kInvalidLabels);
  EXPECT_EQ(result.refused, 1U);
}

// 100 bytes of a profile may stand for megabytes.
TEST_F(OtlpTest, ProfilesThatShareALargeStackTakeNoMoreThanTheBound) {
  PushLimits limits = Limits();
  limits.max_request_bytes = 1 << 20;
  pb::Stack* const stack = request_.mutable_dictionary()->mutable_stack_table(1);
  for (int i = 0; i < 4000; ++i)
    stack->add_location_indices(1);
  for (int i = 0; i < 10; ++i)
    *profile_->add_samples() = *sample_;
  for (int i = 0; i < 100; ++i)
    *resource_->mutable_scope_profiles(0)->add_profiles() =
        resource_->scope_profiles(0).profiles(0);
  ASSERT_LT(request_.ByteSizeLong(), limits.max_request_bytes / 20);
  const PushResult result = Read(request_, limits);
  EXPECT_EQ(result.refusal, Refusal::kTooLarge);
  EXPECT_EQ(result.refused + result.profiles.size(), 101U);
  size_t bytes = 0;
  for (const NewProfile& profile : result.profiles)
    bytes += profile.pprof.size();
  EXPECT_LE(bytes, limits.max_request_bytes);
  EXPECT_GT(result.profiles.size(), 10U);
}

TEST_F(OtlpTest, ADamagedRequestIsReadOrRefusedNeverWrong) {
  AddResource("service.name", "shop");
  const std::string good = request_.SerializeAsString();
  std::mt19937 random(1);
  for (int round = 0; round < 20'000; ++round) {
    std::string bad = good;
    for (int i = 0; i < 3; ++i)
      bad[random() % bad.size()] = static_cast<char>(random());
    bad.resize(bad.size() - random() % 2 * (random() % bad.size()));
    const PushResult result = ReadOtlp(bad, Limits(), kNow);
    EXPECT_EQ(result.refusal == Refusal::kNone, result.error.ok());
    EXPECT_EQ(result.refusal == Refusal::kNone, result.refused == 0);
  }
}

}  // namespace
}  // namespace flamefleet::store
