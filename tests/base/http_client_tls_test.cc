// SPDX-License-Identifier: Apache-2.0
// HttpClient against `openssl s_server`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "base/http/client.h"
#include "tests/fakes/tcp_proxy.h"
#include "tests/support/tls_server.h"

namespace flamefleet {
namespace {

using ::testing::HasSubstr;

class HttpClientTlsTest : public TlsServerTest {
 protected:
  void Serve(const std::string& name, std::vector<std::string> more = {}) {
    url_ = "https://" + TlsServerTest::Serve(name, std::move(more));
  }

  Result<HttpResponse> Get(const HttpTlsOptions& tls, const std::string& proxy_url = "") {
    FF_ASSIGN_OR_RETURN(const auto client,
                        HttpClient::Create({.base_url = url_, .proxy_url = proxy_url, .tls = tls}));
    return client->Send({});
  }

  std::string url_;
};

TEST_F(HttpClientTlsTest, AProxyOnlyConnectsAndSeesNothing) {
  Serve("address");
  TcpProxy proxy(static_cast<uint16_t>(std::stoi(url_.substr(url_.rfind(':') + 1))), true);
  const std::string proxy_url = "http://127.0.0.1:" + std::to_string(proxy.port());
  const auto response = Get({.ca_pem = Pem("ca.pem")}, proxy_url);
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->status, 200);
  EXPECT_EQ(proxy.accepted(), 1);
  EXPECT_FALSE(Get({.ca_pem = Pem("other.pem")}, proxy_url).ok());
  EXPECT_EQ(Get({}, "https://127.0.0.1:1").status().code(), StatusCode::kInvalidArgument);
}

TEST_F(HttpClientTlsTest, ACertificateOfTheGivenCaForTheAddressIsTrusted) {
  Serve("address");
  const auto response = Get({.ca_pem = Pem("ca.pem")});
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->status, 200);
}

TEST_F(HttpClientTlsTest, ACertificateOfAnotherCaIsRefusedAndSaysWhy) {
  Serve("address");
  const auto response = Get({.ca_pem = Pem("other.pem")});
  EXPECT_EQ(response.status().code(), StatusCode::kUnavailable);
  EXPECT_THAT(ErrorMessage(response.status()), HasSubstr("unable to get local issuer"));
}

TEST_F(HttpClientTlsTest, TheSystemsRootsDoNotTrustOurCa) {
  Serve("address");
  EXPECT_EQ(Get({}).status().code(), StatusCode::kUnavailable);
}

TEST_F(HttpClientTlsTest, ACertificateForAnotherNameIsRefused) {
  Serve("server");
  const auto response = Get({.ca_pem = Pem("ca.pem")});
  EXPECT_EQ(response.status().code(), StatusCode::kUnavailable);
  EXPECT_THAT(ErrorMessage(response.status()), HasSubstr("mismatch"));
}

TEST_F(HttpClientTlsTest, TheServerNameOptionIsVerifiedAndSentInTheHandshake) {
  // The second certificate is used only when the handshake names profiles.test.
  Serve("address", {"-servername", "profiles.test", "-cert2", directory_ + "/server.pem", "-key2",
                    directory_ + "/server.key"});
  const auto named = Get({.ca_pem = Pem("ca.pem"), .server_name = "profiles.test"});
  EXPECT_TRUE(named.ok()) << named.status();
  EXPECT_FALSE(Get({.ca_pem = Pem("ca.pem"), .server_name = "other.test"}).ok());

  TcpProxy proxy(static_cast<uint16_t>(std::stoi(url_.substr(url_.rfind(':') + 1))), true);
  const std::string proxy_url = "http://127.0.0.1:" + std::to_string(proxy.port());
  const auto proxied = Get({.ca_pem = Pem("ca.pem"), .server_name = "profiles.test"}, proxy_url);
  EXPECT_TRUE(proxied.ok()) << proxied.status();
  EXPECT_EQ(proxy.accepted(), 1);
}

TEST_F(HttpClientTlsTest, AProxyThatIsNotThereIsUnavailable) {
  url_ = "https://profiles.test:1";
  const Status status = Get({}, "http://127.0.0.1:1").status();
  EXPECT_EQ(status.code(), StatusCode::kUnavailable) << status;
}

TEST_F(HttpClientTlsTest, SkippingVerificationTakesAnyCertificate) {
  Serve("server");
  const auto response = Get({.insecure_skip_verify = true});
  EXPECT_TRUE(response.ok()) << response.status();
}

TEST_F(HttpClientTlsTest, AServerThatAsksForACertificateGetsOurs) {
  Serve("address", {"-Verify", "1", "-verify_return_error", "-CAfile", directory_ + "/ca.pem"});
  EXPECT_FALSE(Get({.ca_pem = Pem("ca.pem")}).ok());
  const auto response = Get({.ca_pem = Pem("ca.pem"),
                             .client_cert_pem = Pem("client.pem"),
                             .client_key_pem = Pem("client.key")});
  EXPECT_TRUE(response.ok()) << response.status();
}

TEST_F(HttpClientTlsTest, UnreadableCertificatesAreInvalidAndNamed) {
  url_ = "https://127.0.0.1:1";
  const auto ca = Get({.ca_pem = "rubbish"});
  EXPECT_EQ(ca.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(ErrorMessage(ca.status()), HasSubstr("CA certificate"));
  const auto key = Get({.client_cert_pem = Pem("client.pem"), .client_key_pem = Pem("server.key")});
  EXPECT_EQ(key.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(ErrorMessage(key.status()), HasSubstr("client key"));
}

}  // namespace
}  // namespace flamefleet
