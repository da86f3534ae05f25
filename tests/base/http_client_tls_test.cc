// SPDX-License-Identifier: Apache-2.0
// HttpClient against `openssl s_server`, with certificates made by `openssl req`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <optional>

#include "base/fd.h"
#include "base/http/client.h"
#include "tests/support/child_process.h"

namespace flamefleet {
namespace {

using ::testing::HasSubstr;

class HttpClientTlsTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    char path[] = "/tmp/ff-tls-XXXXXX";
    directory_ = mkdtemp(path);
    MakeCa("ca");
    MakeCa("other");
    MakeCertificate("server", "ca", "DNS:profiles.test");
    MakeCertificate("address", "ca", "IP:127.0.0.1");
    MakeCertificate("client", "ca", "DNS:agent");
  }
  static void TearDownTestSuite() { EXPECT_EQ(std::system(("rm -r " + directory_).c_str()), 0); }

  static void Run(const std::string& command) {
    EXPECT_EQ(std::system(("cd " + directory_ + " && " + command + " >/dev/null 2>&1").c_str()), 0)
        << command;
  }
  static void MakeCa(const std::string& name) {
    Run("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=" +
        name + " -keyout " + name + ".key -out " + name + ".pem");
  }
  static void MakeCertificate(const std::string& name, const std::string& ca,
                              const std::string& subject) {
    Run("openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=" + name +
        " -addext subjectAltName=" + subject + " -keyout " + name + ".key -out " + name +
        ".csr && openssl x509 -req -in " + name + ".csr -copy_extensions copy -days 2 -CA " + ca +
        ".pem -CAkey " + ca + ".key -CAcreateserial -out " + name + ".pem");
  }
  static std::string Pem(const std::string& name) {
    return *ReadFile(directory_ + "/" + name, 1 << 16);
  }

  // Serves a page with the certificate; further flags of s_server in `more`.
  void Serve(const std::string& name, std::vector<std::string> more = {}) {
    std::vector<std::string> command = {"openssl",
                                        "s_server",
                                        "-www",
                                        "-accept",
                                        "127.0.0.1:0",
                                        "-cert",
                                        directory_ + "/" + name + ".pem",
                                        "-key",
                                        directory_ + "/" + name + ".key"};
    command.insert(command.end(), more.begin(), more.end());
    server_.emplace(command);
    url_ = "https://" + server_->AwaitLine("ACCEPT ");
  }

  Result<HttpResponse> Get(const HttpTlsOptions& tls) {
    FF_ASSIGN_OR_RETURN(const auto client, HttpClient::Create({.base_url = url_, .tls = tls}));
    return client->Send({});
  }

  static inline std::string directory_;
  std::optional<ChildProcess> server_;
  std::string url_;
};

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
