// SPDX-License-Identifier: Apache-2.0
// A whole store in this process, on a port of its own; time is the test's.
#pragma once

#include <gtest/gtest.h>

#include <memory>

#include "base/http/server.h"
#include "store/db/database.h"
#include "store/http/handler.h"
#include "store/ingest/push.h"
#include "tests/fakes/fake_clock.h"
#include "tests/store/store_client.h"
#include "tests/support/temp_dir.h"

namespace flamefleet::store {

constexpr int64_t kHour = 3600 * kNanosPerSecond;
constexpr int64_t kNow = (20'000 * 24 + 12) * kHour;  // noon of 2024-10-04

class StoreServerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Result<std::unique_ptr<Database>> database =
        Database::Open({.directory = dir_.path()}, &clock_, &metrics_);
    ASSERT_TRUE(database.ok()) << database.status();
    database_ = *std::move(database);
    handler_ = std::make_unique<StoreHandler>(database_.get(), &clock_, &metrics_);
    Result<std::unique_ptr<HttpServer>> server = HttpServer::Create(
        {.listen = "127.0.0.1:0",
         .max_body_bytes = PushLimits{}.max_request_bytes,
         .handler_threads = 4},
        [this](const HttpServerRequest& request) { return handler_->Handle(request); });
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }

  uint16_t port() const { return server_->port(); }

  void PushOrDie(const Labels& labels, const std::string& profile) {
    const Reply reply = Push(port(), PushBody(labels, {profile}));
    ASSERT_EQ(reply.status, 200) << reply.body;
  }

  TempDir dir_;
  FakeClock clock_{kNow};
  Metrics metrics_;
  std::unique_ptr<Database> database_;
  std::unique_ptr<StoreHandler> handler_;
  std::unique_ptr<HttpServer> server_;
};

}  // namespace flamefleet::store
