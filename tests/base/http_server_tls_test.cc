// SPDX-License-Identifier: Apache-2.0
// HttpServer over TLS, asked by curl.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <vector>

#include "base/http/server.h"
#include "tests/support/command.h"
#include "tests/support/raw_socket.h"
#include "tests/support/tls_server.h"
#include "tests/support/wait.h"

namespace flamefleet {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class HttpServerTlsTest : public TlsServerTest {
 protected:
  // Serves the size of each body, with the certificate called `name`.
  void Start(const std::string& name) {
    Use(name, name);
    options_.listen = "127.0.0.1:0";
    options_.tls = {File("live.pem"), File("live.key")};
    auto server = HttpServer::Create(options_, [](const HttpServerRequest& request) {
      return HttpServerResponse{.body = request.path + " " + std::to_string(request.body.size())};
    });
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    url_ = "https://127.0.0.1:" + std::to_string(server_->port());
  }
  // What the server reads: the certificate of one, the key of another.
  static void Use(const std::string& certificate, const std::string& key) {
    constexpr auto kOver = std::filesystem::copy_options::overwrite_existing;
    std::filesystem::copy_file(File(certificate + ".pem"), File("live.pem"), kOver);
    std::filesystem::copy_file(File(key + ".key"), File("live.key"), kOver);
  }
  static std::string File(const std::string& name) { return directory_ + "/" + name; }
  // A client that trusts our CA alone.
  static CommandResult Curl(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"curl", "--silent", "--show-error", "--max-time", "60",
                                         "--cacert", File("ca.pem")});
    return RunCommand(arguments);
  }

  HttpServerOptions options_;
  std::unique_ptr<HttpServer> server_;
  std::string url_;
};

TEST_F(HttpServerTlsTest, RequestsOfOneConnectionAreAnswered) {
  Start("address");
  const CommandResult two = Curl({url_ + "/a", url_ + "/b", "-w", "%{num_connects}"});
  EXPECT_EQ(two.out, "/a 01/b 00") << two.err;
  const CommandResult large =
      Curl({url_ + "/large", "--data-binary", "@" + File("ca.pem"), "-H", "Expect: 100-continue"});
  EXPECT_EQ(large.out, "/large " + std::to_string(Pem("ca.pem").size())) << large.err;
}

TEST_F(HttpServerTlsTest, ARefusedBodyIsAnsweredOverTls) {
  options_.max_body_bytes = 100;
  Start("address");
  const CommandResult refused = Curl({url_, "--data-binary", "@" + File("ca.pem")});
  EXPECT_THAT(refused.out, HasSubstr("larger than 100 bytes")) << refused.err;
}

TEST_F(HttpServerTlsTest, AClientWithoutTlsIsClosedAndOthersAreServed) {
  Start("address");
  const RawSocket plain = RawSocket::Connect(server_->port());
  plain.Send("GET / HTTP/1.1\r\n\r\n");
  EXPECT_THAT(plain.ReceiveAll(), Not(HasSubstr("HTTP")));  // at most an alert, then the end
  EXPECT_EQ(Curl({url_ + "/x"}).out, "/x 0");
}

TEST_F(HttpServerTlsTest, AHandshakeThatDoesNotBeginIsClosed) {
  options_.request_timeout = std::chrono::milliseconds(500);
  Start("address");
  EXPECT_TRUE(RawSocket::Connect(server_->port()).IsClosedByPeer());
}

TEST_F(HttpServerTlsTest, AChangedCertificateIsServedAndOneThatDoesNotFitIsNot) {
  Start("server");  // for another name
  EXPECT_THAT(Curl({url_}).err, HasSubstr("SSL"));
  Use("address", "address");
  EXPECT_TRUE(WaitUntil([&] { return Curl({url_ + "/x"}).out == "/x 0"; }));
  Use("server", "address");
  // Until it has looked again for sure.
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  do {
    EXPECT_EQ(Curl({url_ + "/x"}).out, "/x 0");
  } while (std::chrono::steady_clock::now() < end);
}

TEST_F(HttpServerTlsTest, APairThatCannotBeUsedIsNamed) {
  const auto error = [](const std::string& certificate, const std::string& key) {
    HttpServerOptions options{.listen = "127.0.0.1:0"};
    options.tls = {File(certificate), File(key)};
    return ErrorMessage(HttpServer::Create(options, {}).status());
  };
  EXPECT_THAT(error("none.pem", "address.key"), HasSubstr("none.pem"));
  EXPECT_THAT(error("address.key", "address.key"), HasSubstr("certificate of "));
  EXPECT_THAT(error("address.pem", "address.pem"), HasSubstr("key of "));
  EXPECT_THAT(error("address.pem", "server.key"), HasSubstr("key values mismatch"));
}

}  // namespace
}  // namespace flamefleet
