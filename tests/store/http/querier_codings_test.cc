// SPDX-License-Identifier: Apache-2.0
// Each method of the query API in protobuf and in JSON, as Grafana's data source and other clients
// send them: one answer, and what it counts is what google/pprof makes of the same profiles.
#include <gmock/gmock.h>
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>

#include "base/pprof/profile.h"
#include "proto/pyroscope/querier.pb.h"
#include "tests/base/pprof/test_profiles.h"
#include "tests/store/http/store_server.h"
#include "tests/support/command.h"
#include "tests/support/skip.h"

namespace flamefleet::store {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

constexpr char kCpu[] = "process_cpu:cpu:nanoseconds:cpu:nanoseconds";
constexpr int64_t kNowMs = kNow / kNanosPerMilli;

// Value by stack, "root;...;leaf".
using Folded = std::map<std::string, int64_t>;

class CodingsTest : public StoreServerTest {
 protected:
  void SetUp() override {
    StoreServerTest::SetUp();
    for (const auto& [service, count] : {std::pair("shop", 4), std::pair("cart", 2)}) {
      for (int i = 0; i < count; ++i) {
        const std::string profile = CpuProfileAt(kNow - (i * 15 + 1) * kNanosPerSecond);
        PushOrDie(SeriesLabels(service), profile);
        pushed_[service].push_back(profile);
      }
    }
  }

  // The answer, which is the same in both codings.
  template <typename Response, typename Request>
  Response Call(const std::string& method, const Request& request) {
    const std::string path = "/querier.v1.QuerierService/" + method;
    const Reply binary = Send(port(), "POST", path, {{"Content-Type", "application/proto"}},
                              request.SerializeAsString());
    EXPECT_EQ(binary.status, 200) << method << ": " << binary.body;
    Response response;
    EXPECT_TRUE(response.ParseFromString(binary.body)) << method;

    std::string text;
    EXPECT_TRUE(google::protobuf::util::MessageToJsonString(request, &text).ok());
    const Reply json = Send(port(), "POST", path, {{"Content-Type", "application/json"}}, text);
    EXPECT_EQ(json.status, 200) << method << ": " << json.body;
    Response same;
    EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(json.body, &same).ok()) << json.body;
    EXPECT_EQ(same.DebugString(), response.DebugString()) << method;
    return response;
  }

  template <typename Request>
  static Request InRange() {
    Request request;
    request.set_start(kNowMs - 3'600'000);
    request.set_end(kNowMs);
    return request;
  }
  template <typename Request>
  static Request CpuOf(const std::string& service) {
    auto request = InRange<Request>();
    request.set_profile_typeid(kCpu);
    request.set_label_selector("{service_name=\"" + service + "\"}");
    return request;
  }

  // CPU time of all that was pushed for the service, as google/pprof merges it.
  Folded MergeOfPprof(const std::string& service) {
    const std::string out = dir_.path() + "/merged.pb";
    std::vector<std::string> argv = {PprofTool(), "-proto", "-symbolize=none", "-output", out};
    for (size_t i = 0; i < pushed_[service].size(); ++i) {
      argv.push_back(dir_.path() + "/" + service + std::to_string(i) + ".pb");
      std::ofstream(argv.back(), std::ios::binary) << pushed_[service][i];
    }
    const CommandResult run = RunCommand(argv);
    EXPECT_EQ(run.exit_code, 0) << run.err;
    std::ifstream in(out, std::ios::binary);
    return FoldedOf(pprof::DecodeOrDie(std::string(std::istreambuf_iterator<char>(in), {})));
  }

  static Folded FoldedOf(const pprof::Profile& profile) {
    Folded folded;
    const size_t width = profile.sample_types.size();
    for (size_t i = 0; i < profile.samples.size(); ++i) {
      const pprof::Sample& sample = profile.samples[i];
      std::string stack;
      for (uint32_t j = sample.location_count; j-- > 0;) {
        const uint32_t location = profile.sample_locations[sample.first_location + j];
        const pprof::Line& line = profile.lines[profile.locations[location].first_line];
        stack += std::string(profile.strings.Get(profile.functions[line.function].name)) + ";";
      }
      folded[stack] += profile.values[i * width + width - 1];  // cpu is the last column
    }
    return folded;
  }

  // Rows of `fields` numbers: offset, total and self of one or two sides, and a name at last.
  template <typename Graph>
  static Folded FoldedOf(const Graph& graph, int fields, int side) {
    struct Node {
      int64_t begin = 0;
      int64_t end = 0;
      std::string stack;
    };
    Folded folded;
    std::vector<Node> above = {{0, INT64_MAX, ""}};
    for (int level = 0; level < graph.levels_size(); ++level) {
      const auto& values = graph.levels(level).values();
      std::vector<Node> row;
      int64_t at = 0;
      for (int i = 0; i + fields <= values.size(); i += fields) {
        const int64_t begin = at + values[i + 3 * side];
        at = begin + values[i + 3 * side + 1];
        const std::string name = graph.names(static_cast<int>(values[i + fields - 1]));
        const auto parent = std::ranges::find_if(above, [&](const Node& node) {
          return node.begin <= begin && begin < std::max(node.end, node.begin + 1);
        });
        EXPECT_NE(parent, above.end());
        row.push_back({begin, at, level == 0 ? "" : parent->stack + name + ";"});
        if (values[i + 3 * side + 2] != 0) folded[row.back().stack] += values[i + 3 * side + 2];
      }
      above = std::move(row);
    }
    return folded;
  }

  std::map<std::string, std::vector<std::string>> pushed_;
};

TEST_F(CodingsTest, TypesAndLabelsAreTheSame) {
  EXPECT_THAT(Call<pyroscope::ProfileTypesResponse>("ProfileTypes",
                                                    InRange<pyroscope::ProfileTypesRequest>())
                  .profile_types(),
              SizeIs(2));
  auto names = InRange<pyroscope::LabelNamesRequest>();
  names.add_matchers("{service_name=\"shop\"}");
  EXPECT_THAT(Call<pyroscope::LabelsResponse>("LabelNames", names).names(),
              ElementsAre("__name__", "__profile_type__", "service_name"));
  auto values = InRange<pyroscope::LabelValuesRequest>();
  values.set_name("service_name");
  EXPECT_THAT(Call<pyroscope::LabelsResponse>("LabelValues", values).names(),
              ElementsAre("cart", "shop"));
  auto series = InRange<pyroscope::SeriesRequest>();
  series.add_label_names("service_name");
  EXPECT_THAT(Call<pyroscope::SeriesResponse>("Series", series).labels_set(), SizeIs(2));
}

TEST_F(CodingsTest, MergesAreTheSameAndThoseOfGooglePprof) {
  if (PprofTool().empty()) FF_SKIP("no Go: `go tool pprof` is the oracle");
  for (const char* service : {"shop", "cart"}) {
    const Folded want = MergeOfPprof(service);
    const auto stacks = Call<pyroscope::SelectMergeStacktracesResponse>(
        "SelectMergeStacktraces", CpuOf<pyroscope::SelectMergeStacktracesRequest>(service));
    EXPECT_EQ(FoldedOf(stacks.flamegraph(), 4, 0), want);

    const std::string path = "/querier.v1.QuerierService/SelectMergeProfile";
    const auto request = CpuOf<pyroscope::SelectMergeProfileRequest>(service);
    const Reply merged = Send(port(), "POST", path, {{"Content-Type", "application/proto"}},
                              request.SerializeAsString());
    EXPECT_EQ(FoldedOf(pprof::DecodeOrDie(merged.body)), want);

    int64_t total = 0;
    for (const auto& [stack, value] : want)
      total += value;
    auto points = CpuOf<pyroscope::SelectSeriesRequest>(service);
    points.set_step(15);
    double sum = 0;
    const auto lines = Call<pyroscope::SelectSeriesResponse>("SelectSeries", points);
    for (const auto& line : lines.series()) {
      for (const auto& point : line.points())
        sum += point.value();
    }
    EXPECT_EQ(sum, static_cast<double>(total));
  }
  pyroscope::DiffRequest diff;
  *diff.mutable_left() = CpuOf<pyroscope::SelectMergeStacktracesRequest>("cart");
  *diff.mutable_right() = CpuOf<pyroscope::SelectMergeStacktracesRequest>("shop");
  const auto both = Call<pyroscope::DiffResponse>("Diff", diff);
  EXPECT_EQ(FoldedOf(both.flamegraph(), 7, 0), MergeOfPprof("cart"));
  EXPECT_EQ(FoldedOf(both.flamegraph(), 7, 1), MergeOfPprof("shop"));
}

}  // namespace
}  // namespace flamefleet::store
