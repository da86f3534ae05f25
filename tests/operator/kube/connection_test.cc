// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/connection.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/fd.h"
#include "tests/fakes/fake_clock.h"
#include "tests/support/command.h"
#include "tests/support/temp_dir.h"

namespace flamefleet {
namespace {

class ConnectionTest : public testing::Test {
 protected:
  ConnectionTest() { config_.base_url = "https://localhost:1"; }

  std::string Path(const std::string& name) const { return folder_.path() + "/" + name; }
  void Write(const std::string& name, const std::string& content) const {
    std::ofstream(Path(name)) << content;
  }
  void MakeCertificate(const std::string& name) const {
    const CommandResult made =
        RunCommand({"openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                    "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=" + name, "-keyout",
                    Path(name + ".key"), "-out", Path(name + ".pem")});
    ASSERT_EQ(made.exit_code, 0) << made.err;
  }
  // A plugin that says how many times it ran.
  void UsePlugin(const std::string& more) {
    config_.exec = ExecPlugin{
        .command = "sh",
        .arguments = {"-c", "echo x >> " + Path("runs") +
                                R"(; echo "{\"kind\":\"ExecCredential\",\"apiVersion\":\"v\",)"
                                R"(\"status\":{\"token\":\"$(wc -l < )" +
                                Path("runs") + R"()\")" + more + R"(}}")"},
        .api_version = "v"};
  }
  void Create() {
    auto connection = Connection::Create(config_, clock_);
    ASSERT_TRUE(connection.ok()) << connection.status();
    connection_ = *std::move(connection);
  }
  std::string Authorization() {
    const auto access = connection_->Acquire();
    EXPECT_TRUE(access.ok()) << access.status();
    return access.ok() ? access->authorization : "";
  }
  std::shared_ptr<HttpClient> Http() {
    const auto access = connection_->Acquire();
    return access.ok() ? access->http : nullptr;
  }
  void Advance(std::chrono::nanoseconds time) { clock_.Advance(time.count()); }

  const TempDir folder_;
  FakeClock clock_;
  ClientConfig config_;
  std::unique_ptr<Connection> connection_;
};

TEST_F(ConnectionTest, ATokenWinsOverANameAndPassword) {
  config_.username = "Aladdin";
  config_.password = "open sesame";
  Create();
  EXPECT_EQ(Authorization(), "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");  // RFC 7617
  config_.token = "t";
  Create();
  EXPECT_EQ(Authorization(), "Bearer t");
}

TEST_F(ConnectionTest, APluginRunsAgainWhenItsAnswerExpires) {
  // The fake clock begins somewhere; the answer expires an hour later.
  const int64_t expires_ns = clock_.WallNanos() + 3600 * kNanosPerSecond;
  UsePlugin(R"(,\"expirationTimestamp\":\")" + FormatRfc3339(expires_ns) + R"(\")");
  Create();
  EXPECT_EQ(Authorization(), "Bearer 1");
  Advance(std::chrono::minutes(59));
  EXPECT_EQ(Authorization(), "Bearer 1");
  Advance(std::chrono::minutes(1));
  EXPECT_EQ(Authorization(), "Bearer 2");
}

TEST_F(ConnectionTest, APluginRunsAgainAfterARefusalButNotInALoop) {
  UsePlugin("");
  Create();
  EXPECT_EQ(Authorization(), "Bearer 1");
  connection_->Refused();
  EXPECT_EQ(Authorization(), "Bearer 1");
  Advance(Connection::kMinPluginInterval);
  EXPECT_EQ(Authorization(), "Bearer 2");
  EXPECT_EQ(Authorization(), "Bearer 2");
}

TEST_F(ConnectionTest, APluginThatFailsIsTheErrorOfTheRequest) {
  config_.exec = ExecPlugin{.command = "false"};
  Create();
  EXPECT_EQ(connection_->Acquire().status().code(), StatusCode::kUnavailable);
  EXPECT_EQ(connection_->Acquire().status().code(), StatusCode::kUnavailable);
}

TEST_F(ConnectionTest, ChangedCertificatesMakeANewClient) {
  MakeCertificate("one");
  MakeCertificate("two");
  config_.ca_file = Path("ca.pem");
  Write("ca.pem", *ReadFile(Path("one.pem"), 1 << 16));
  Create();
  const auto first = Http();
  Advance(Connection::kReadInterval);
  EXPECT_EQ(Http(), first) << "the same content";
  Write("ca.pem", *ReadFile(Path("two.pem"), 1 << 16));
  EXPECT_EQ(Http(), first) << "not yet";
  connection_->Failed();
  EXPECT_NE(Http(), first);
}

TEST_F(ConnectionTest, FilesThatAreHalfWrittenKeepTheClient) {
  MakeCertificate("one");
  MakeCertificate("two");
  config_.client_cert_file = Path("one.pem");
  config_.client_key_file = Path("one.key");
  Create();
  const auto first = Http();
  Write("one.pem", *ReadFile(Path("two.pem"), 1 << 16));
  connection_->Failed();
  EXPECT_EQ(Http(), first) << "its key is not there yet";
  Write("one.key", *ReadFile(Path("two.key"), 1 << 16));
  connection_->Failed();
  EXPECT_NE(Http(), first);
  std::filesystem::remove(Path("one.pem"));
  connection_->Failed();
  EXPECT_NE(Http(), nullptr);
}

TEST_F(ConnectionTest, WithoutItsFilesThereIsNoConnection) {
  config_.ca_file = Path("missing.pem");
  EXPECT_EQ(Connection::Create(config_, clock_).status().code(), StatusCode::kNotFound);
}

}  // namespace
}  // namespace flamefleet
