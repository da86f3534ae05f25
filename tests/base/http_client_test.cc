// SPDX-License-Identifier: Apache-2.0
#include "base/http/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <latch>
#include <thread>
#include <vector>

#include "base/http/server.h"
#include "tests/support/raw_socket.h"

namespace flamefleet {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::unique_ptr<HttpClient> ClientOf(const std::string& url, size_t max_response_bytes = 1 << 20) {
  auto client = HttpClient::Create({.base_url = url, .max_response_bytes = max_response_bytes});
  EXPECT_TRUE(client.ok()) << client.status();
  return *std::move(client);
}

// A server that reads the request's header and answers with `answer`, then closes.
RawServer AnswerAndClose(const std::string& answer) {
  return RawServer([answer](RawSocket& socket) {
    socket.ReceiveUntil("\r\n\r\n");
    socket.Send(answer);
  });
}

HttpServerResponse Echo(const HttpServerRequest& request) {
  return {.status = request.path == "/missing" ? 404 : 200,
          .body = request.body,
          .headers = {{"X-Method", request.method}, {"X-Token", request.Header("x-token")}}};
}

TEST(HttpClient, MethodHeadersAndBodyArriveAndComeBack) {
  auto server = HttpServer::Create({.listen = "127.0.0.1:0", .max_body_bytes = 8 << 20}, Echo);
  const auto client = ClientOf("http://127.0.0.1:" + std::to_string((*server)->port()), 8 << 20);
  std::string body;
  for (int i = 0; i < 3'000'000; ++i)
    body += static_cast<char>(i * 7);
  const auto response =
      client->Send({.method = "PUT", .target = "/x", .headers = {{"X-Token", "t"}}, .body = body});
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->status, 200);
  EXPECT_EQ(response->Header("x-method"), "PUT");
  EXPECT_EQ(response->Header("x-token"), "t");
  EXPECT_TRUE(response->body == body);
}

TEST(HttpClient, AnErrorStatusIsAnAnswer) {
  auto server = HttpServer::Create({.listen = "127.0.0.1:0"}, Echo);
  const auto client = ClientOf("http://127.0.0.1:" + std::to_string((*server)->port()));
  EXPECT_EQ(client->Send({.target = "/missing"})->status, 404);
}

TEST(HttpClient, ThirtyCallersShareOneClient) {
  auto server = HttpServer::Create({.listen = "127.0.0.1:0"}, Echo);
  const auto client = ClientOf("http://127.0.0.1:" + std::to_string((*server)->port()));
  std::atomic<int> good = 0;
  {
    std::vector<std::jthread> callers;
    for (int i = 0; i < 30; ++i) {
      callers.emplace_back([&client, &good, i] {
        const std::string body = "body " + std::to_string(i);
        const auto response = client->Send({.method = "POST", .body = body});
        if (response.ok() && response->body == body) ++good;
      });
    }
  }
  EXPECT_EQ(good, 30);
}

TEST(HttpClient, TheTargetIsSentAsItIs) {
  std::string request_line;
  RawServer server([&request_line](RawSocket& socket) {
    const std::string request = socket.ReceiveUntil("\r\n\r\n");
    request_line = request.substr(0, request.find('\r'));
    socket.Send("HTTP/1.1 204 No Content\r\n\r\n");
  });
  const std::string target = "/a%2Fb/c%20d?labelSelector=a%3Db%2Cc&x=%E2%82%AC&y=a+b&z";
  ASSERT_TRUE(ClientOf(server.Url())->Send({.target = target}).ok());
  EXPECT_EQ(request_line, "GET " + target + " HTTP/1.1");
}

TEST(HttpClient, ARedirectIsNotFollowed) {
  int connections = 0;
  RawServer server([&connections](RawSocket& socket) {
    ++connections;
    socket.ReceiveUntil("\r\n\r\n");
    socket.Send("HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n");
  });
  const auto response = ClientOf(server.Url())->Send({});
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->status, 302);
  EXPECT_EQ(connections, 1);
}

TEST(HttpClient, AKeptConnectionThatTheServerClosedIsReplaced) {
  RawServer server([](RawSocket& socket) {
    socket.ReceiveUntil("\r\n\r\nbody");
    socket.Send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
  });
  const auto client = ClientOf(server.Url());
  for (int i = 0; i < 20; ++i) {
    const auto response = client->Send({.method = "POST", .body = "body"});
    EXPECT_TRUE(response.ok()) << response.status();
  }
}

TEST(HttpClient, AnEndlessBodyIsCutAtTheBound) {
  RawServer server([](RawSocket& socket) {
    socket.ReceiveUntil("\r\n\r\n");
    socket.Send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    const std::string chunk = "8000\r\n" + std::string(0x8000, 'x') + "\r\n";
    while (socket.Send(chunk)) {
    }
  });
  const auto response = ClientOf(server.Url(), 1'000'000)->Send({});
  EXPECT_EQ(response.status().code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(ErrorMessage(response.status()), HasSubstr("1000000 bytes"));
}

TEST(HttpClient, ABodyShorterThanItsLengthIsAnError) {
  const RawServer server =
      AnswerAndClose("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this");
  EXPECT_EQ(ClientOf(server.Url())->Send({}).status().code(), StatusCode::kUnavailable);
}

TEST(HttpClient, ChunksWithoutTheLastOneAreAnError) {
  for (const char* body : {"5\r\nhello\r\n", "5\r\nhel", "5\r\nhello\r\n0\r\n", ""}) {
    const RawServer server =
        AnswerAndClose(std::string("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n") + body);
    EXPECT_EQ(ClientOf(server.Url())->Send({}).status().code(), StatusCode::kUnavailable) << body;
  }
}

TEST(HttpClient, AConnectionCutInTheHeaderIsAnError) {
  const RawServer server = AnswerAndClose("HTTP/1.1 200 OK\r\nContent-");
  EXPECT_EQ(ClientOf(server.Url())->Send({}).status().code(), StatusCode::kUnavailable);
}

TEST(HttpClient, ARefusedConnectionNamesTheRequest) {
  uint16_t port = 0;
  { port = AnswerAndClose("").port(); }
  const auto response =
      ClientOf("http://127.0.0.1:" + std::to_string(port))->Send({.target = "/path"});
  EXPECT_EQ(response.status().code(), StatusCode::kUnavailable);
  EXPECT_THAT(ErrorMessage(response.status()),
              StartsWith("GET http://127.0.0.1:" + std::to_string(port) + "/path: "));
}

// Takes connections and never answers.
RawServer SilentServer(const std::stop_token& stop) {
  return RawServer([stop](RawSocket& socket) {
    socket.ReceiveUntil("\r\n\r\n");
    while (!stop.stop_requested() && !socket.Receive().empty()) {
    }
  });
}

TEST(HttpClient, ASilentServerRunsIntoTheIdleTimeout) {
  const RawServer server = SilentServer({});
  const auto response =
      ClientOf(server.Url())
          ->Send({.idle_timeout = milliseconds(100), .total_timeout = milliseconds(60'000)});
  EXPECT_EQ(response.status().code(), StatusCode::kDeadlineExceeded);
  EXPECT_THAT(ErrorMessage(response.status()), HasSubstr("100 ms"));
}

TEST(HttpClient, ATricklingServerRunsIntoTheTotalTimeout) {
  RawServer server([](RawSocket& socket) {
    socket.ReceiveUntil("\r\n\r\n");
    socket.Send("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n");
    while (socket.Send("x"))
      std::this_thread::sleep_for(milliseconds(10));
  });
  const auto response =
      ClientOf(server.Url())
          ->Send({.idle_timeout = milliseconds(60'000), .total_timeout = milliseconds(300)});
  EXPECT_EQ(response.status().code(), StatusCode::kDeadlineExceeded);
  EXPECT_THAT(ErrorMessage(response.status()), HasSubstr("300 ms"));
}

TEST(HttpClient, StopEndsAWaitingRequest) {
  const RawServer server = SilentServer({});
  const auto client = ClientOf(server.Url());
  std::stop_source stop;
  std::jthread stopper([&stop] {
    std::this_thread::sleep_for(milliseconds(50));
    stop.request_stop();
  });
  const auto response = client->Send(
      {.idle_timeout = std::chrono::hours(1), .total_timeout = milliseconds(0)}, stop.get_token());
  EXPECT_EQ(response.status().code(), StatusCode::kCancelled);
}

TEST(HttpClient, StreamedPiecesArriveWhenTheyAreSent) {
  // The server sends a piece only after the one before it was seen.
  std::array<std::latch, 3> seen = {std::latch(1), std::latch(1), std::latch(1)};
  RawServer server([&seen](RawSocket& socket) {
    socket.ReceiveUntil("\r\n\r\n");
    socket.Send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    for (std::latch& latch : seen) {
      socket.Send("6\r\nevent\n\r\n");
      latch.wait();
    }
    socket.Send("0\r\n\r\n");
  });
  std::vector<std::string> pieces;
  int status_at_head = 0;
  const auto response = ClientOf(server.Url())
                            ->Stream(
                                {.total_timeout = milliseconds(0)},
                                [&](const HttpResponse& head) { status_at_head = head.status; },
                                [&](std::string_view piece) {
                                  EXPECT_EQ(status_at_head, 200);
                                  pieces.emplace_back(piece);
                                  seen[pieces.size() - 1].count_down();
                                  return OkStatus();
                                });
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_THAT(pieces, ElementsAre("event\n", "event\n", "event\n"));
}

TEST(HttpClient, AStatusOfTheBodyHandlerEndsTheStream) {
  RawServer server([](RawSocket& socket) {
    socket.ReceiveUntil("\r\n\r\n");
    socket.Send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    while (socket.Send("1\r\nx\r\n")) {
    }
  });
  const auto response = ClientOf(server.Url())->Stream({}, nullptr, [](std::string_view) {
    return DataLossError("not an event");
  });
  EXPECT_EQ(response.status().code(), StatusCode::kDataLoss);
}

TEST(HttpClient, ASlowReaderGetsAllOfALargeBody) {
  const std::string large(20 << 20, 'x');
  RawServer server([&large](RawSocket& socket) {
    socket.ReceiveUntil("\r\n\r\n");
    socket.Send("HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(large.size()) + "\r\n\r\n");
    socket.Send(large);
  });
  size_t bytes = 0;
  size_t pieces = 0;
  const auto response = ClientOf(server.Url())->Stream({}, nullptr, [&](std::string_view piece) {
    if (++pieces % 16 == 0) std::this_thread::yield();
    bytes += piece.size();
    return OkStatus();
  });
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(bytes, large.size());
}

TEST(HttpClient, AUrlOrHeaderThatCannotBeSentIsInvalid) {
  for (const std::string url :
       {"", "localhost:80", "ftp://x", "http://", "http://h/path", "http://h:x", "http://h:70000",
        "http://[::1]:80", "http://user@h"}) {
    EXPECT_EQ(HttpClient::Create({.base_url = url}).status().code(), StatusCode::kInvalidArgument)
        << url;
  }
  const auto client = ClientOf("http://127.0.0.1:1");
  EXPECT_EQ(client->Send({.target = "/a b\n"}).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(client->Send({.headers = {{"X", "a\r\nY: b"}}}).status().code(),
            StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace flamefleet
