// SPDX-License-Identifier: Apache-2.0
#include "base/http/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <thread>
#include <vector>

#include "tests/support/raw_socket.h"
#include "tests/support/wait.h"

namespace flamefleet {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// What a shell command prints.
std::string Shell(const std::string& command) {
  FILE* const pipe = popen((command + " 2>&1").c_str(), "r");
  std::string out;
  std::array<char, 4096> buffer;
  for (size_t got = 0; (got = fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) {
    out.append(buffer.data(), got);
  }
  pclose(pipe);
  return out;
}

// curl: a client that we did not write.
std::string Curl(const std::string& arguments) {
  return Shell("curl --silent --show-error --max-time 20 " + arguments);
}

// curl, posting `bytes` zeros.
std::string CurlPost(size_t bytes, const std::string& arguments) {
  return Shell("head -c " + std::to_string(bytes) +
               " /dev/zero | curl --silent --max-time 20 --data-binary @- " + arguments);
}

// Answers with what it understood of the request.
HttpServerResponse Echo(const HttpServerRequest& request) {
  std::string body = request.method + " " + request.path;
  for (const auto& [key, value] : request.query)
    body += " " + key + "=" + value;
  body += " " + std::to_string(request.body.size());
  return {.body = body, .headers = {{"x-agent", request.Header("user-agent")}}};
}

class HttpServerTest : public ::testing::Test {
 protected:
  void Start(HttpHandler handler = Echo) {
    auto server = HttpServer::Create(options_, std::move(handler));
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    url_ = "http://127.0.0.1:" + std::to_string(server_->port());
  }

  HttpServerOptions options_{.listen = "127.0.0.1:0"};
  std::unique_ptr<HttpServer> server_;
  std::string url_;
};

TEST_F(HttpServerTest, PathAndQueryReachTheHandlerDecoded) {
  Start();
  EXPECT_EQ(Curl("'" + url_ + "/a%20b/c?q=x%26y&empty&plus=a+b'"),
            "GET /a b/c empty= plus=a b q=x&y 0");
}

TEST_F(HttpServerTest, BrokenPercentEncodingIsABadRequest) {
  Start();
  EXPECT_EQ(Curl("-o /dev/null -w '%{http_code}' '" + url_ + "/a%2'"), "400");
  EXPECT_EQ(Curl("-o /dev/null -w '%{http_code}' '" + url_ + "/a?b=%zz'"), "400");
}

TEST_F(HttpServerTest, HeadIsTheGetWithoutItsBody) {
  Start();
  const std::string head = Curl("--head '" + url_ + "/x'");
  EXPECT_THAT(head, StartsWith("HTTP/1.1 200 OK"));
  EXPECT_THAT(head, HasSubstr("Content-Length: 8"));
}

TEST_F(HttpServerTest, AConnectionServesSeveralRequests) {
  Start();
  EXPECT_EQ(Curl("-w ' %{num_connects};' '" + url_ + "/1' '" + url_ + "/2'"),
            "GET /1 0 1;GET /2 0 0;");
}

TEST_F(HttpServerTest, PipelinedRequestsAreAnsweredInOrder) {
  Start();
  const RawSocket client = RawSocket::Connect(server_->port());
  client.Send("GET /1 HTTP/1.1\r\nHost: x\r\n\r\nGET /2 HTTP/1.1\r\nConnection: close\r\n\r\n");
  const std::string answers = client.ReceiveAll();
  EXPECT_LT(answers.find("GET /1 0"), answers.find("GET /2 0"));
  EXPECT_NE(answers.find("GET /2 0"), std::string::npos);
}

TEST_F(HttpServerTest, ABodyIsReadWholeWithLengthAndWithChunks) {
  options_.max_body_bytes = 4 << 20;
  Start();
  EXPECT_EQ(CurlPost(3'000'000, url_ + "/p"), "POST /p 3000000");
  EXPECT_EQ(CurlPost(3'000'000, "-H 'Transfer-Encoding: chunked' " + url_ + "/p"),
            "POST /p 3000000");
}

TEST_F(HttpServerTest, AClientThatWaitsForContinueIsToldToGoOn) {
  Start();
  const RawSocket client = RawSocket::Connect(server_->port());
  client.Send("POST /p HTTP/1.1\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(client.ReceiveUntil("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  client.Send("abc");
  EXPECT_THAT(client.ReceiveUntil("POST /p 3"), HasSubstr("200 OK"));
}

TEST_F(HttpServerTest, ABodyAnnouncedOverTheLimitIsRefusedBeforeItIsSent) {
  options_.max_body_bytes = 1000;
  Start();
  const RawSocket client = RawSocket::Connect(server_->port());
  client.Send("POST /p HTTP/1.1\r\nContent-Length: 1001\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_THAT(client.ReceiveUntil("1000 bytes"), StartsWith("HTTP/1.1 413"));
}

TEST_F(HttpServerTest, ARefusedClientThatSendsOnSeesTheAnswer) {
  options_.max_body_bytes = 1000;
  Start();
  EXPECT_THAT(CurlPost(5'000'000, "-H Expect: " + url_ + "/p"),
              HasSubstr("larger than 1000 bytes"));
}

TEST_F(HttpServerTest, AChunkedBodyWithoutEndIsCutAtTheLimit) {
  options_.max_body_bytes = 100'000;
  Start();
  const RawSocket client = RawSocket::Connect(server_->port());
  client.Send("POST /p HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n");
  const std::string chunk = "1000\r\n" + std::string(0x1000, 'x') + "\r\n";
  for (int i = 0; i < 40; ++i)
    client.Send(chunk);
  EXPECT_THAT(client.ReceiveUntil("100000 bytes"), StartsWith("HTTP/1.1 413"));
}

// What many clients send at once, each below its own limit, is bounded as well.
TEST_F(HttpServerTest, BodiesThatTogetherAreTooLargeAreToldToComeAgain) {
  options_.max_body_bytes = 1 << 20;
  options_.max_bodies_bytes = 3 << 19;
  Start();
  constexpr size_t kBytes = 900'000;
  std::optional<RawSocket> slow = RawSocket::Connect(server_->port());
  slow->Send("POST /p HTTP/1.1\r\nContent-Length: 900001\r\n\r\n" + std::string(kBytes, 'x'));
  const auto status = [&](const std::string& more) {
    return CurlPost(kBytes, "-o /dev/null -w '%{http_code} %header{retry-after}' -H Expect: " +
                                more + url_ + "/p");
  };
  for (const std::string& more : {std::string(), std::string("-H 'Transfer-Encoding: chunked' ")})
    EXPECT_TRUE(WaitUntil([&] { return status(more) == "503 1"; })) << more;
  EXPECT_EQ(Curl(url_ + "/small"), "GET /small 0");
  slow->Send("y");
  EXPECT_THAT(slow->ReceiveUntil("900001"), StartsWith("HTTP/1.1 200"));
  EXPECT_EQ(status(""), "200 ");
}

TEST_F(HttpServerTest, AHeaderOverTheLimitIsRefused) {
  Start();
  const RawSocket client = RawSocket::Connect(server_->port());
  client.Send("GET / HTTP/1.1\r\nX: " + std::string(20'000, 'x'));
  EXPECT_THAT(client.ReceiveUntil("\r\n\r\n"), StartsWith("HTTP/1.1 431"));
}

TEST_F(HttpServerTest, WhatIsNotHttpIsABadRequest) {
  Start();
  const RawSocket client = RawSocket::Connect(server_->port());
  client.Send("\x16\x03\x01 this is TLS\r\n\r\n");
  EXPECT_THAT(client.ReceiveAll(), StartsWith("HTTP/1.1 400"));
}

TEST_F(HttpServerTest, SlowHeadersOfManyClientsAreClosedWhileOthersAreServed) {
  options_.request_timeout = milliseconds(500);
  Start();
  std::vector<RawSocket> slow;
  for (int i = 0; i < 300; ++i) {
    slow.push_back(RawSocket::Connect(server_->port()));
    slow.back().Send("GET / HTTP/1.1\r\nX-Slow: ");
  }
  EXPECT_EQ(Curl(url_ + "/fast"), "GET /fast 0");
  for (const RawSocket& client : slow)
    EXPECT_TRUE(client.IsClosedByPeer());
}

TEST_F(HttpServerTest, AnIdleConnectionIsClosed) {
  options_.idle_timeout = milliseconds(200);
  Start();
  const RawSocket client = RawSocket::Connect(server_->port());
  client.Send("GET / HTTP/1.1\r\n\r\n");
  client.ReceiveUntil("GET / 0");
  EXPECT_TRUE(client.IsClosedByPeer());
}

TEST_F(HttpServerTest, OneConnectionOverTheLimitIsTurnedAway) {
  options_.max_connections = 2;
  Start();
  std::vector<RawSocket> open;
  for (int i = 0; i < 2; ++i) {
    open.push_back(RawSocket::Connect(server_->port()));
    open.back().Send("GET / HTTP/1.1\r\n");
  }
  EXPECT_THAT(RawSocket::Connect(server_->port()).ReceiveAll(), StartsWith("HTTP/1.1 503"));
}

TEST_F(HttpServerTest, ConnectionsThatStayOpenShutNobodyOut) {
  constexpr size_t kClients = 20;
  options_.max_connections = 8;
  Start();
  std::vector<RawSocket> open;
  for (size_t i = 0; i < kClients; ++i) {
    open.push_back(RawSocket::Connect(server_->port()));
    open.back().Send("GET / HTTP/1.1\r\n\r\n");
    ASSERT_THAT(open.back().ReceiveUntil("GET / 0"), StartsWith("HTTP/1.1 200")) << i;
    if (i >= options_.max_connections) {
      EXPECT_TRUE(open.back().IsClosedByPeer()) << i;
    }
  }
  open.front().Send("GET /again HTTP/1.1\r\n\r\n");
  EXPECT_THAT(open.front().ReceiveUntil("GET /again 0"), StartsWith("HTTP/1.1 200"));
}

// A door that handlers wait at.
class Gate {
 public:
  void WaitInside() {
    std::unique_lock lock(mutex_);
    ++inside_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return open_; });
  }
  void AwaitInside(int count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return inside_ >= count; });
  }
  void Open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int inside_ = 0;
  bool open_ = false;
};

TEST_F(HttpServerTest, AHandlerThatBlocksDoesNotStopTheOthers) {
  Gate gate;
  Start([&gate](const HttpServerRequest& request) {
    if (request.path == "/slow") gate.WaitInside();
    return Echo(request);
  });
  const RawSocket slow = RawSocket::Connect(server_->port());
  slow.Send("GET /slow HTTP/1.1\r\n\r\n");
  gate.AwaitInside(1);
  EXPECT_EQ(Curl(url_ + "/fast"), "GET /fast 0");
  gate.Open();
  EXPECT_THAT(slow.ReceiveUntil("/slow"), HasSubstr("200 OK"));
}

TEST_F(HttpServerTest, StoppingLetsARunningHandlerAnswerAndClosesTheRest) {
  Gate gate;
  Start([&gate](const HttpServerRequest& request) {
    gate.WaitInside();
    return Echo(request);
  });
  const RawSocket idle = RawSocket::Connect(server_->port());
  idle.Send("GET /");
  const RawSocket busy = RawSocket::Connect(server_->port());
  busy.Send("GET /busy HTTP/1.1\r\n\r\n");
  gate.AwaitInside(1);
  std::jthread stopper([this] { server_.reset(); });
  EXPECT_TRUE(idle.IsClosedByPeer());
  gate.Open();
  EXPECT_THAT(busy.ReceiveAll(), HasSubstr("GET /busy 0"));
}

TEST_F(HttpServerTest, AHandlersHeaderCannotCarryALineBreak) {
  Start([](const HttpServerRequest&) {
    return HttpServerResponse{.headers = {{"x", "a\r\nSet-Cookie: b"}}};
  });
  EXPECT_THAT(Curl("-i " + url_), StartsWith("HTTP/1.1 500"));
}

TEST_F(HttpServerTest, AThrowingHandlerIsAnInternalErrorOfItsRequestOnly) {
  Start([](const HttpServerRequest& request) {
    if (request.path == "/throw") throw std::runtime_error("secret detail");
    return Echo(request);
  });
  EXPECT_EQ(Curl("-w '%{http_code}' " + url_ + "/throw"), "internal error\n500");
  EXPECT_EQ(Curl(url_ + "/x"), "GET /x 0");
}

TEST_F(HttpServerTest, AUsedPortIsAlreadyExistsAndNamesTheAddress) {
  Start();
  options_.listen = "127.0.0.1:" + std::to_string(server_->port());
  const auto second = HttpServer::Create(options_, Echo);
  EXPECT_EQ(second.status().code(), StatusCode::kAlreadyExists);
  EXPECT_THAT(ErrorMessage(second.status()), HasSubstr(options_.listen));
}

TEST_F(HttpServerTest, AnAddressThatIsNoneIsInvalid) {
  for (const std::string listen :
       {"", "8080", "127.0.0.1:70000", "fd00::1:80", "nosuch.invalid:1"}) {
    options_.listen = listen;
    EXPECT_EQ(HttpServer::Create(options_, Echo).status().code(), StatusCode::kInvalidArgument)
        << listen;
  }
}

TEST_F(HttpServerTest, AnEmptyHostListensOnEveryAddress) {
  options_.listen = ":0";
  Start();
  EXPECT_EQ(Curl(url_ + "/v4"), "GET /v4 0");
}

}  // namespace
}  // namespace flamefleet
