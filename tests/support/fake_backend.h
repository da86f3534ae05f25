// SPDX-License-Identifier: Apache-2.0
// FakeBackend: takes pushes over real HTTP and keeps them; how it answers is the test's choice.
//
// Thread: any; internally locked.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/http/server.h"
#include "proto/pyroscope/push.pb.h"

namespace flamefleet {

class FakeBackend {
 public:
  // Called with the number of the request, from 0.
  using Answer = std::function<HttpServerResponse(int)>;

  explicit FakeBackend(
      Answer answer = [](int) { return HttpServerResponse{}; },
      const std::string& listen = "127.0.0.1:0")
      : answer_(std::move(answer)) {
    auto server =
        HttpServer::Create({.listen = listen, .max_body_bytes = 8 << 20, .handler_threads = 8},
                           [this](const HttpServerRequest& request) {
                             int number = 0;
                             {
                               const std::lock_guard lock(mutex_);
                               number = static_cast<int>(requests_.size());
                               requests_.push_back(request);
                             }
                             return answer_(number);
                           });
    EXPECT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }

  std::string Url() const { return "http://127.0.0.1:" + std::to_string(server_->port()); }
  uint16_t port() const { return server_->port(); }

  std::vector<HttpServerRequest> Requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }
  size_t Count() const { return Requests().size(); }

  // The series of the request; its labels as text, "a=1,b=2".
  static pyroscope::RawProfileSeries SeriesOf(const HttpServerRequest& request) {
    pyroscope::PushRequest push;
    EXPECT_TRUE(push.ParseFromString(request.body));
    EXPECT_EQ(push.series_size(), 1);
    return push.series(0);
  }
  static std::string LabelsOf(const HttpServerRequest& request) {
    const pyroscope::RawProfileSeries series = SeriesOf(request);
    std::string text;
    for (const auto& label : series.labels()) {
      text += (text.empty() ? "" : ",") + label.name() + "=" + label.value();
    }
    return text;
  }

 private:
  const Answer answer_;
  mutable std::mutex mutex_;
  std::vector<HttpServerRequest> requests_;  // guarded by mutex_
  std::unique_ptr<HttpServer> server_;       // last: gone first
};

}  // namespace flamefleet
