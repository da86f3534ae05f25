// SPDX-License-Identifier: Apache-2.0
#include "base/http/fetch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <latch>
#include <thread>

#include "base/http/server.h"
#include "tests/support/raw_socket.h"

namespace flamefleet {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

FetchOptions To(uint16_t port) {
  return {.address = "127.0.0.1", .port = port, .max_body_bytes = 100'000};
}

// Reads the request, then answers with `answer` again and again if `endless`, and closes.
RawServer Answering(const std::string& answer, bool endless = false,
                    const std::string& first = "") {
  return RawServer([=](RawSocket& socket) {
    socket.ReceiveUntil("\r\n\r\n");
    socket.Send(first);
    do {
      if (!socket.Send(answer)) return;
    } while (endless);
  });
}

TEST(Fetch, AnswersComeFromIpv4AndIpv6) {
  for (const std::string address : {"127.0.0.1", "::1"}) {
    const std::string listen = address == "::1" ? "[::1]:0" : "127.0.0.1:0";
    std::string host;
    auto server = HttpServer::Create({.listen = listen}, [&host](const HttpServerRequest& request) {
      host = request.Header("host");
      return HttpServerResponse{.status = 418, .body = request.path + request.QueryValue("q")};
    });
    ASSERT_TRUE(server.ok()) << server.status();
    const auto response =
        Fetch({.address = address, .port = (*server)->port(), .target = "/p?q=1"}, {});
    ASSERT_TRUE(response.ok()) << response.status();
    EXPECT_EQ(response->status, 418);
    EXPECT_EQ(response->body, "/p1");
    EXPECT_THAT(host, HasSubstr(listen.substr(0, listen.size() - 1)));
  }
}

TEST(Fetch, ABodyThatEndsWithTheConnectionIsWhole) {
  const RawServer server = Answering("HTTP/1.0 200 OK\r\n\r\nold school");
  EXPECT_EQ(Fetch(To(server.port()), {})->body, "old school");
}

TEST(Fetch, TheBodyIsReadOnlyAfterTheCallerLetIt) {
  const RawServer server = Answering("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
  FetchOptions options = To(server.port());
  int asked = 0;
  options.before_body = [&asked] {
    ++asked;
    return OkStatus();
  };
  EXPECT_EQ(Fetch(options, {})->body, "hello");
  EXPECT_EQ(asked, 1);
  options.before_body = [] { return CancelledError("no room"); };
  EXPECT_EQ(Fetch(options, {}).status().code(), StatusCode::kCancelled);
}

TEST(Fetch, ABodyThatTakesTooLongEndsAtItsOwnTime) {
  const RawServer server([](RawSocket& socket) {
    socket.ReceiveUntil("\r\n\r\n");
    socket.Send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nh");
    EXPECT_TRUE(socket.IsClosedByPeer());
  });
  FetchOptions options = To(server.port());
  options.timeout = std::chrono::hours(1);
  options.before_body = [] { return OkStatus(); };
  options.body_timeout = std::chrono::milliseconds(50);
  EXPECT_EQ(Fetch(options, {}).status().code(), StatusCode::kDeadlineExceeded);
}

TEST(Fetch, ARefusedConnectionIsToldFromOthers) {
  uint16_t port = 0;
  { port = Answering("").port(); }
  EXPECT_EQ(Fetch(To(port), {}).status().code(), StatusCode::kFailedPrecondition);
}

TEST(Fetch, EndlessHeadersAndBodiesAreCutAtTheirBounds) {
  const std::string ok = "HTTP/1.1 200 OK\r\n";
  const RawServer headers = Answering("X: " + std::string(1000, 'x') + "\r\n", true, ok);
  EXPECT_EQ(Fetch(To(headers.port()), {}).status().code(), StatusCode::kResourceExhausted);
  const RawServer one_header = Answering(std::string(1000, 'x'), true, ok);
  EXPECT_EQ(Fetch(To(one_header.port()), {}).status().code(), StatusCode::kResourceExhausted);
  const RawServer body = Answering(std::string(1000, 'x'), true, ok + "\r\n");
  EXPECT_EQ(Fetch(To(body.port()), {}).status().code(), StatusCode::kResourceExhausted);
  const RawServer chunks =
      Answering("5\r\nhello\r\n", true, ok + "Transfer-Encoding: chunked\r\n\r\n");
  EXPECT_EQ(Fetch(To(chunks.port()), {}).status().code(), StatusCode::kResourceExhausted);
  const RawServer announced = Answering(ok + "Content-Length: 9999999999\r\n\r\n");
  EXPECT_EQ(Fetch(To(announced.port()), {}).status().code(), StatusCode::kResourceExhausted);
}

TEST(Fetch, ACutAnswerIsUnavailable) {
  for (const char* answer :
       {"", "HTTP/1.1 200", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"}) {
    const RawServer server = Answering(answer);
    EXPECT_EQ(Fetch(To(server.port()), {}).status().code(), StatusCode::kUnavailable) << answer;
  }
}

TEST(Fetch, AnAnswerThatIsNotHttpIsInvalid) {
  const RawServer server = Answering("SSH-2.0-OpenSSH_9.2\r\n\r\n");
  EXPECT_EQ(Fetch(To(server.port()), {}).status().code(), StatusCode::kInvalidArgument);
}

TEST(Fetch, ATricklingServerRunsIntoTheTimeout) {
  RawServer server([](RawSocket& socket) {
    while (socket.Send("H"))
      std::this_thread::sleep_for(milliseconds(10));
  });
  FetchOptions options = To(server.port());
  options.timeout = milliseconds(200);
  EXPECT_EQ(Fetch(options, {}).status().code(), StatusCode::kDeadlineExceeded);
}

TEST(Fetch, StopEndsAWaitingFetch) {
  std::latch asked(1);
  RawServer server([&asked](RawSocket& socket) {
    socket.ReceiveUntil("\r\n\r\n");
    asked.count_down();
    socket.Receive();
  });
  FetchOptions options = To(server.port());
  options.timeout = std::chrono::hours(1);
  std::stop_source stop;
  std::jthread stopper([&] {
    asked.wait();
    stop.request_stop();
  });
  EXPECT_EQ(Fetch(options, stop.get_token()).status().code(), StatusCode::kCancelled);
}

}  // namespace
}  // namespace flamefleet
