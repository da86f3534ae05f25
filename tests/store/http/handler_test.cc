// SPDX-License-Identifier: Apache-2.0
// Queries over real HTTP; `go tool pprof` and promtool are the oracles.
#include "store/http/handler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/gzip.h"
#include "base/pprof/profile.h"
#include "tests/store/http/store_server.h"
#include "tests/support/command.h"
#include "tests/support/skip.h"

namespace flamefleet::store {
namespace {

using ::testing::HasSubstr;
using HandlerTest = StoreServerTest;

// A file of tests/data/pprof, moved to `time_ns`.
std::string FileAt(const std::string& file, int64_t time_ns) {
  std::ifstream in("tests/data/pprof/" + file, std::ios::binary);
  std::ostringstream bytes;
  bytes << in.rdbuf();
  pprof::Profile profile;
  FF_CHECK(pprof::Decode(bytes.str(), pprof::DecodeLimits{}, &profile).ok());
  profile.time_ns = time_ns;
  std::string encoded;
  pprof::Encode(profile, &encoded);
  return encoded;
}

nlohmann::json Json(const Reply& reply) {
  EXPECT_EQ(reply.status, 200) << reply.body;
  EXPECT_EQ(reply.headers.at("content-type"), "application/json");
  return nlohmann::json::parse(reply.body, nullptr, false);
}

TEST_F(HandlerTest, TopShowsTheHottestFunctions) {
  PushOrDie(SeriesLabels("shop"), CpuProfileAt(kNow - 60 * kNanosPerSecond));
  PushOrDie(SeriesLabels("shop"), CpuProfileAt(kNow));
  const Reply reply = Get(port(), "/top", {{"query", "{service_name=\"shop\"}"}});
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.body,
            "type      process_cpu:cpu:nanoseconds:cpu:nanoseconds\n"
            "range     2024-10-04T11:00:00.000Z to 2024-10-04T12:00:00.000Z\n"
            "profiles  2 of 1 series\n"
            "total     120.00ms\n"
            "\n"
            "        flat   flat%          cum    cum%  function\n"
            "     60.00ms  50.00%      60.00ms  50.00%  main.leafA\n"
            "     40.00ms  33.33%      40.00ms  33.33%  main.leafB\n"
            "     20.00ms  16.67%     120.00ms 100.00%  main.work\n"
            "         0ns   0.00%     120.00ms 100.00%  main.main\n");
}

TEST_F(HandlerTest, TopAsJsonHasTheSameNumbers) {
  PushOrDie(SeriesLabels("shop"), CpuProfileAt(kNow));
  const nlohmann::json json = Json(Get(port(), "/top", {{"format", "json"}, {"limit", "2"}}));
  EXPECT_EQ(json.at("total"), 60'000'000);
  EXPECT_EQ(json.at("unit"), "nanoseconds");
  EXPECT_EQ(json.at("functionCount"), 4);
  EXPECT_EQ(json.at("functions").size(), 2U);
  EXPECT_EQ(json.at("functions")[0],
            nlohmann::json({{"name", "main.leafA"}, {"flat", 30'000'000}, {"cum", 30'000'000}}));
  EXPECT_EQ(Json(Send(port(), "GET", "/top?limit=2", {{"Accept", "application/json"}})), json);
}

TEST_F(HandlerTest, TypeChoosesTheSampleType) {
  PushOrDie(SeriesLabels("shop", "memory"), FileAt("hand_mem.pb.gz", kNow));
  const auto total = [&](const std::string& query) {
    return Json(Get(port(), "/top", {{"query", query}, {"format", "json"}})).at("total");
  };
  EXPECT_EQ(total("memory"), 600);
  EXPECT_EQ(total("memory:alloc_space"), 6000);
  EXPECT_EQ(total("memory:alloc_objects:count"), 60);
  EXPECT_EQ(total("memory:inuse_objects:count:space:bytes"), 6);
  EXPECT_EQ(Get(port(), "/top", {{"query", "memory:wall"}}).status, 404);
}

TEST_F(HandlerTest, MatchersAndTimesChooseTheProfiles) {
  PushOrDie(SeriesLabels("shop"), CpuProfileAt(kNow - 30 * 60 * kNanosPerSecond));
  PushOrDie(SeriesLabels("cart"), CpuProfileAt(kNow - 10 * 60 * kNanosPerSecond));
  const auto profiles = [&](const std::map<std::string, std::string>& query) {
    const Reply reply = Get(port(), "/top", query);
    return reply.status == 200 ? reply.body.substr(reply.body.find("profiles"), 11) : reply.body;
  };
  EXPECT_EQ(profiles({}), "profiles  2");
  EXPECT_EQ(profiles({{"query", "process_cpu{service_name!=\"shop\"}"}}), "profiles  1");
  EXPECT_EQ(profiles({{"query", "process_cpu{service_name=~\"s.*\"}"}}), "profiles  1");
  EXPECT_EQ(profiles({{"from", "now-20m"}}), "profiles  1");
  EXPECT_EQ(profiles({{"from", "2024-10-04T11:00:00Z"}, {"until", "2024-10-04T11:40:00Z"}}),
            "profiles  1");
  EXPECT_EQ(profiles({{"from", std::to_string(kNow / kNanosPerSecond - 3600)},
                      {"until", std::to_string(kNow / kNanosPerMilli)}}),
            "profiles  2");
  EXPECT_THAT(profiles({{"from", "now-1m"}}), HasSubstr("no profile matches between"));
}

TEST_F(HandlerTest, PprofOpensTheDownloadAsAUrl) {
  if (PprofTool().empty()) FF_SKIP("no Go: `go tool pprof` is the oracle");
  PushOrDie(SeriesLabels("shop"), CpuProfileAt(kNow - 60 * kNanosPerSecond));
  PushOrDie(SeriesLabels("shop"), FileAt("real_cpu.pb.gz", kNow));
  PushOrDie(SeriesLabels("other"), FileAt("sdk_go_cpu.pb.gz", kNow));
  const std::string url = "http://127.0.0.1:" + std::to_string(port()) +
                          "/pprof?query=process_cpu{service_name=\"shop\"}&from=now-1h&until=now";
  const CommandResult got = RunCommand({"env", "PPROF_TMPDIR=" + dir_.path(), PprofTool(), "-top",
                                        "-symbolize=none", "-nodefraction=0", url});
  ASSERT_EQ(got.exit_code, 0) << got.err;

  const std::string one = dir_.path() + "/one.pb";
  const std::string two = dir_.path() + "/two.pb";
  std::ofstream(one, std::ios::binary) << CpuProfileAt(kNow - 60 * kNanosPerSecond);
  std::ofstream(two, std::ios::binary) << FileAt("real_cpu.pb.gz", kNow);
  const CommandResult want =
      RunCommand({PprofTool(), "-top", "-symbolize=none", "-nodefraction=0", one, two});
  EXPECT_EQ(got.out.substr(got.out.find("flat%")), want.out.substr(want.out.find("flat%")));
}

TEST_F(HandlerTest, PprofDownloadHasTheTotals) {
  PushOrDie(SeriesLabels("shop"), CpuProfileAt(kNow));
  const Reply reply = Get(port(), "/pprof");
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.headers.at("content-type"), "application/octet-stream");
  EXPECT_THAT(reply.headers.at("content-disposition"), HasSubstr(".pb.gz"));
  pprof::Profile profile;
  ASSERT_TRUE(pprof::Decode(reply.body, pprof::DecodeLimits{}, &profile).ok());
  EXPECT_EQ(pprof::TotalValue(profile, 0), 6);
  EXPECT_EQ(pprof::TotalValue(profile, 1), 60'000'000);
  EXPECT_EQ(profile.time_ns, kNow);
}

TEST_F(HandlerTest, SeriesAndLabelsAreListed) {
  PushOrDie(SeriesLabels("shop"), CpuProfileAt(kNow));
  Labels cart = SeriesLabels("cart", "memory");
  cart["k8s.pod/name"] = "cart-1";
  PushOrDie(cart, CpuProfileAt(kNow));
  EXPECT_EQ(Json(Get(port(), "/labels")),
            nlohmann::json({{"names", {"__name__", "k8s.pod/name", "service_name"}}}));
  EXPECT_EQ(Json(Get(port(), "/labels/service_name/values")),
            nlohmann::json({{"values", {"cart", "shop"}}}));
  EXPECT_EQ(Json(Get(port(), "/labels/k8s.pod%2Fname/values")),
            nlohmann::json({{"values", {"cart-1"}}}));
  EXPECT_EQ(Json(Get(port(), "/series", {{"query", "memory"}})),
            nlohmann::json({{"series", {cart}}}));
  EXPECT_EQ(Json(Get(port(), "/series")).at("series").size(), 2U);
  EXPECT_EQ(Json(Get(port(), "/series", {{"until", "now-30m"}})).at("series").size(), 0U);
}

TEST_F(HandlerTest, FlameGraphIsTheTreeOfTheMerge) {
  PushOrDie(SeriesLabels("shop"), CpuProfileAt(kNow - 60 * kNanosPerSecond));
  PushOrDie(SeriesLabels("shop"), CpuProfileAt(kNow));
  const nlohmann::json json = Json(Get(port(), "/flamegraph"));
  EXPECT_EQ(json.at("type"), "process_cpu:cpu:nanoseconds:cpu:nanoseconds");
  EXPECT_EQ(json.at("total"), 120'000'000);
  EXPECT_EQ(json.at("profiles"), 2);
  EXPECT_EQ(json.at("pruned"), nlohmann::json({{"nodes", 0}, {"self", 0}}));
  EXPECT_FALSE(json.contains("baseline"));
  const nlohmann::json& nodes = json.at("nodes");
  ASSERT_EQ(nodes.at("total").size(), 5U);
  EXPECT_EQ(nodes.at("total")[0], 120'000'000);
  EXPECT_EQ(nodes.at("parent")[1], 0);
  const nlohmann::json& functions = json.at("functions");
  for (size_t i = 0; i < functions.at("name").size(); ++i) {
    if (functions.at("name")[i] != "main.work") continue;
    EXPECT_EQ(functions.at("self")[i], 20'000'000);
    EXPECT_EQ(functions.at("total")[i], 120'000'000);
  }
}

TEST_F(HandlerTest, FlameGraphComparesWithABaseline) {
  PushOrDie(SeriesLabels("shop"), CpuProfileAt(kNow));
  PushOrDie(SeriesLabels("cart"), CpuProfileAt(kNow - 60 * kNanosPerSecond));
  PushOrDie(SeriesLabels("cart"), CpuProfileAt(kNow));
  PushOrDie(SeriesLabels("shop", "memory"), FileAt("hand_mem.pb.gz", kNow));
  const auto compare = [&](const std::string& baseline) {
    return Get(port(), "/flamegraph",
               {{"query", "process_cpu{service_name=\"shop\"}"}, {"baseline-query", baseline}});
  };
  const nlohmann::json json = Json(compare("process_cpu{service_name=\"cart\"}"));
  EXPECT_EQ(json.at("total"), 60'000'000);
  EXPECT_EQ(json.at("baseline").at("total"), 120'000'000);
  EXPECT_EQ(json.at("baseline").at("nodes").at("total").size(),
            json.at("nodes").at("total").size());
  EXPECT_EQ(compare("memory").status, 422);
  const Reply none = compare("process_cpu{service_name=\"nobody\"}");
  EXPECT_EQ(none.status, 404);
  EXPECT_THAT(none.body, HasSubstr("baseline: no profile matches"));
}

TEST_F(HandlerTest, TimelineSumsByStepAndLabel) {
  PushOrDie(SeriesLabels("shop"), CpuProfileAt(kNow - 100 * kNanosPerSecond));
  PushOrDie(SeriesLabels("shop"), CpuProfileAt(kNow - 90 * kNanosPerSecond));
  PushOrDie(SeriesLabels("shop"), CpuProfileAt(kNow));
  PushOrDie(SeriesLabels("cart"), CpuProfileAt(kNow));
  const nlohmann::json json = Json(Get(port(), "/timeline",
                                       {{"query", "process_cpu:cpu"},
                                        {"from", "now-120s"},
                                        {"step", "60"},
                                        {"by", "service_name"}}));
  EXPECT_EQ(json.at("unit"), "nanoseconds");
  EXPECT_EQ(json.at("lines"),
            nlohmann::json::parse(
                R"([{"value": "shop", "total": 180000000, "points": [120000000, 0, 60000000]},
                    {"value": "cart", "total": 60000000, "points": [0, 0, 60000000]}])"));
  const nlohmann::json largest =
      Json(Get(port(), "/timeline", {{"by", "service_name"}, {"limit", "1"}}));
  EXPECT_EQ(largest.at("lines").size(), 1U);
  EXPECT_EQ(largest.at("lineCount"), 2);
  EXPECT_EQ(largest.at("total"), 240'000'000);
  const nlohmann::json together = Json(Get(port(), "/timeline", {{"step", "3600"}}));
  EXPECT_EQ(together.at("lines")[0].at("total"), 240'000'000);
  EXPECT_EQ(together.at("type"), "process_cpu:cpu:nanoseconds:cpu:nanoseconds");
  EXPECT_EQ(Get(port(), "/timeline", {{"step", "1"}}).status, 400);
  EXPECT_EQ(Json(Get(port(), "/timeline", {{"query", "wall"}})).at("lineCount"), 0);
  const nlohmann::json ever = Json(Get(
      port(), "/timeline", {{"from", "0001-01-01T00:00:00Z"}, {"until", "9999-12-31T00:00:00Z"}}));
  EXPECT_EQ(ever.at("lines")[0].at("total"), 240'000'000);
}

// Two pods, one of which ends after a minute of two; each has 600 bytes in use.
TEST_F(HandlerTest, LevelsAreMeansAndWhatWasSpentIsASum) {
  const auto push = [&](const char* pod, int64_t seconds_ago) {
    Labels labels = SeriesLabels("shop", "memory");
    labels["pod"] = pod;
    PushOrDie(labels, FileAt("hand_mem.pb.gz", kNow - seconds_ago * kNanosPerSecond));
  };
  for (const int64_t ago : {120, 105, 90, 75, 60, 45, 30, 15})
    push("stays", ago);
  for (const int64_t ago : {120, 105, 90, 75})
    push("ends", ago);
  const auto line = [&](const std::string& type, const std::string& by) {
    return Json(Get(port(), "/timeline",
                    {{"query", type}, {"from", "now-120s"}, {"step", "30"}, {"by", by}}))
        .at("lines");
  };
  EXPECT_EQ(line("memory:inuse_space", "")[0].at("points"),
            nlohmann::json({1200, 1200, 600, 600, 600}));
  EXPECT_EQ(line("memory:inuse_space", "")[0].at("total"), 900);
  EXPECT_EQ(line("memory:inuse_space", "pod")[0].at("total"), 600);
  EXPECT_EQ(line("memory:inuse_space", "pod")[1].at("total"), 600);
  EXPECT_EQ(line("memory:alloc_space", "")[0].at("total"), 12 * 6000);

  const auto total = [&](const std::string& type, const std::string& levels) {
    return Json(Get(port(), "/top",
                    {{"query", type}, {"from", "now-1h"}, {"levels", levels}, {"format", "json"}}))
        .at("total");
  };
  EXPECT_EQ(total("memory:inuse_space", ""), 900);
  EXPECT_EQ(total("memory:inuse_space", "mean"), 900);
  EXPECT_EQ(total("memory:inuse_space", "sum"), 12 * 600);
  EXPECT_EQ(total("memory:alloc_space", ""), 12 * 6000);
  EXPECT_EQ(Get(port(), "/top", {{"levels", "most"}}).status, 400);
  EXPECT_EQ(Json(Get(port(), "/flamegraph", {{"query", "memory:inuse_space"}})).at("total"), 900);
}

TEST_F(HandlerTest, ALevelHoldsUntilItsNextProfileAndNotWhileItsSeriesIsAway) {
  const auto push = [&](int64_t seconds_ago) {
    PushOrDie(SeriesLabels("shop", "memory"),
              FileAt("hand_mem.pb.gz", kNow - seconds_ago * kNanosPerSecond));
  };
  for (const int64_t ago : {700, 640, 580, 120, 60})
    push(ago);
  const nlohmann::json points =
      Json(Get(port(), "/timeline",
               {{"query", "memory:inuse_space"}, {"from", "now-600s"}, {"step", "60"}}))
          .at("lines")[0]
          .at("points");
  // The profile of 640 s ago holds at the start of the range; that of 580 s ago for a minute more.
  EXPECT_EQ(points, nlohmann::json({600, 200, 0, 0, 0, 0, 0, 0, 600, 600, 600}));
}

TEST_F(HandlerTest, TypesAreThoseThatWereStored) {
  PushOrDie(SeriesLabels("shop"), CpuProfileAt(kNow));
  PushOrDie(SeriesLabels("shop", "memory"), FileAt("hand_mem.pb.gz", kNow));
  std::map<std::string, bool> types;
  const nlohmann::json json = Json(Get(port(), "/types"));
  for (const nlohmann::json& type : json.at("types"))
    types[type.at("type")] = type.at("default");
  EXPECT_EQ(types.at("process_cpu:samples:count:cpu:nanoseconds"), false);
  EXPECT_EQ(types.at("process_cpu:cpu:nanoseconds:cpu:nanoseconds"), true);
  EXPECT_EQ(types.at("memory:inuse_space:bytes:space:bytes"), true);
  EXPECT_EQ(types.size(), 6U);
  EXPECT_EQ(Json(Get(port(), "/types", {{"until", "now-30m"}})).at("types").size(), 0U);
}

TEST_F(HandlerTest, LargeAnswersAreCompressedForThoseWhoAccept) {
  PushOrDie(SeriesLabels("shop"), FileAt("hand_deep1500.pb.gz", kNow));
  const Reply plain = Get(port(), "/flamegraph");
  const Reply compressed = Send(port(), "GET", "/flamegraph", {{"Accept-Encoding", "gzip, br"}});
  EXPECT_EQ(compressed.headers.at("content-encoding"), "gzip");
  const Result<std::string> body = GunzipBounded(compressed.body, 16 << 20);
  ASSERT_TRUE(body.ok()) << body.status();
  EXPECT_EQ(*body, plain.body);
}

TEST_F(HandlerTest, BrowsersGetTheUi) {
  const Reply page = Send(port(), "GET", "/", {{"Accept", "text/html,*/*"}});
  EXPECT_EQ(page.status, 200);
  EXPECT_THAT(page.body, HasSubstr("<div id=\"app\">"));
  EXPECT_THAT(page.headers.at("content-security-policy"), HasSubstr("script-src 'self'"));
  const Reply again =
      Send(port(), "GET", "/index.html", {{"If-None-Match", page.headers.at("etag")}});
  EXPECT_EQ(again.status, 304);
  EXPECT_EQ(again.body, "");
  EXPECT_THAT(Get(port(), "/speedscope/").body, HasSubstr("speedscope"));
  for (const char* path : {"/../../etc/passwd", "/speedscope/../index.html", "/assets/"})
    EXPECT_EQ(Send(port(), "GET", path).status, 404) << path;
}

TEST_F(HandlerTest, FleetIsShownAsTheOperatorSaidItLast) {
  EXPECT_EQ(Get(port(), "/fleet").status, 404);
  EXPECT_EQ(Send(port(), "POST", "/fleet", {}, R"({"pools":{"total":1}})").status, 204);
  EXPECT_EQ(Send(port(), "POST", "/fleet", {}, R"({"pools":{"total":2}})").status, 204);
  clock_.Advance(7 * kNanosPerSecond);
  const nlohmann::json shown = Json(Get(port(), "/fleet"));
  EXPECT_EQ(shown.at("fleet").at("pools").at("total"), 2);
  EXPECT_EQ(shown.at("ageSeconds"), 7);
  // What is no object, or too large, changes nothing.
  for (const std::string bad : {"", "[]", "{", "{} {}", "{\"a\": \xff}"})
    EXPECT_EQ(Send(port(), "POST", "/fleet", {}, bad).status, 400) << bad;
  EXPECT_EQ(Send(port(), "POST", "/fleet", {}, "{" + std::string(3 << 20, ' ') + "}").status, 413);
  EXPECT_EQ(Send(port(), "DELETE", "/fleet").status, 405);
  EXPECT_EQ(Json(Get(port(), "/fleet")).at("fleet"), shown.at("fleet"));
}

TEST_F(HandlerTest, BadQueriesSayWhatIsWrong) {
  PushOrDie(SeriesLabels("shop"), CpuProfileAt(kNow));
  PushOrDie(SeriesLabels("py"), FileAt("sdk_py_cpu.pb", kNow));
  const auto expect = [&](const std::string& path, const std::map<std::string, std::string>& query,
                          int status, const std::string& message) {
    const Reply reply = Get(port(), path, query);
    EXPECT_EQ(reply.status, status) << reply.body;
    EXPECT_THAT(reply.body, HasSubstr(message));
  };
  expect("/top", {{"query", "a{"}}, 400, "query, character 3: want a label name");
  expect("/pprof", {{"from", "yesterday"}}, 400, "time 'yesterday'");
  expect("/series", {{"from", "now"}, {"until", "now-1h"}}, 400, "is before from");
  expect("/top", {{"limit", "0"}}, 400, "limit '0': want 1 to 10000");
  expect("/top", {{"limit", "ten"}}, 400, "limit 'ten'");
  expect("/top", {{"format", "xml"}}, 400, "want text or json");
  expect("/pprof", {}, 422, "name the one you want, as in process_cpu:cpu");
  expect("/pprof", {{"query", "process_cpu:cpu"}}, 200, "");
  expect("/nothing", {}, 404, "GET / lists what there is");
  EXPECT_EQ(Send(port(), "POST", "/top").status, 405);
}

TEST_F(HandlerTest, NamesCannotControlATerminal) {
  pprof::Profile profile;
  ASSERT_TRUE(pprof::Decode(CpuProfileAt(kNow), pprof::DecodeLimits{}, &profile).ok());
  for (pprof::Function& function : profile.functions) {
    function.name = profile.strings.Intern("\x1b[31mred\n");
  }
  std::string encoded;
  pprof::Encode(profile, &encoded);
  PushOrDie(SeriesLabels("shop"), encoded);
  EXPECT_THAT(Get(port(), "/top").body, HasSubstr("?[31mred?\n"));
}

TEST_F(HandlerTest, MetricsPassPromtool) {
  PushOrDie(SeriesLabels("shop"), CpuProfileAt(kNow));
  Get(port(), "/top");
  const Reply reply = Get(port(), "/metrics");
  EXPECT_EQ(reply.status, 200);
  EXPECT_THAT(reply.body, HasSubstr("flamefleet_store_profiles_stored_total 1"));
  EXPECT_THAT(reply.body,
              HasSubstr("flamefleet_store_requests_total{code=\"2xx\",route=\"top\"} 1"));
  const CommandResult checked = RunCommand({"promtool", "check", "metrics"}, reply.body);
  if (checked.exit_code == 127) FF_SKIP("promtool (package prometheus) is not installed");
  EXPECT_EQ(checked.exit_code, 0) << checked.out << checked.err;
  EXPECT_EQ(checked.out + checked.err, "");
}

TEST_F(HandlerTest, RootListsTheRoutes) {
  const std::string body = Get(port(), "/").body;
  for (const char* route : {"/push.v1.PusherService/Push", "/pprof", "/top", "/flamegraph",
                            "/timeline", "/types", "/series", "/labels"}) {
    EXPECT_THAT(body, HasSubstr(route));
  }
  EXPECT_EQ(Get(port(), "/healthz").status, 200);
  EXPECT_EQ(Get(port(), "/readyz").status, 200);
}

}  // namespace
}  // namespace flamefleet::store
