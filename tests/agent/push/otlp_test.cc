// SPDX-License-Identifier: Apache-2.0
// Pushes of OTLP profiles: what the OpenTelemetry collector's own receiver takes, as go tool pprof
// counts it, and what becomes of a profile that a server does not take.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <fstream>
#include <map>
#include <sstream>

#include "agent/push/otlp_request.h"
#include "base/base64.h"
#include "tests/agent/push/grpc_push.h"
#include "tests/base/pprof/test_profiles.h"
#include "tests/support/child_process.h"
#include "tests/support/command.h"
#include "tests/support/otlp_server.h"
#include "tests/support/skip.h"
#include "tests/support/temp_dir.h"

namespace flamefleet::agent {
namespace {

using ::testing::HasSubstr;

BackendConfig Otlp(const std::string& endpoint) {
  return {.name = "main", .endpoint = endpoint, .protocol = BackendProtocol::kOtlp};
}

// One sample, which cannot be split.
std::string OneSample() {
  pprof::Profile profile;
  profile.sample_types = {{profile.strings.Intern("cpu"), profile.strings.Intern("nanoseconds")}};
  profile.period_type = profile.sample_types[0];
  profile.functions.push_back({.name = profile.strings.Intern("work")});
  profile.lines.push_back({.function = 0});
  profile.locations.push_back({.line_count = 1});
  profile.sample_locations = {0};
  profile.samples.push_back({.location_count = 1});
  profile.values = {7};
  profile.time_ns = 1;
  return pprof::EncodeToString(profile);
}

// The functions and their values in one column of a profile.
std::string Totals(const std::string& file, const std::string& sample_type) {
  const CommandResult top =
      RunCommand({PprofTool(), "-top", "-symbolize=none", "-nodecount=0", "-nodefraction=0",
                  "-edgefraction=0", "-unit=ns", "-sample_index=" + sample_type, file});
  EXPECT_EQ(top.exit_code, 0) << top.err;
  const size_t rows = top.out.find("flat  flat%");
  return rows == std::string::npos ? top.out : top.out.substr(rows);
}

using OtlpTest = GrpcPushTest;

TEST_F(OtlpTest, TheCollectorReceivesEveryProfileWithEqualTotals) {
  if (PprofTool().empty()) FF_SKIP("no Go: `go tool pprof` is the oracle");
  ChildProcess collector({FF_OTLP_RECEIVE});
  Use(Otlp("http://127.0.0.1:" + collector.ReadLine()));
  // What arrives of each: a count of samples does not, beside its CPU time.
  const std::vector<std::pair<std::string, std::vector<std::string>>> files = {
      {"real_cpu.pb.gz", {"cpu"}},
      {"real_allocs.pb.gz", {"alloc_objects", "alloc_space", "inuse_objects", "inuse_space"}},
      {"real_block.pb.gz", {"contentions", "delay"}},
      {"real_goroutine.pb.gz", {"goroutine"}},
  };
  const TempDir directory;
  for (const auto& [name, types] : files) {
    PushProfile(pprof::ReadProfileFile(name), 0, ProfileType::kMutex);
    for (const std::string& type : types) {
      const nlohmann::json received =
          nlohmann::json::parse(collector.ReadLine(), nullptr, /*allow_exceptions=*/false);
      ASSERT_TRUE(received.is_object());
      EXPECT_EQ(received.at("resource"),
                (nlohmann::json{{"service.name", "shop"}, {"k8s.pod.name", "shop-1"}}));
      EXPECT_EQ(received.at("scope"), "mutex");
      const std::string path = directory.path() + "/" + type;
      std::ofstream(path, std::ios::binary)
          << *DecodeBase64(received.at("pprof").get<std::string>());
      EXPECT_EQ(Totals(path, type), Totals("tests/data/pprof/" + name, type)) << name << type;
    }
  }
  EXPECT_TRUE(Drain());
  EXPECT_TRUE(WaitUntil([&] { return Delivered() == static_cast<double>(files.size()); }));
}

TEST_F(OtlpTest, ARequestSaysItsVersionAndCredentials) {
  OtlpServer server;
  BackendConfig backend = Otlp(server.Url());
  backend.authorization = "Bearer hush";
  Use(backend);
  PushProfile(OneSample());
  ASSERT_TRUE(Drain());
  EXPECT_EQ(server.LastHeader("authorization"), "Bearer hush");
  EXPECT_EQ(server.LastHeader("otlp-profiles-development-version"), "1");
}

TEST_F(OtlpTest, AProfileThatIsRejectedIsDroppedWithItsReason) {
  OtlpServer server;
  server.rejects = "no profiles today";
  Use(Otlp(server.Url()));
  PushProfile(OneSample());
  ASSERT_TRUE(Drain());
  EXPECT_TRUE(WaitUntil([&] { return Dropped("BackendRefused") == 1; }));
  EXPECT_EQ(server.Requests().size(), 1U);
  EXPECT_EQ(Delivered(), 0);
}

TEST_F(OtlpTest, AServerThatComesBackAfterRefusedConnectionsGetsTheProfile) {
  ExpectRefusalsAreSurvived<OtlpServer>(BackendProtocol::kOtlp, OneSample());
}

TEST_F(OtlpTest, AConnectionThatIsCutInTheAnswerIsMadeAgain) {
  ExpectACutIsSurvived<OtlpServer>(BackendProtocol::kOtlp, OneSample());
}

TEST_F(OtlpTest, AHalfOpenConnectionCostsOneTimeOut) {
  ExpectAFrozenConnectionIsSurvived<OtlpServer>(BackendProtocol::kOtlp, OneSample());
}

TEST_F(OtlpTest, ALateAnswerIsNoAnswer) {
  ExpectALateAnswerIsNone<OtlpServer>(BackendProtocol::kOtlp, OneSample());
}

TEST(OtlpRequest, WhatIsNoPushIsNone) {
  EXPECT_FALSE(ToOtlp("not protobuf"));
  EXPECT_FALSE(ToOtlp(""));
}

class OtlpCodeTest : public OtlpTest, public ::testing::WithParamInterface<CodeFault> {};

TEST_P(OtlpCodeTest, TheTableHoldsAndTheNextProfileArrives) {
  ExpectTheTableHolds<OtlpServer>(GetParam(), BackendProtocol::kOtlp, OneSample(), OneSample());
}

INSTANTIATE_TEST_SUITE_P(Faults, OtlpCodeTest, ::testing::ValuesIn(kCodeFaults),
                         [](const auto& row) { return std::string(row.param.name); });

}  // namespace
}  // namespace flamefleet::agent
