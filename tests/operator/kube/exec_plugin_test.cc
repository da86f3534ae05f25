// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/exec_plugin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace flamefleet {
namespace {

using testing::HasSubstr;

constexpr const char* kVersion = "client.authentication.k8s.io/v1";

ExecPlugin Shell(const std::string& script) {
  return {.command = "sh", .arguments = {"-c", script, "plugin"}, .api_version = kVersion};
}

std::string Answer(const std::string& status) {
  return std::string(R"(echo '{"kind":"ExecCredential","apiVersion":")") + kVersion +
         R"(","status":)" + status + "}'";
}

std::string ErrorOf(const ExecPlugin& plugin, std::chrono::milliseconds timeout = kExecTimeout) {
  const auto credential = RunExecPlugin(plugin, timeout);
  EXPECT_FALSE(credential.ok());
  return ErrorMessage(credential.status());
}

TEST(ExecPlugin, ItsAnswerIsTheCredential) {
  const auto credential =
      RunExecPlugin(Shell(Answer(R"({"token":"t","clientCertificateData":"c","clientKeyData":"k",)"
                                 R"("expirationTimestamp":"1970-01-01T00:00:07Z"})")));
  ASSERT_TRUE(credential.ok()) << credential.status();
  EXPECT_EQ(credential->token, "t");
  EXPECT_EQ(credential->client_cert_pem, "c");
  EXPECT_EQ(credential->client_key_pem, "k");
  EXPECT_EQ(credential->expires_ns, 7'000'000'000);
}

TEST(ExecPlugin, GetsArgumentsEnvironmentAndTheInfoButNoInput) {
  ASSERT_EQ(setenv("FF_REPLACED", "ours", 1), 0);
  ExecPlugin plugin =
      Shell("cat; echo \"{\\\"kind\\\":\\\"ExecCredential\\\",\\\"apiVersion\\\":\\\"" +
            std::string(kVersion) +
            "\\\",\\\"status\\\":{\\\"token\\\":\\\"$1 $FF_REPLACED $KUBERNETES_EXEC_INFO\\\"}}\"");
  plugin.arguments.push_back("argument");
  plugin.environment = {{"FF_REPLACED", "its own"}};
  plugin.info = "info";
  const auto credential = RunExecPlugin(plugin);
  ASSERT_TRUE(credential.ok()) << credential.status();
  EXPECT_EQ(credential->token, "argument its own info");
}

TEST(ExecPlugin, ThatCannotBeStartedTellsHowToInstallIt) {
  ExecPlugin plugin{.command = "no-such-plugin", .install_hint = "apt install it"};
  EXPECT_THAT(ErrorOf(plugin), testing::AllOf(HasSubstr("no-such-plugin"), HasSubstr("No such"),
                                              HasSubstr("apt install it")));
}

TEST(ExecPlugin, ThatFailsIsUnavailable) {
  EXPECT_THAT(ErrorOf(Shell(Answer(R"({"token":"t"})") + "; exit 3")), HasSubstr("exit code 3"));
  EXPECT_THAT(ErrorOf(Shell("kill -9 $$")), HasSubstr("signal 9"));
}

TEST(ExecPlugin, ThatHangsIsKilledWithAllThatItStarted) {
  const std::chrono::milliseconds soon(200);
  EXPECT_THAT(ErrorOf(Shell("sleep 1000 & sleep 1000"), soon), HasSubstr("in time"));
  EXPECT_THAT(ErrorOf(Shell("exec >&-; sleep 1000"), soon), HasSubstr("in time"));
}

TEST(ExecPlugin, ThatWritesWithoutEndIsStopped) {
  EXPECT_THAT(ErrorOf(Shell("yes")), HasSubstr("larger than"));
}

TEST(ExecPlugin, AnAnswerThatIsNoCredentialIsRefused) {
  EXPECT_THAT(ErrorOf(Shell("echo hello")), HasSubstr("not JSON"));
  EXPECT_THAT(ErrorOf(Shell("echo []")), HasSubstr("want object"));
  EXPECT_THAT(ErrorOf(Shell(R"(echo '{"kind":"ExecCredential","apiVersion":"v0"}')")),
              HasSubstr("\"v0\""));
  EXPECT_THAT(ErrorOf(Shell(Answer("{}"))), HasSubstr("neither"));
  EXPECT_THAT(ErrorOf(Shell(Answer(R"({"clientKeyData":"k"})"))), HasSubstr("only one of"));
  EXPECT_THAT(ErrorOf(Shell(Answer(R"({"token":"t","expirationTimestamp":"soon"})"))),
              HasSubstr("RFC 3339"));
}

}  // namespace
}  // namespace flamefleet
