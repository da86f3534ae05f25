// SPDX-License-Identifier: Apache-2.0
// RestClient against a server whose answers the test chooses; the real server's are in
// reflector_apiserver_test.cc.
#include "operator/kube/rest_client.h"

#include <gtest/gtest.h>

#include <deque>

#include "base/http/server.h"
#include "base/mutex.h"
#include "tests/fakes/fake_clock.h"

namespace flamefleet {
namespace {

class RestClientTest : public testing::Test {
 protected:
  RestClientTest() {
    HttpServerOptions options;
    options.listen = "127.0.0.1:0";
    auto server = HttpServer::Create(
        options, [this](const HttpServerRequest& request) { return Handle(request); });
    FF_CHECK(server.ok());
    server_ = *std::move(server);
    client_ = NewClient({});
  }

  std::unique_ptr<RestClient> NewClient(RestClientOptions options) {
    ClientConfig config;
    config.base_url = "http://127.0.0.1:" + std::to_string(server_->port());
    config.path_prefix = "/prefix";
    config.token = "secret";
    auto client = RestClient::Create(config, clock_, metrics_, std::move(options));
    FF_CHECK(client.ok());
    return *std::move(client);
  }

  HttpServerResponse Handle(const HttpServerRequest& request) {
    MutexLock lock(&mutex_);
    requests_.push_back(request);
    if (answers_.empty()) return {500, "text/plain", "the test has no more answers", {}};
    HttpServerResponse answer = answers_.front();
    answers_.pop_front();
    return answer;
  }

  void WillAnswer(int status, const std::string& body, const std::string& retry_after = "") {
    HttpServerResponse answer{status, "application/json", body, {}};
    if (!retry_after.empty()) answer.headers["Retry-After"] = retry_after;
    MutexLock lock(&mutex_);
    answers_.push_back(answer);
  }
  std::vector<HttpServerRequest> Requests() {
    MutexLock lock(&mutex_);
    return requests_;
  }

  FakeClock clock_;
  Metrics metrics_;
  Mutex mutex_;
  std::deque<HttpServerResponse> answers_;
  std::vector<HttpServerRequest> requests_;
  std::unique_ptr<HttpServer> server_;
  std::unique_ptr<RestClient> client_;
};

TEST_F(RestClientTest, AnApplyIsAForcedPatchWithItsFieldManager) {
  WillAnswer(200, "{\"ok\":1}");
  const auto answer = client_->Apply({kDaemonSets, "ns", "agents", "mine", "{}", true});
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(*answer, "{\"ok\":1}");
  const HttpServerRequest request = Requests().at(0);
  EXPECT_EQ(request.method, "PATCH");
  EXPECT_EQ(request.path, "/prefix/apis/apps/v1/namespaces/ns/daemonsets/agents/status");
  EXPECT_EQ(request.QueryValue("fieldManager"), "mine");
  EXPECT_EQ(request.QueryValue("force"), "true");
  EXPECT_EQ(request.Header("content-type"), "application/apply-patch+yaml");
  EXPECT_EQ(request.Header("authorization"), "Bearer secret");
}

TEST_F(RestClientTest, ObjectsAreCreatedInTheirCollectionAndReplacedAtTheirName) {
  WillAnswer(201, "{}");
  WillAnswer(409, R"({"kind":"Status","reason":"Conflict"})");
  EXPECT_TRUE(client_->CreateObject(kLeases, "ns", "l", "{\"a\":1}").ok());
  EXPECT_EQ(client_->ReplaceObject(kLeases, "ns", "l", "{}").status().code(), StatusCode::kAborted);
  const std::string leases = "/prefix/apis/coordination.k8s.io/v1/namespaces/ns/leases";
  EXPECT_EQ(Requests().at(0).method, "POST");
  EXPECT_EQ(Requests().at(0).path, leases);
  EXPECT_EQ(Requests().at(0).body, "{\"a\":1}");
  EXPECT_EQ(Requests().at(1).method, "PUT");
  EXPECT_EQ(Requests().at(1).path, leases + "/l");
}

TEST_F(RestClientTest, WhoMayNotWriteSendsNothingButReads) {
  bool may_write = true;
  RestClientOptions options;
  options.may_write = [&] { return may_write ? OkStatus() : AbortedError("not the leader"); };
  const auto client = NewClient(options);
  WillAnswer(200, "{}");
  EXPECT_TRUE(client->Delete(kPods, "ns", "p").ok());
  may_write = false;
  EXPECT_EQ(client->Delete(kPods, "ns", "p").code(), StatusCode::kAborted);
  EXPECT_EQ(client->CreateObject(kPods, "ns", "p", "{}").status().code(), StatusCode::kAborted);
  EXPECT_EQ(client->Apply({kPods, "ns", "p", "mine", "{}", false}).status().code(),
            StatusCode::kAborted);
  EXPECT_EQ(Requests().size(), 1U);
  WillAnswer(200, "{}");
  EXPECT_TRUE(client->Get(kPods, "ns", "p").ok());
}

TEST_F(RestClientTest, WhoLosesTheRightDuringAWaitDoesNotSendAgain) {
  int asked = 0;
  RestClientOptions options;
  options.may_write = [&] { return ++asked == 1 ? OkStatus() : AbortedError("not the leader"); };
  WillAnswer(429, "{}", "0");
  EXPECT_EQ(NewClient(options)->Delete(kPods, "ns", "p").code(), StatusCode::kAborted);
  EXPECT_EQ(Requests().size(), 1U);
}

TEST_F(RestClientTest, WhatTheServerPutsOffIsSentAgain) {
  WillAnswer(429, "{}", "0");
  WillAnswer(503, "{}", "0");
  WillAnswer(200, "{}");
  EXPECT_TRUE(client_->Get(kPods, "ns", "p").ok());
  EXPECT_EQ(Requests().size(), 3U);
}

TEST_F(RestClientTest, AnErrorWithoutRetryAfterIsTheCallersToRetry) {
  WillAnswer(503, "{}");
  EXPECT_EQ(client_->Get(kPods, "ns", "p").status().code(), StatusCode::kUnavailable);
  WillAnswer(409, "{}", "0");
  EXPECT_EQ(client_->Get(kPods, "ns", "p").status().code(), StatusCode::kAborted);
  EXPECT_EQ(Requests().size(), 2U);
}

TEST_F(RestClientTest, PuttingOffHasAnEnd) {
  const int max_tries = RestClientOptions().max_tries;
  for (int i = 0; i < max_tries + 1; ++i)
    WillAnswer(429, "{}", "0");
  EXPECT_EQ(client_->Get(kPods, "ns", "p").status().code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(Requests().size(), static_cast<size_t>(max_tries));
}

TEST_F(RestClientTest, AWaitEndsWhenStopIsRequested) {
  WillAnswer(429, "{}", "10");
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ(client_->Get(kPods, "ns", "p", stop.get_token()).status().code(),
            StatusCode::kCancelled);
}

TEST_F(RestClientTest, TheBodyOfARefusedStreamIsItsErrorAndNeverReachesTheHandler) {
  WillAnswer(410, R"({"kind":"Status","reason":"Expired","message":"too old"})");
  bool called = false;
  const auto result = client_->Stream(
      {.verb = "watch", .path_and_query = "/api/v1/pods?watch=1"}, [&](Encoding) { called = true; },
      [&](std::string_view) {
        called = true;
        return OkStatus();
      },
      {});
  EXPECT_FALSE(called);
  ASSERT_TRUE(result.api_error.has_value());
  EXPECT_TRUE(result.api_error->IsExpired());
  EXPECT_EQ(ErrorMessage(result.status), "watch /api/v1/pods: too old");
}

TEST_F(RestClientTest, AnAnswerOfAnotherTypeIsNeverParsed) {
  WillAnswer(200, "hello");
  {
    MutexLock lock(&mutex_);
    answers_.back().content_type = "text/html";
  }
  const auto result = client_->Stream(
      {.verb = "list", .path_and_query = "/api/v1/pods", .protobuf = true}, [](Encoding) {},
      [](std::string_view) { return OkStatus(); }, {});
  EXPECT_EQ(result.status.code(), StatusCode::kDataLoss);
  EXPECT_NE(ErrorMessage(result.status).find("text/html"), std::string::npos) << result.status;
  EXPECT_EQ(Requests().at(0).Header("accept"),
            "application/vnd.kubernetes.protobuf, application/json");
}

TEST_F(RestClientTest, RequestsAreCountedByMethodAndCode) {
  WillAnswer(200, "{}");
  WillAnswer(418, "{}");
  (void)client_->Get(kPods, "ns", "p").ok();
  (void)client_->Get(kPods, "ns", "p").ok();
  const std::string text = metrics_.RenderText();
  const std::string host = "127.0.0.1:" + std::to_string(server_->port());
  for (const char* code : {"200", "other"}) {
    EXPECT_NE(text.find("rest_client_requests_total{code=\"" + std::string(code) + "\",host=\"" +
                        host + "\",method=\"GET\"} 1"),
              std::string::npos)
        << text;
  }
}

}  // namespace
}  // namespace flamefleet
