// SPDX-License-Identifier: Apache-2.0
#include "store/ingest/push.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/gzip.h"
#include "proto/pyroscope/push.pb.h"
#include "tests/store/store_client.h"

namespace flamefleet::store {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kNow = 1'764'435'600 * kNanosPerSecond;
constexpr int64_t kHour = 3600 * kNanosPerSecond;

PushLimits Limits() {
  PushLimits limits;
  limits.max_age_ns = 72 * kHour;
  return limits;
}

PushResult Read(const std::string& body, const PushLimits& limits = Limits()) {
  return ReadPush(body, PushEncoding::kProto, limits, kNow);
}

// A request whose one series has exactly these labels, in this order.
std::string WithLabels(const std::vector<std::pair<std::string, std::string>>& labels) {
  pyroscope::PushRequest request;
  auto* const series = request.add_series();
  for (const auto& [name, value] : labels) {
    auto* const label = series->add_labels();
    label->set_name(name);
    label->set_value(value);
  }
  series->add_samples()->set_raw_profile(CpuProfileAt(kNow));
  return request.SerializeAsString();
}

void ExpectRefused(const PushResult& push, Refusal refusal, const std::string& message) {
  EXPECT_EQ(push.refusal, refusal) << push.error;
  EXPECT_GE(push.refused, 1U);
  EXPECT_THAT(ErrorMessage(push.error), HasSubstr(message));
}

TEST(Push, ProfileKeepsItsLabelsTimeAndBytes) {
  const std::string bytes = *Gzip(CpuProfileAt(kNow - kHour));
  const PushResult push = Read(PushBody(SeriesLabels("shop"), {bytes}));
  ASSERT_EQ(push.refusal, Refusal::kNone) << push.error;
  ASSERT_EQ(push.profiles.size(), 1U);
  EXPECT_EQ(push.profiles[0].labels, SeriesLabels("shop"));
  EXPECT_EQ(push.profiles[0].time_ns, kNow - kHour);
  EXPECT_EQ(push.profiles[0].pprof, bytes);
}

TEST(Push, LabelsMayBeUnsortedAndHaveDots) {
  const PushResult push = Read(WithLabels({{"service_name", "shop"},
                                           {"k8s.pod.name", "web"},
                                           {"__name__", "process_cpu"},
                                           {"empty", ""},
                                           {"__session_id__", "1"},
                                           {"__delta__", "false"}}));
  ASSERT_EQ(push.profiles.size(), 1U) << push.error;
  EXPECT_EQ(
      push.profiles[0].labels,
      (Labels{{"__name__", "process_cpu"}, {"k8s.pod.name", "web"}, {"service_name", "shop"}}));
}

TEST(Push, ServiceWithoutANameIsUnknown) {
  const PushResult push = Read(WithLabels({{"__name__", "memory"}}));
  ASSERT_EQ(push.profiles.size(), 1U);
  EXPECT_EQ(push.profiles[0].labels.at("service_name"), "unknown_service");
}

TEST(Push, EachBadLabelIsRefusedWithItsName) {
  const auto bad = [](const std::vector<std::pair<std::string, std::string>>& extra,
                      const std::string& message) {
    std::vector<std::pair<std::string, std::string>> labels = {{"__name__", "process_cpu"}};
    labels.insert(labels.end(), extra.begin(), extra.end());
    ExpectRefused(Read(WithLabels(labels)), Refusal::kInvalidLabels, message);
  };
  bad({{"", "x"}}, "a label has no name");
  bad({{"pod", "a"}, {"pod", "a"}}, "label 'pod' occurs twice");
  bad({{"service_name", ""}}, "'service_name' is empty");
  bad({{std::string(1025, 'n'), "x"}}, "longer than 1024 bytes");
  bad({{"pod", std::string(2049, 'v')}}, "the value of label 'pod' is longer than 2048 bytes");
  std::vector<std::pair<std::string, std::string>> many;
  for (int i = 0; i < 29; ++i)
    many.emplace_back("l" + std::to_string(i), "x");
  bad(many, "a series has 31 labels, at most 30 are allowed");
  ExpectRefused(Read(WithLabels({{"service_name", "x"}})), Refusal::kInvalidLabels,
                "'__name__' (the profile type, such as process_cpu) is missing");
  ExpectRefused(Read(WithLabels({{"__name__", "a:b"}})), Refusal::kInvalidLabels, "has a colon");
}

TEST(Push, TimeMustLieBetweenRetentionAndTheNearFuture) {
  const auto push_at = [](int64_t time_ns) {
    return Read(PushBody(SeriesLabels("shop"), {CpuProfileAt(time_ns)}));
  };
  ExpectRefused(push_at(kNow - 72 * kHour - 1), Refusal::kTooOld, "2025-11-26T16:59:59.999Z");
  EXPECT_EQ(push_at(kNow - 72 * kHour).profiles.size(), 1U);
  EXPECT_EQ(push_at(kNow + kHour / 6).profiles.size(), 1U);
  ExpectRefused(push_at(kNow + kHour / 6 + 1), Refusal::kTooNew, "in the future");
}

TEST(Push, WithoutATimeItIsNow) {
  const PushResult push = Read(PushBody(SeriesLabels("shop"), {CpuProfileAt(0)}));
  ASSERT_EQ(push.profiles.size(), 1U);
  EXPECT_EQ(push.profiles[0].time_ns, kNow);
}

TEST(Push, CorruptProfilesAreRefused) {
  for (const std::string& bad :
       {std::string(), std::string("text"), CpuProfileAt(kNow).substr(0, 99),
        *Gzip(CpuProfileAt(kNow)) + "tail", *Gzip(*Gzip(CpuProfileAt(kNow)))}) {
    ExpectRefused(Read(PushBody(SeriesLabels("shop"), {bad})), Refusal::kMalformedProfile,
                  "'process_cpu' of 'shop': pprof");
  }
}

TEST(Push, CompressedBombIsTooLarge) {
  PushLimits limits = Limits();
  limits.profile.max_bytes = 1 << 20;
  const std::string bomb = *Gzip(std::string(8 << 20, '\0'));
  ExpectRefused(Read(PushBody(SeriesLabels("shop"), {bomb}), limits), Refusal::kTooLarge,
                "more than 1048576 bytes after decompression");
}

TEST(Push, GoodProfilesAreTakenBesideBadOnes) {
  pyroscope::PushRequest request;
  request.ParseFromString(PushBody(SeriesLabels("bad"), {"text", CpuProfileAt(kNow)}));
  pyroscope::PushRequest good;
  good.ParseFromString(PushBody(SeriesLabels("good"), {CpuProfileAt(kNow)}));
  request.MergeFrom(good);
  const PushResult push = Read(request.SerializeAsString());
  EXPECT_EQ(push.profiles.size(), 2U);
  EXPECT_EQ(push.refused, 1U);
  EXPECT_EQ(push.refusal, Refusal::kMalformedProfile);
}

TEST(Push, ProfileWithoutAValueIsAcceptedAndNotStored) {
  pprof::Profile profile;
  ASSERT_TRUE(pprof::Decode(CpuProfileAt(kNow), pprof::DecodeLimits{}, &profile).ok());
  for (int64_t& value : profile.values)
    value = 0;
  std::string zeros;
  pprof::Encode(profile, &zeros);
  const PushResult push = Read(PushBody(SeriesLabels("shop"), {zeros}));
  EXPECT_EQ(push.refusal, Refusal::kNone);
  EXPECT_TRUE(push.profiles.empty());
}

TEST(Push, RequestsWithoutProfilesAndGarbageAreRefused) {
  ExpectRefused(Read(""), Refusal::kMalformedRequest, "no profiles received");
  ExpectRefused(Read(PushBody(SeriesLabels("shop"), {})), Refusal::kMalformedRequest,
                "no profiles received");
  ExpectRefused(Read("\x0a\xff garbage"), Refusal::kMalformedRequest, "not a push.v1.PushRequest");
  ExpectRefused(ReadPush("{\"series\":", PushEncoding::kJson, Limits(), kNow),
                Refusal::kMalformedRequest, "in JSON");
  PushLimits limits = Limits();
  limits.max_request_bytes = 10;
  ExpectRefused(Read(PushBody(SeriesLabels("shop"), {CpuProfileAt(kNow)}), limits),
                Refusal::kTooLarge, "larger than 10 bytes");
}

TEST(Push, PartsOfARequestAreBounded) {
  std::string empty_series;
  for (int i = 0; i < 300'000; ++i)
    empty_series += std::string("\x0a\x00", 2);
  ExpectRefused(Read(empty_series), Refusal::kTooLarge, "send several requests");
  std::string labels = std::string("\x0a", 1);  // of one series
  labels += "\xe0\xa7\x12";                     // 300'000 bytes
  for (int i = 0; i < 150'000; ++i)
    labels += std::string("\x0a\x00", 2);
  EXPECT_EQ(Read(labels).refusal, Refusal::kMalformedRequest);
  ExpectRefused(Read(labels + labels), Refusal::kTooLarge, "send several requests");
  std::string json = "{\"series\":[{}";
  for (int i = 0; i < 300'000; ++i)
    json += ",{}";
  ExpectRefused(ReadPush(json + "]}", PushEncoding::kJson, Limits(), kNow), Refusal::kTooLarge,
                "send several requests");
}

}  // namespace
}  // namespace flamefleet::store
