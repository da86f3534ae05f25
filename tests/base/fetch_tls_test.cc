// SPDX-License-Identifier: Apache-2.0
// Fetch against `openssl s_server`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/http/fetch.h"
#include "base/http/server.h"
#include "tests/support/tls_server.h"

namespace flamefleet {
namespace {

using ::testing::HasSubstr;

class FetchTlsTest : public TlsServerTest {
 protected:
  // `address` is 127.0.0.1:port.
  static Result<FetchResponse> Get(const std::string& address, const FetchTls& tls) {
    const auto port = static_cast<uint16_t>(std::stoi(address.substr(address.find(':') + 1)));
    return Fetch(
        {.address = "127.0.0.1", .port = port, .timeout = std::chrono::seconds(60), .tls = tls},
        {});
  }
};

TEST_F(FetchTlsTest, ACertificateOfTheGivenCaForTheAddressIsTrusted) {
  const auto response = Get(Serve("address"), {.ca_pem = Pem("ca.pem")});
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->status, 200);
  EXPECT_THAT(response->body, HasSubstr("s_server"));
}

TEST_F(FetchTlsTest, ACertificateForTheServerNameIsTrustedAndTheNameIsSent) {
  // The second certificate is used only when the handshake names profiles.test.
  const std::string address =
      Serve("address", {"-servername", "profiles.test", "-cert2", directory_ + "/server.pem",
                        "-key2", directory_ + "/server.key"});
  const auto named = Get(address, {.ca_pem = Pem("ca.pem"), .server_name = "profiles.test"});
  EXPECT_TRUE(named.ok()) << named.status();
}

TEST_F(FetchTlsTest, ACertificateOfAnotherCaOrNameIsNotTrustedAndSaysWhy) {
  const std::string address = Serve("address");
  const auto other_ca = Get(address, {.ca_pem = Pem("other.pem")});
  EXPECT_EQ(other_ca.status().code(), StatusCode::kPermissionDenied);
  EXPECT_THAT(ErrorMessage(other_ca.status()), HasSubstr("unable to get local issuer"));
  EXPECT_EQ(Get(address, {}).status().code(), StatusCode::kPermissionDenied);
  EXPECT_EQ(Get(address, {.ca_pem = Pem("ca.pem"), .server_name = "other.test"}).status().code(),
            StatusCode::kPermissionDenied);
}

TEST_F(FetchTlsTest, SkippingVerificationTakesAnyCertificate) {
  const auto response = Get(Serve("server"), {.insecure_skip_verify = true});
  EXPECT_TRUE(response.ok()) << response.status();
}

TEST_F(FetchTlsTest, AnUnreadableCaIsNotTrusted) {
  const auto response = Get("127.0.0.1:1", {.ca_pem = "rubbish"});
  EXPECT_EQ(response.status().code(), StatusCode::kPermissionDenied);
  EXPECT_THAT(ErrorMessage(response.status()), HasSubstr("CA certificate"));
}

TEST_F(FetchTlsTest, AServerOfPlainHttpIsNoTlsServer) {
  const auto server = *HttpServer::Create(
      {.listen = "127.0.0.1:0"}, [](const auto&) { return HttpServerResponse{.body = "plain"}; });
  const auto response =
      Get("127.0.0.1:" + std::to_string(server->port()), {.insecure_skip_verify = true});
  EXPECT_EQ(response.status().code(), StatusCode::kInvalidArgument) << response.status();
}

}  // namespace
}  // namespace flamefleet
