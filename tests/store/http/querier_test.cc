// SPDX-License-Identifier: Apache-2.0
// The requests of Grafana's Pyroscope data source (protobuf) and of the Perses plugin (JSON), as
// they are on the wire; `go tool pprof` judges the merge.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "base/gzip.h"
#include "base/pprof/profile.h"
#include "proto/pyroscope/querier.pb.h"
#include "tests/store/http/store_server.h"
#include "tests/support/command.h"
#include "tests/support/skip.h"

namespace flamefleet::store {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kService[] = "/querier.v1.QuerierService/";
constexpr char kCpu[] = "process_cpu:cpu:nanoseconds:cpu:nanoseconds";
constexpr int64_t kNowMs = kNow / kNanosPerMilli;

class QuerierTest : public StoreServerTest {
 protected:
  void SetUp() override {
    StoreServerTest::SetUp();
    for (int i = 0; i < 4; ++i)
      PushOrDie(SeriesLabels("shop"), CpuProfileAt(kNow - (i * 15 + 1) * kNanosPerSecond));
    Labels cart = SeriesLabels("cart");
    cart["k8s.pod.name"] = "cart-1";
    PushOrDie(cart, CpuProfileAt(kNow - kNanosPerSecond));
  }

  Reply Call(const std::string& method, const std::string& body, const std::string& type) {
    return Send(port(), "POST", kService + method, {{"Content-Type", type}}, body);
  }

  json CallJson(const std::string& method, const json& request) {
    const Reply reply = Call(method, request.dump(), "application/json");
    EXPECT_EQ(reply.status, 200) << reply.body;
    return json::parse(reply.body, nullptr, false);
  }

  // As connect-go sends it, answer in gzip.
  template <typename Response, typename Request>
  Response CallProto(const std::string& method, const Request& request) {
    const Reply reply = Send(port(), "POST", kService + method,
                             {{"Content-Type", "application/proto"},
                              {"Connect-Protocol-Version", "1"},
                              {"Accept-Encoding", "gzip"},
                              {"User-Agent", "connect-go/1.18.1 (go1.24.1)"}},
                             request.SerializeAsString());
    EXPECT_EQ(reply.status, 200) << reply.body;
    EXPECT_EQ(reply.headers.at("content-type"), "application/proto");
    std::string body = reply.body;
    if (reply.headers.contains("content-encoding")) body = *GunzipBounded(body, 1 << 20);
    Response response;
    EXPECT_TRUE(response.ParseFromString(body));
    return response;
  }

  template <typename Request>
  static Request CpuOf(const std::string& selector) {
    Request request;
    request.set_profile_typeid(kCpu);
    request.set_label_selector(selector);
    request.set_start(kNowMs - 3'600'000);
    request.set_end(kNowMs);
    return request;
  }

  static json Range(json request) {
    request["start"] = kNowMs - 3'600'000;
    request["end"] = std::to_string(kNowMs);  // a number may be a text
    return request;
  }
};

using Stacktraces = pyroscope::SelectMergeStacktracesRequest;

TEST_F(QuerierTest, ProfileTypesAreListedWithAndWithoutARange) {
  const json want = {{"profileTypes",
                      {{{"ID", kCpu},
                        {"name", "process_cpu"},
                        {"sampleType", "cpu"},
                        {"sampleUnit", "nanoseconds"},
                        {"periodType", "cpu"},
                        {"periodUnit", "nanoseconds"}},
                       {{"ID", "process_cpu:samples:count:cpu:nanoseconds"},
                        {"name", "process_cpu"},
                        {"sampleType", "samples"},
                        {"sampleUnit", "count"},
                        {"periodType", "cpu"},
                        {"periodUnit", "nanoseconds"}}}}};
  EXPECT_EQ(CallJson("ProfileTypes", json::object()), want);
  EXPECT_EQ(CallJson("ProfileTypes", Range({})), want);
  EXPECT_EQ(CallJson("ProfileTypes", {{"start", 1}, {"end", 2}}), json::object());
  const auto proto =
      CallProto<pyroscope::ProfileTypesResponse>("ProfileTypes", pyroscope::ProfileTypesRequest());
  EXPECT_EQ(proto.profile_types_size(), 2);
}

TEST_F(QuerierTest, LabelNamesAndValuesAreThoseOfTheMatchers) {
  pyroscope::LabelNamesRequest names;
  names.add_matchers("{__profile_type__=\"" + std::string(kCpu) + "\", service_name=\"cart\"}");
  names.set_start(kNowMs - 3'600'000);
  names.set_end(kNowMs);
  EXPECT_THAT(CallProto<pyroscope::LabelsResponse>("LabelNames", names).names(),
              ElementsAre("__name__", "__profile_type__", "k8s.pod.name", "service_name"));
  EXPECT_EQ(CallJson("LabelValues", Range({{"name", "service_name"}})),
            json({{"names", {"cart", "shop"}}}));
  EXPECT_EQ(CallJson("LabelValues", Range({{"name", "k8s.pod.name"}})),
            json({{"names", {"cart-1"}}}));
  EXPECT_EQ(CallJson("LabelValues",
                     Range({{"name", "service_name"}, {"matchers", {"{service_name=~\"s.*\"}"}}})),
            json({{"names", {"shop"}}}));
  EXPECT_EQ(CallJson("LabelValues", Range({{"name", "__profile_type__"}})),
            json({{"names", {kCpu, "process_cpu:samples:count:cpu:nanoseconds"}}}));
  EXPECT_EQ(CallJson("LabelValues", Range({{"name", "nothing"}})), json::object());
}

TEST_F(QuerierTest, SeriesAreLabelSets) {
  const json all = CallJson("Series", Range({{"matchers", json::array()}}));
  EXPECT_EQ(all.at("labelsSet").size(), 2U);
  EXPECT_EQ(CallJson("Series", Range({{"matchers", {"{service_name=\"shop\"}"}},
                                      {"labelNames", {"service_name"}}})),
            json({{"labelsSet", {{{"labels", {{{"name", "service_name"}, {"value", "shop"}}}}}}}}));
}

TEST_F(QuerierTest, FlameGraphHasTheMergeInRows) {
  auto request = CpuOf<Stacktraces>("{service_name=\"shop\"}");
  request.set_max_nodes(16384);
  const auto response =
      CallProto<pyroscope::SelectMergeStacktracesResponse>("SelectMergeStacktraces", request);
  const pyroscope::FlameGraph& graph = response.flamegraph();
  EXPECT_EQ(graph.total(), 240'000'000);
  EXPECT_EQ(graph.max_self(), 120'000'000);
  EXPECT_THAT(graph.names(),
              ElementsAre("total", "main.main", "main.work", "main.leafA", "main.leafB"));
  ASSERT_EQ(graph.levels_size(), 4);
  EXPECT_THAT(graph.levels(0).values(), ElementsAre(0, 240'000'000, 0, 0));
  EXPECT_THAT(graph.levels(3).values(),
              ElementsAre(0, 120'000'000, 120'000'000, 3, 0, 80'000'000, 80'000'000, 4));

  const json in_json =
      CallJson("SelectMergeStacktraces", Range({{"profileTypeID", kCpu}, {"labelSelector", "{}"}}));
  EXPECT_EQ(in_json.at("flamegraph").at("total"), "300000000");
  EXPECT_EQ(in_json.at("flamegraph").at("levels")[0],
            json({{"values", {"0", "300000000", "0", "0"}}}));
}

TEST_F(QuerierTest, NothingFoundIsAnEmptyAnswer) {
  const auto none = CpuOf<Stacktraces>("{service_name=\"nobody\"}");
  EXPECT_EQ(CallJson("SelectMergeStacktraces",
                     Range({{"profileTypeID", kCpu}, {"labelSelector", "{a=\"b\"}"}})),
            json({{"flamegraph",
                   {{"names", {"total"}}, {"levels", {{{"values", {"0", "0", "0", "0"}}}}}}}}));
  EXPECT_EQ(Call("SelectMergeProfile", none.SerializeAsString(), "application/proto").body, "");
  EXPECT_EQ(
      CallJson("SelectSeries",
               Range({{"profileTypeID", kCpu}, {"labelSelector", "{a=\"b\"}"}, {"step", 15}})),
      json::object());
}

TEST_F(QuerierTest, MergedProfileIsThatOfGooglePprof) {
  if (PprofTool().empty()) FF_SKIP("no Go: `go tool pprof` is the oracle");
  const Reply reply =
      Call("SelectMergeProfile", CpuOf<Stacktraces>("{service_name=\"shop\"}").SerializeAsString(),
           "application/proto");
  ASSERT_EQ(reply.status, 200);
  const auto top = [&](const std::vector<std::string>& profiles) {
    std::vector<std::string> argv = {PprofTool(), "-traces", "-symbolize=none", "-unit=raw"};
    for (size_t i = 0; i < profiles.size(); ++i) {
      argv.push_back(dir_.path() + "/" + std::to_string(i) + ".pb");
      std::ofstream(argv.back(), std::ios::binary) << profiles[i];
    }
    const CommandResult result = RunCommand(argv);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.out.substr(result.out.find("-----------+"));
  };
  const std::string got = top({reply.body});
  std::vector<std::string> pushed;
  for (int i = 0; i < 4; ++i)
    pushed.push_back(CpuProfileAt(kNow - (i * 15 + 1) * kNanosPerSecond));
  EXPECT_EQ(got, top(pushed));
  EXPECT_THAT(got, HasSubstr("main.leafA"));

  const json in_json =
      CallJson("SelectMergeProfile", Range({{"profileTypeID", kCpu}, {"labelSelector", "{}"}}));
  EXPECT_EQ(in_json.at("sampleType").size(), 1U);
  EXPECT_EQ(in_json.at("sample").size(), 3U);
}

TEST_F(QuerierTest, PointsOfASeriesAreAtStepsFromTheStart) {
  auto request = CpuOf<pyroscope::SelectSeriesRequest>("{}");
  request.set_step(15);
  request.add_group_by("service_name");
  const auto response = CallProto<pyroscope::SelectSeriesResponse>("SelectSeries", request);
  ASSERT_EQ(response.series_size(), 2);
  const pyroscope::TimeSeries& shop = response.series(0);  // the largest total first
  ASSERT_EQ(shop.labels_size(), 1);
  EXPECT_EQ(shop.labels(0).value(), "shop");
  ASSERT_EQ(shop.points_size(), 4);
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(shop.points(i).timestamp(), kNowMs - (3 - i) * 15'000);
    EXPECT_EQ(shop.points(i).value(), 60'000'000);
  }

  request.clear_group_by();
  request.set_step(3600);
  request.set_aggregation(pyroscope::TIME_SERIES_AGGREGATION_TYPE_AVERAGE);
  const auto average = CallProto<pyroscope::SelectSeriesResponse>("SelectSeries", request);
  ASSERT_EQ(average.series_size(), 1);
  EXPECT_EQ(average.series(0).labels_size(), 0);
  ASSERT_EQ(average.series(0).points_size(), 1);
  EXPECT_EQ(average.series(0).points(0).value(), 60'000'000);

  EXPECT_EQ(CallJson("SelectSeries", Range({{"profileTypeID", kCpu},
                                            {"labelSelector", "{}"},
                                            {"groupBy", {"service_name"}},
                                            {"step", 15},
                                            {"limit", "1"}}))
                .at("series")
                .size(),
            1U);
}

TEST_F(QuerierTest, DiffHasBothSidesInRows) {
  pyroscope::DiffRequest request;
  *request.mutable_left() = CpuOf<Stacktraces>("{service_name=\"cart\"}");
  *request.mutable_right() = CpuOf<Stacktraces>("{service_name=\"shop\"}");
  const auto response = CallProto<pyroscope::DiffResponse>("Diff", request);
  const pyroscope::FlameGraphDiff& graph = response.flamegraph();
  EXPECT_EQ(graph.leftticks(), 60'000'000);
  EXPECT_EQ(graph.rightticks(), 240'000'000);
  EXPECT_EQ(graph.total(), 300'000'000);
  EXPECT_THAT(graph.levels(0).values(), ElementsAre(0, 60'000'000, 0, 0, 240'000'000, 0, 0));
  EXPECT_EQ(graph.levels(3).values_size(), 14);
}

TEST_F(QuerierTest, BadRequestsAreRefusedWithACodeAndAReason) {
  const auto expect = [&](const std::string& method, const json& request, int status,
                          const std::string& code, const std::string& message) {
    const Reply reply = Call(method, request.dump(), "application/json");
    EXPECT_EQ(reply.status, status) << reply.body;
    const json error = json::parse(reply.body, nullptr, false);
    EXPECT_EQ(error.value("code", ""), code);
    EXPECT_THAT(error.value("message", ""), HasSubstr(message));
  };
  const json good = Range({{"profileTypeID", kCpu}, {"labelSelector", "{}"}});
  const auto with = [&](const std::string& key, const json& value) {
    json changed = good;
    changed[key] = value;
    return changed;
  };
  const std::string merge = "SelectMergeStacktraces";
  expect(merge, with("profileTypeID", ""), 400, "invalid_argument", "profileTypeID");
  expect(merge, with("profileTypeID", "process_cpu"), 400, "invalid_argument", "profileTypeID");
  expect(merge, with("labelSelector", ""), 400, "invalid_argument", "labelSelector");
  expect(merge, with("labelSelector", "{"), 400, "invalid_argument", "");
  expect(merge, with("start", 0), 400, "invalid_argument", "missing time range");
  expect(merge, with("start", kNowMs + 1), 400, "invalid_argument", "time range");
  expect(merge, with("end", INT64_MAX), 400, "invalid_argument", "time range");
  expect(merge, with("maxNodes", -1), 400, "invalid_argument", "maxNodes");
  expect(merge, with("format", "PROFILE_FORMAT_TREE"), 501, "unimplemented", "flame graphs");
  expect(merge, with("profileIdSelector", {"x"}), 501, "unimplemented", "profile id");
  expect("SelectSeries", good, 400, "invalid_argument", "step");
  expect("LabelValues", Range({}), 400, "invalid_argument", "name is required");
  expect("LabelNames", {{"matchers", {"{}"}}}, 400, "invalid_argument", "missing time range");
  expect("LabelNames", Range({{"matchers", json(65, "{}")}}), 400, "invalid_argument",
         "more than 64 matchers");
  expect("SelectHeatmap", good, 501, "unimplemented", "SelectHeatmap");
  EXPECT_EQ(Call(merge, "{", "application/json").status, 400);
  EXPECT_EQ(Call(merge, "\xff\xff", "application/proto").status, 400);
  EXPECT_EQ(Call(merge, "", "text/plain").status, 415);
  EXPECT_EQ(Get(port(), kService + merge).status, 405);
}

TEST_F(QuerierTest, QueryOverItsMemoryFailsAndTheServerServesOn) {
  StoreHandler small(database_.get(), &clock_, &metrics_, {.query_memory = 1000});
  HttpServerRequest request{.method = "POST",
                            .path = kService + std::string("SelectMergeStacktraces"),
                            .headers = {{"content-type", "application/proto"}},
                            .body = CpuOf<Stacktraces>("{}").SerializeAsString()};
  const HttpServerResponse response = small.Handle(request);
  EXPECT_EQ(response.status, 422);
  EXPECT_THAT(response.body, HasSubstr("choose a shorter time range"));
  EXPECT_EQ(small.Handle({.method = "GET", .path = "/top"}).status, 422);
  EXPECT_EQ(small.Handle({.method = "GET", .path = "/healthz"}).status, 200);
}

}  // namespace
}  // namespace flamefleet::store
