// SPDX-License-Identifier: Apache-2.0
#include "operator/apply/status_writer.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/http/server.h"
#include "tests/fakes/fake_clock.h"

namespace flamefleet {
namespace {

using nlohmann::json;

json StatusOf(int pods, const std::string& ready, const std::string& reason) {
  return {{"pods", {{"matched", pods}}},
          {"conditions", {{{"type", "Ready"}, {"status", ready}, {"reason", reason}}}}};
}

// The server only counts writes and gives each a new version.
class StatusWriterTest : public testing::Test {
 protected:
  StatusWriterTest() {
    HttpServerOptions options;
    options.listen = "127.0.0.1:0";
    auto server = HttpServer::Create(options, [this](const HttpServerRequest&) {
      const json object = {{"metadata", {{"resourceVersion", std::to_string(100 + ++writes_)}}}};
      return HttpServerResponse{code_, "application/json", object.dump(), {}};
    });
    FF_CHECK(server.ok());
    server_ = *std::move(server);
    ClientConfig config;
    config.base_url = "http://127.0.0.1:" + std::to_string(server_->port());
    auto client = RestClient::Create(config, clock_, metrics_);
    FF_CHECK(client.ok());
    client_ = *std::move(client);
    writer_ = std::make_unique<StatusWriter>(*client_, own_writes_, clock_, metrics_);
    meta_.ns = "shop";
    meta_.name = "checkout";
    meta_.resource_version = "100";
  }

  std::chrono::nanoseconds Write(const json& live, const json& want) {
    const auto wait = writer_->Write(kProfilingTargets, meta_, live, want, {});
    EXPECT_TRUE(wait.ok()) << wait.status();
    return wait.value_or(std::chrono::nanoseconds(-1));
  }

  FakeClock clock_;
  Metrics metrics_;
  std::atomic<int> writes_ = 0;
  std::atomic<int> code_ = 200;
  std::unique_ptr<HttpServer> server_;
  std::unique_ptr<RestClient> client_;
  OwnWrites own_writes_{[](const Resource&) { return "100"; }};
  std::unique_ptr<StatusWriter> writer_;
  api::ObjectMeta meta_;
};

TEST_F(StatusWriterTest, WhatIsThereAlreadyIsNotWritten) {
  const json status = StatusOf(1, "True", "AllProfiled");
  EXPECT_EQ(Write(status, status), std::chrono::nanoseconds(0));
  EXPECT_EQ(writes_, 0);
}

TEST_F(StatusWriterTest, NumbersWaitForTheInterval) {
  const json one = StatusOf(1, "True", "AllProfiled");
  const json two = StatusOf(2, "True", "AllProfiled");
  Write(json::object(), one);
  meta_.resource_version = "101";
  EXPECT_EQ(Write(one, two), StatusWriter::kMinInterval);
  EXPECT_EQ(writes_, 1);
  clock_.Advance(std::chrono::nanoseconds(StatusWriter::kMinInterval).count());
  EXPECT_EQ(Write(one, two), std::chrono::nanoseconds(0));
  EXPECT_EQ(writes_, 2);
}

TEST_F(StatusWriterTest, AConditionThatFlipsIsWrittenAtOnce) {
  const json ready = StatusOf(1, "True", "AllProfiled");
  Write(json::object(), ready);
  meta_.resource_version = "101";
  Write(ready, StatusOf(1, "False", "PodsFailing"));
  EXPECT_EQ(writes_, 2);
}

TEST_F(StatusWriterTest, AWriteMustBeSeenBeforeItsKeyIsLookedAtAgain) {
  own_writes_.Begin("target/shop/checkout");
  Write(json::object(), StatusOf(1, "True", "AllProfiled"));
  EXPECT_FALSE(own_writes_.Seen("target/shop/checkout"));
}

TEST_F(StatusWriterTest, AStatusThatSomeoneElseChangedIsRepaired) {
  const json status = StatusOf(1, "True", "AllProfiled");
  Write(json::object(), status);
  meta_.resource_version = "102";
  Write(StatusOf(1, "False", "Vandalised"), status);
  EXPECT_EQ(writes_, 2);
}

TEST_F(StatusWriterTest, AnObjectThatIsGoneNeedsNoStatus) {
  code_ = 404;
  EXPECT_EQ(Write(json::object(), StatusOf(1, "True", "AllProfiled")), std::chrono::nanoseconds(0));
}

TEST_F(StatusWriterTest, AFailedWriteIsAnErrorAndIsTriedAgain) {
  code_ = 500;
  const json status = StatusOf(1, "True", "AllProfiled");
  EXPECT_EQ(writer_->Write(kProfilingTargets, meta_, {}, status, {}).status().code(),
            StatusCode::kUnavailable);
  code_ = 200;
  Write(json::object(), status);
  EXPECT_EQ(writes_, 2);
}

}  // namespace
}  // namespace flamefleet
