// SPDX-License-Identifier: Apache-2.0
// Push over real HTTP; the status codes are those that Pyroscope gives.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <google/protobuf/util/json_util.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "base/gzip.h"
#include "proto/pyroscope/push.pb.h"
#include "tests/store/http/store_server.h"

namespace flamefleet::store {
namespace {

using ::testing::HasSubstr;
using PushHandlerTest = StoreServerTest;

constexpr char kPath[] = "/push.v1.PusherService/Push";

std::string GoodBody() {
  return PushBody(SeriesLabels("shop"), {CpuProfileAt(kNow)});
}

void ExpectError(const Reply& reply, int status, const std::string& code,
                 const std::string& message) {
  EXPECT_EQ(reply.status, status) << reply.body;
  const nlohmann::json json = nlohmann::json::parse(reply.body, nullptr, false);
  ASSERT_TRUE(json.is_object()) << reply.body;
  EXPECT_EQ(json.at("code"), code);
  EXPECT_THAT(json.at("message").get<std::string>(), HasSubstr(message));
}

TEST_F(PushHandlerTest, ProtoIsAnsweredWithAnEmpty200) {
  const Reply reply = Push(port(), GoodBody());
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.body, "");
  EXPECT_EQ(reply.headers.at("content-type"), "application/proto");
}

TEST_F(PushHandlerTest, JsonIsTakenInBothSpellings) {
  pyroscope::PushRequest request;
  request.ParseFromString(GoodBody());
  std::string json;
  google::protobuf::util::MessageToJsonString(request, &json);
  ASSERT_THAT(json, HasSubstr("rawProfile"));
  Reply reply = Push(port(), json, "application/json");
  EXPECT_EQ(reply.status, 200) << reply.body;
  EXPECT_EQ(reply.body, "{}");
  json.replace(json.find("rawProfile"), 10, "raw_profile");
  json.insert(1, "\"unknown\":1,");
  reply = Push(port(), json, "application/json; charset=utf-8");
  EXPECT_EQ(reply.status, 200) << reply.body;
}

TEST_F(PushHandlerTest, GzipContentEncodingIsUnpacked) {
  const Headers headers = {{"Content-Type", "application/proto"}, {"Content-Encoding", "gzip"}};
  EXPECT_EQ(Send(port(), "POST", kPath, headers, *Gzip(GoodBody())).status, 200);
  ExpectError(Send(port(), "POST", kPath, headers, GoodBody()), 400, "invalid_argument", "gunzip");
  ExpectError(Send(port(), "POST", kPath, headers, *Gzip(std::string(80 << 20, '\0'))), 413,
              "resource_exhausted", "after decompression");
}

TEST_F(PushHandlerTest, OtherContentEncodingsAreUnimplemented) {
  for (const char* encoding : {"zstd", "br", "deflate"}) {
    ExpectError(
        Send(port(), "POST", kPath,
             {{"Content-Type", "application/proto"}, {"Content-Encoding", encoding}}, GoodBody()),
        501, "unimplemented", encoding);
  }
  EXPECT_EQ(
      Send(port(), "POST", kPath,
           {{"Content-Type", "application/proto"}, {"Content-Encoding", "identity"}}, GoodBody())
          .status,
      200);
}

TEST_F(PushHandlerTest, OtherContentTypesAreUnsupported) {
  for (const char* type : {"application/proto; charset=utf-8", "application/x-protobuf",
                           "application/octet-stream", "text/plain", "application/grpc"}) {
    const Reply reply = Push(port(), GoodBody(), type);
    EXPECT_EQ(reply.status, 415) << type;
    EXPECT_EQ(reply.body, "");
    EXPECT_THAT(reply.headers.at("accept-post"), HasSubstr("application/proto"));
  }
  EXPECT_EQ(Send(port(), "POST", kPath, {}, GoodBody()).status, 415);
}

TEST_F(PushHandlerTest, OtherMethodsAreNotAllowed) {
  for (const char* method : {"GET", "PUT", "DELETE"}) {
    const Reply reply = Send(port(), method, kPath);
    EXPECT_EQ(reply.status, 405) << method;
    EXPECT_EQ(reply.headers.at("allow"), "POST");
  }
}

TEST_F(PushHandlerTest, ConnectVersionIsOneOrAbsent) {
  const auto with_version = [&](const std::string& version) {
    return Send(port(), "POST", kPath,
                {{"Content-Type", "application/proto"}, {"Connect-Protocol-Version", version}},
                GoodBody());
  };
  EXPECT_EQ(with_version("1").status, 200);
  ExpectError(with_version("2"), 400, "invalid_argument", "must be 1");
}

TEST_F(PushHandlerTest, OtherPathsAreNotFound) {
  EXPECT_EQ(Send(port(), "POST", std::string(kPath) + "/", {}, GoodBody()).status, 405);
  EXPECT_EQ(Get(port(), std::string(kPath) + "/").status, 404);
  EXPECT_EQ(Get(port(), "/push.v1.PusherService/Pull").status, 404);
}

TEST_F(PushHandlerTest, BadInputIsRefusedWithAReasonAndTheStoreGoesOn) {
  const Labels labels = SeriesLabels("shop");
  ExpectError(Push(port(), "garbage"), 400, "invalid_argument", "not a push.v1.PushRequest");
  ExpectError(Push(port(), "{", "application/json"), 400, "invalid_argument", "in JSON");
  ExpectError(Push(port(), ""), 400, "invalid_argument", "no profiles received");
  ExpectError(Push(port(), PushBody(labels, {"text"})), 400, "invalid_argument", "pprof");
  ExpectError(Push(port(), PushBody({}, {CpuProfileAt(kNow)})), 400, "invalid_argument",
              "'__name__'");
  ExpectError(Push(port(), PushBody(labels, {CpuProfileAt(kNow - 73 * kHour)})), 400,
              "invalid_argument", "older than what this store keeps");
  ExpectError(Push(port(), PushBody(labels, {CpuProfileAt(kNow + kHour)})), 400, "invalid_argument",
              "in the future");
  ExpectError(Push(port(), PushBody(labels, {*Gzip(std::string(20 << 20, '\0'))})), 413,
              "resource_exhausted", "more than 16777216 bytes");
  EXPECT_EQ(Push(port(), std::string(65 << 20, 'x')).status, 413);

  const std::string metrics = Get(port(), "/metrics").body;
  for (const char* reason : {"malformed_request", "malformed_profile", "invalid_labels", "too_old",
                             "too_new", "too_large"}) {
    EXPECT_THAT(metrics, testing::Not(HasSubstr(std::string("{reason=\"") + reason + "\"} 0")));
  }
  EXPECT_EQ(Push(port(), GoodBody()).status, 200);
}

TEST_F(PushHandlerTest, GoodSeriesBesideABadOneAreStored) {
  pyroscope::PushRequest request;
  request.ParseFromString(GoodBody());
  pyroscope::PushRequest bad;
  bad.ParseFromString(PushBody(SeriesLabels("other"), {"text"}));
  request.MergeFrom(bad);
  EXPECT_EQ(Push(port(), request.SerializeAsString()).status, 400);
  EXPECT_THAT(Get(port(), "/top").body, HasSubstr("60.00ms"));
}

TEST_F(PushHandlerTest, IngestStoresAndIsAnsweredWithAnEmpty200) {
  for (const char* path : {"/ingest", "/pyroscope/ingest"}) {
    const Reply reply =
        Send(port(), "POST", path + std::string("?name=shop%7Bpod%3Da%7D&format=pprof"),
             {{"Content-Type", "application/octet-stream"}},
             CpuProfileAt(kNow - static_cast<int64_t>(std::strlen(path))));
    EXPECT_EQ(reply.status, 200) << reply.body;
    EXPECT_EQ(reply.body, "");
  }
  const Reply top = Get(port(), "/top", {{"query", "{service_name=\"shop\",pod=\"a\"}"}});
  EXPECT_THAT(top.body, HasSubstr("profiles  2 of 1 series"));
}

TEST_F(PushHandlerTest, IngestRefusesNamesWith400AndTheRestWith422) {
  const auto ingest = [&](const std::string& query, const std::string& body) {
    return Send(port(), "POST", "/ingest" + query, {}, body);
  };
  ExpectError(ingest("", "main 1"), 400, "invalid_argument", "want SERVICE");
  ExpectError(ingest("?name=a%20b", "main 1"), 400, "invalid_argument", "want SERVICE");
  ExpectError(ingest("?name=shop", "main"), 422, "invalid_argument", "line 1");
  ExpectError(ingest("?name=shop&format=pprof", "main"), 422, "invalid_argument", "pprof");
  ExpectError(ingest("?name=shop&format=pprof", CpuProfileAt(1)), 422, "invalid_argument", "older");
  EXPECT_EQ(Get(port(), "/ingest", {{"name", "shop"}}).status, 405);
}

}  // namespace
}  // namespace flamefleet::store
