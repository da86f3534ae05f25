// SPDX-License-Identifier: Apache-2.0
// Who is served, and what of a connection is secret: against gRPC's own client and openssl's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

#include "base/thread.h"
#include "tests/operator/control/control_fixture.h"
#include "tests/support/command.h"
#include "tests/support/wait.h"

namespace flamefleet::control {
namespace {

using testing::HasSubstr;

class ControlSecurityTest : public ControlServerTest {
 protected:
  int Refused(const std::string& reason) const {
    const std::string text = metrics_.RenderText();
    std::smatch match;
    const std::regex series("flamefleet_operator_agents_refused_total\\{reason=\"" + reason +
                            "\"\\} ([0-9]+)");
    return std::regex_search(text, match, series) ? std::stoi(match[1]) : -1;
  }
  std::string Address() const { return "127.0.0.1:" + std::to_string(server_.port()); }
  // The first line of what the server shows: "subject=CN = ..."; with more arguments for s_client.
  CommandResult Handshake(std::vector<std::string> more) const {
    std::vector<std::string> command = {"openssl", "s_client", "-connect",
                                        Address(), "-CAfile",  files_.trust_file(),
                                        "-alpn",   "h2",       "-verify_return_error"};
    command.insert(command.end(), more.begin(), more.end());
    return RunCommand(command);
  }
};

TEST_F(ControlSecurityTest, AnAgentWithoutATokenIsRefusedAndCounted) {
  Agent agent(server_.port(), trust_);
  EXPECT_EQ(agent.Authorize("").Finish().error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(Refused("NoToken"), 1);
  Agent other(server_.port(), trust_);
  EXPECT_EQ(other.Authorize("Basic bjE6cHc=").Finish().error_code(),
            grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(Refused("NoToken"), 2);
}

TEST_F(ControlSecurityTest, AnAgentWhoseTokenIsRefusedGetsNothing) {
  server_.SetAssignment("n1", Pods({"a"}));
  Agent agent(server_.port(), trust_);
  const grpc::Status status = agent.Authorize("Bearer bad").Hello("n1").Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(status.error_message(), "told by the test");
  EXPECT_EQ(Refused("TokenRefused"), 1);
  EXPECT_EQ(server_.ReportOf("n1"), nullptr);
}

TEST_F(ControlSecurityTest, TheNodeIsThatOfTheTokenWhateverTheAgentSays) {
  server_.SetAssignment("n1", Pods({"a"}));
  server_.SetAssignment("n2", Pods({"b"}));
  Agent agent(server_.port(), trust_);
  EXPECT_EQ(agent.Authorize("Bearer n1").Hello("n2").Finish().error_code(),
            grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(Refused("NodeMismatch"), 1);
  EXPECT_EQ(server_.ReportOf("n2"), nullptr);
  EXPECT_EQ(server_.ReportOf("n1"), nullptr);
}

TEST_F(ControlSecurityTest, AStreamEndsWithItsToken) {
  Agent agent(server_.port(), trust_);
  agent.Hello("n1").Read();
  clock_.Advance(kTokenLifeNs);
  EXPECT_EQ(agent.Finish().error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(Refused("TokenExpired"), 1);
}

TEST_F(ControlSecurityTest, ANewerTokenKeepsTheStream) {
  Agent agent(server_.port(), trust_);
  agent.Hello("n1").Read();
  clock_.Advance(kTokenLifeNs - kNanosPerSecond);
  agent.Renew("n1/2");
  pb::Report report;
  report.mutable_node()->set_sampling(true);
  agent.Report(report);
  ASSERT_TRUE(Await("n1", [](const plan::NodeReport& seen) { return seen.sampling; }));
  server_.SetAssignment("n1", Pods({"a"}));
  EXPECT_EQ(agent.Read().delta().version(), 2U);
  ASSERT_TRUE(WaitUntil([&] {
    return metrics_.RenderText().find("flamefleet_operator_token_renewals_total 1") !=
           std::string::npos;
  }));
  clock_.Advance(2 * kNanosPerSecond);
  server_.SetAssignment("n1", Pods({"b"}));
  EXPECT_EQ(agent.Read().delta().version(), 3U);
  EXPECT_EQ(Refused("TokenExpired"), 0);
}

TEST_F(ControlSecurityTest, ANewerTokenOfAnotherNodeEndsTheStream) {
  Agent agent(server_.port(), trust_);
  agent.Hello("n1").Read();
  agent.Renew("n2");
  EXPECT_EQ(agent.Finish().error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(Refused("NodeMismatch"), 1);
}

TEST_F(ControlSecurityTest, WhoWasAdmittedStaysWhenANewerTokenCannotBeChecked) {
  Agent agent(server_.port(), trust_);
  agent.Hello("n1").Read();
  agent.Renew("unknown");
  ASSERT_TRUE(WaitUntil([&] { return judged_ == 2; }));
  server_.SetAssignment("n1", Pods({"a"}));
  EXPECT_EQ(agent.Read().delta().version(), 2U);
  clock_.Advance(kTokenLifeNs);
  EXPECT_EQ(agent.Finish().error_code(), grpc::StatusCode::UNAUTHENTICATED);
}

TEST_F(ControlSecurityTest, AStreamWithoutHelloEnds) {
  Agent agent(server_.port(), trust_);
  agent.Authorize("Bearer n1").Open();
  ASSERT_TRUE(WaitUntil([&] { return judged_ == 1; }));
  clock_.Advance(30 * kNanosPerSecond);
  EXPECT_EQ(agent.Finish().error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_EQ(Refused("NoHello"), 1);
}

TEST_F(ControlSecurityTest, PlainTextIsRefused) {
  Agent agent(server_.port(), grpc::InsecureChannelCredentials());
  EXPECT_EQ(agent.Hello("n1").Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(server_.ReportOf("n1"), nullptr);
}

TEST_F(ControlSecurityTest, OpensslTrustsWhatIsShownAndOlderProtocolsAreRefused) {
  const CommandResult tls13 = Handshake({"-tls1_3", "-verify_ip", "127.0.0.1"});
  EXPECT_EQ(tls13.exit_code, 0) << tls13.err;
  EXPECT_THAT(tls13.out, HasSubstr("Verify return code: 0 (ok)"));
  const CommandResult tls12 = Handshake({"-tls1_2"});
  EXPECT_EQ(tls12.exit_code, 0) << tls12.err;
  EXPECT_NE(Handshake({"-tls1_1", "-cipher", "ALL:@SECLEVEL=0"}).exit_code, 0);
}

TEST_F(ControlSecurityTest, ANewCertificateIsShownWithoutARestartAndOpenStreamsStay) {
  Agent before(server_.port(), trust_);
  before.Hello("n1").Read();
  // Credentials of its own: with those of `before` it would share its connection.
  const Agent::Credentials former = Trust(files_.trusted());
  files_.Rotate();
  server_.SetCertificate(files_.serving());
  Agent after(server_.port(), Trust(files_.trusted()));
  EXPECT_EQ(after.Hello("n2").Read().snapshot().version(), 1U);
  server_.SetAssignment("n1", Pods({"a"}));
  EXPECT_EQ(before.Read().delta().version(), 2U);
  Agent outdated(server_.port(), former);
  EXPECT_EQ(outdated.Hello("n3").Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
}

}  // namespace
}  // namespace flamefleet::control
