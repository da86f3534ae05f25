// SPDX-License-Identifier: Apache-2.0
// Requests as pyroscope-go 1.5.0 and @pyroscope/nodejs 0.6.4 send them; their profiles are captured
// ones.
#include "store/ingest/ingest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "base/clock.h"
#include "store/ingest/multipart.h"

namespace flamefleet::store {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kNow = int64_t{1'728'043'200} * kNanosPerSecond;

std::string File(const std::string& name) {
  std::ifstream in("tests/data/pprof/" + name, std::ios::binary);
  std::ostringstream bytes;
  bytes << in.rdbuf();
  return bytes.str();
}

PushLimits Limits() {
  PushLimits limits;
  limits.max_age_ns = INT64_MAX / 2;
  limits.max_future_ns = INT64_MAX / 2 - kNow;
  return limits;
}

PushResult Read(IngestRequest request) {
  if (request.name.empty()) request.name = "shop";
  return ReadIngest(request, Limits(), kNow);
}

std::string Multipart(const std::string& profile, const std::string& config) {
  std::string body =
      "--X\r\nContent-Disposition: form-data; name=\"profile\"; filename=\"profile.pprof\"\r\n"
      "Content-Type: application/octet-stream\r\n\r\n" +
      profile;
  if (!config.empty()) {
    body +=
        "\r\n--X\r\nContent-Disposition: form-data; name=\"sample_type_config\"; "
        "filename=\"sample_type_config.json\"\r\n\r\n" +
        config;
  }
  return body + "\r\n--X--\r\n";
}

constexpr char kMultipartType[] = "multipart/form-data; boundary=X";

TEST(Ingest, NameIsTheServiceAndItsLabels) {
  EXPECT_EQ(*ParseIngestName("shop"), (Labels{{"service_name", "shop"}}));
  EXPECT_EQ(*ParseIngestName("shop.cpu{__session_id__=a1, otel.scope.name=com/go,k=v,k=w}"),
            (Labels{{"service_name", "shop.cpu"}, {"otel.scope.name", "com/go"}, {"k", "w"}}));
  EXPECT_EQ(*ParseIngestName("shop{service_name=cart}"), (Labels{{"service_name", "cart"}}));
  EXPECT_EQ(*ParseIngestName("shop{k=v"), (Labels{{"service_name", "shop"}}));
  EXPECT_EQ(*ParseIngestName("shop{}"), (Labels{{"service_name", "shop"}}));
  for (const char* bad : {"", "{k=v}", "a b", "shop{k}", "shop{a-b=c}", "shop{=v}", "a\xff"}) {
    EXPECT_EQ(ParseIngestName(bad).status().code(), StatusCode::kInvalidArgument) << bad;
  }
}

TEST(Ingest, ProfilesOfSdksGetTheirTypes) {
  const auto expect = [](const PushResult& push, const std::string& type) {
    ASSERT_TRUE(push.error.ok()) << push.error;
    ASSERT_EQ(push.profiles.size(), 1U);
    EXPECT_EQ(push.profiles[0].labels.at(kProfileName), type);
    EXPECT_EQ(push.profiles[0].labels.at(kServiceName), "shop");
  };
  const auto form = [](const std::string& file, const std::string& config) {
    const std::string body = Multipart(File(file), config);
    return Read({.content_type = kMultipartType, .body = body});
  };
  expect(form("sdk_go_cpu.pb.gz", ""), "process_cpu");
  expect(form("sdk_go_heap.pb.gz", R"({"inuse_space":{"units":"bytes"}})"), "memory");
  expect(form("sdk_go_goroutine.pb.gz", R"({"goroutine":{"display-name":"goroutine"}})"),
         "goroutine");
  expect(form("hand_mutex.pb.gz", R"({"contentions":{"display-name":"mutex_count"}})"), "mutex");
  expect(form("hand_mutex.pb.gz", R"({"contentions":{"display-name":"block_count"}})"), "block");
  const std::string wall = File("sdk_node_wall.pb.gz");
  expect(Read({.format = "pprof", .body = wall}), "wall");
  const std::string mutex = File("real_block.pb.gz");
  expect(Read({.format = "pprof", .body = mutex}), "mutex");
  const std::string goroutines = File("hand_goroutine.pb.gz");
  expect(Read({.format = "pprof", .body = goroutines}), "goroutines");
}

TEST(Ingest, TotalsAreThoseOfTheBody) {
  const std::string body = File("sdk_node_wall.pb.gz");
  const PushResult push = Read({.spy_name = "nodespy", .format = "pprof", .body = body});
  ASSERT_EQ(push.profiles.size(), 1U);
  EXPECT_EQ(push.profiles[0].labels.at("pyroscope_spy"), "nodespy");
  EXPECT_EQ(push.profiles[0].totals[0].value, 384);
  EXPECT_EQ(push.profiles[0].totals[1].value, 3'881'448'000);
}

TEST(Ingest, FromIsTheTimeOfAProfileWithoutOne) {
  const std::string body = File("hand_notime.pb.gz");
  for (const char* from : {"1728040000", "1728040000000", "1728040000000000000"}) {
    const PushResult push = Read({.from = from, .format = "pprof", .body = body});
    ASSERT_EQ(push.profiles.size(), 1U) << from;
    EXPECT_EQ(push.profiles[0].time_ns, 1'728'040'000 * kNanosPerSecond) << from;
  }
  EXPECT_EQ(Read({.from = "x", .format = "pprof", .body = body}).profiles[0].time_ns, kNow);
}

TEST(Ingest, FoldedStacksAreCpuAtTheSampleRate) {
  const auto total = [](const PushResult& push) {
    EXPECT_TRUE(push.error.ok()) << push.error;
    EXPECT_EQ(push.profiles.size(), 1U);
    return push.profiles.empty() ? -1 : push.profiles[0].totals[0].value;
  };
  EXPECT_EQ(total(Read({.body = "main;work a b 3\nmain;idle 2\r\n\n"})), 50'000'000);
  EXPECT_EQ(total(Read({.format = "folded", .sample_rate = "1000", .body = "main 5"})), 5'000'000);
  EXPECT_EQ(total(Read({.format = "lines", .body = "main;work\nmain;work\nmain\n"})), 30'000'000);
  EXPECT_EQ(total(Read({.sample_rate = "bad", .body = "main 1"})), 10'000'000);
  pprof::Profile profile;
  const PushResult push = Read({.body = "main;work 3"});
  ASSERT_TRUE(pprof::Decode(push.profiles[0].pprof, pprof::DecodeLimits{}, &profile).ok());
  ASSERT_EQ(profile.sample_locations.size(), 2U);  // leaf first
  EXPECT_EQ(profile.strings.Get(profile.functions[profile.sample_locations[0]].name), "work");
}

TEST(Ingest, ABodyWithoutStacksGivesNothing) {
  const std::string empty = Multipart("", "");
  const std::string no_file =
      "--X\r\nContent-Disposition: form-data; name=\"profile\"\r\n\r\nabc\r\n--X--\r\n";
  const std::string no_samples = File("hand_nosamples.pb.gz");
  const std::vector<IngestRequest> requests = {
      {.body = ""},
      {.format = "pprof", .body = ""},
      {.content_type = kMultipartType, .body = empty},
      {.content_type = kMultipartType, .body = no_file},
      {.format = "pprof", .body = no_samples},
  };
  for (const IngestRequest& request : requests) {
    const PushResult push = Read(request);
    EXPECT_TRUE(push.error.ok()) << push.error;
    EXPECT_TRUE(push.profiles.empty());
  }
}

TEST(Ingest, WhatCannotBeReadIsRefusedWithAReason) {
  const auto expect = [](const IngestRequest& request, const std::string& message) {
    const PushResult push = Read(request);
    EXPECT_TRUE(push.profiles.empty());
    EXPECT_NE(push.refusal, Refusal::kNone);
    EXPECT_THAT(ErrorMessage(push.error), HasSubstr(message));
  };
  const std::string bad_config = Multipart(File("sdk_go_cpu.pb.gz"), "{");
  const std::string previous =
      "--X\r\nContent-Disposition: form-data; name=\"prev_profile\"; filename=x\r\n\r\n\r\n--X--";
  const std::string good = Multipart(File("sdk_go_cpu.pb.gz"), "");
  expect({.body = "main;work"}, "line 1");
  expect({.body = "main 1\nmain -1"}, "line 2");
  expect({.body = "main\xff 1"}, "UTF-8");
  expect({.format = "jfr", .body = "x"}, "format 'jfr'");
  expect({.format = "pprof", .body = "garbage"}, "pprof");
  expect({.format = "pprof", .content_type = kMultipartType, .body = good}, "multipart");
  expect({.content_type = kMultipartType, .body = bad_config}, "sample_type_config");
  const std::string large_config = Multipart(File("sdk_go_cpu.pb.gz"), std::string(1 << 20, '['));
  expect({.content_type = kMultipartType, .body = large_config}, "sample_type_config is larger");
  expect({.content_type = kMultipartType, .body = previous}, "prev_profile");
  expect({.content_type = "multipart/form-data", .body = good}, "boundary");
  expect({.content_type = kMultipartType, .body = "--Y"}, "boundary");
  expect({.content_type = kMultipartType, .body = "--X\r\nA: b\r\n\r\nrest"}, "last boundary");
  expect({.content_type = kMultipartType, .body = "--X\r\nno colon\r\n\r\n--X--"}, "");
}

TEST(Ingest, PartsOfAFormAreBounded) {
  std::string body;
  for (int i = 0; i < 20; ++i)
    body += "--X\r\nA: b\r\n\r\n\r\n";
  EXPECT_THAT(ErrorMessage(ReadMultipart(kMultipartType, body + "--X--", 16).status()),
              HasSubstr("more than 16 parts"));
}

}  // namespace
}  // namespace flamefleet::store
