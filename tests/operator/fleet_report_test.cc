// SPDX-License-Identifier: Apache-2.0
#include "operator/fleet_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "base/http/server.h"
#include "operator/fleet_publisher.h"

namespace flamefleet {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;

// What the browser test shows as well; tests run in the root of the repository.
json Example() {
  std::ifstream file("tests/data/fleet_report.json");
  return json::parse(file);
}

class FleetReportTest : public ::testing::Test {
 protected:
  static void Put(ObjectSink& store, const json& item, const json& spec) {
    json meta = {{"name", item.at("name")}};
    if (item.contains("namespace")) meta["namespace"] = item.at("namespace");
    const Status put =
        store.Upsert({{"metadata", meta}, {"spec", spec}, {"status", item.at("status")}});
    ASSERT_TRUE(put.ok()) << put;
  }
  void PutTarget(const json& item) {
    Put(cache_.targets, item, {{"selector", json::object()}, {"profiles", {{{"type", "cpu"}}}}});
  }

  Metrics metrics_;
  ClusterCache cache_{"flamefleet-system", metrics_};
};

TEST_F(FleetReportTest, HasTheStatusesAsTheyAreAndThoseThatAreNotReadyFirst) {
  const json example = Example();
  for (const json& item : example.at("pools").at("items"))
    Put(cache_.pools, item, json::object());
  for (const json& item : example.at("backends").at("items"))
    Put(cache_.backends, item, json::object());
  for (const json& item : example.at("targets").at("items"))
    PutTarget(item);
  EXPECT_EQ(json::parse(FleetReport(cache_)), example);
}

TEST_F(FleetReportTest, IsBoundedInItemsAndBytesAndSaysHowManyThereAre) {
  json item = Example().at("targets").at("items").at(0);
  for (int i = 0; i < 300; ++i) {
    item["name"] = "target-" + std::to_string(i);
    PutTarget(item);
  }
  json report = json::parse(FleetReport(cache_));
  EXPECT_EQ(report.at("targets").at("total"), 300);
  EXPECT_EQ(report.at("targets").at("items").size(), kMaxReportItems);

  item["status"]["failingPods"][0]["message"] = std::string(10'000, 'x');
  for (int i = 0; i < 300; ++i) {
    item["name"] = "target-" + std::to_string(i);
    PutTarget(item);
  }
  const std::string text = FleetReport(cache_);
  EXPECT_LE(text.size(), kMaxReportBytes);
  report = json::parse(text);
  EXPECT_EQ(report.at("targets").at("total"), 300);
  EXPECT_GT(report.at("targets").at("items").size(), 50U);
}

TEST(FleetPublisher, EachStoreIsToldAndOneThatIsAwayKeepsNobodyWaiting) {
  std::vector<std::string> heard;
  HttpServerOptions options;
  options.listen = "127.0.0.1:0";
  const auto server = HttpServer::Create(options, [&](const HttpServerRequest& request) {
    heard.push_back(request.Header("authorization") + " " + request.method + " " + request.path +
                    " " + request.body);
    return HttpServerResponse{.status = 204, .content_type = ""};
  });
  ASSERT_TRUE(server.ok()) << server.status();
  const std::string url = "http://127.0.0.1:" + std::to_string((*server)->port());
  std::vector<plan::Backend> stores(4);
  stores[0].endpoint = "http://127.0.0.1:1";
  stores[1].endpoint = "no url";
  stores[2] = {.endpoint = url, .authorization = "Bearer hush"};
  stores[3] = {.endpoint = url + "/other", .hold = true};  // without keys yet
  std::string report = R"({"pools":1})";
  FleetPublisher publisher([&] { return stores; }, [&] { return report; });
  publisher.Publish({});
  report = R"({"pools":2})";
  publisher.Publish({});
  EXPECT_THAT(heard, ElementsAre(R"(Bearer hush POST /fleet {"pools":1})",
                                 R"(Bearer hush POST /fleet {"pools":2})"));
  stores.clear();
  publisher.Publish({});
  EXPECT_EQ(heard.size(), 2U);
}

}  // namespace
}  // namespace flamefleet
