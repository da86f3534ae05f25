// SPDX-License-Identifier: Apache-2.0
#include "agent/parse/parser_process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <string>

#include "agent/parse/sandbox.h"

namespace flamefleet::agent {
namespace {

class ParserProcessTest : public ::testing::Test {
 protected:
  // What becomes of a file that begins with this letter.
  Result<std::string> Parse(char fault, const std::string& arguments = "") {
    const UniqueFd fd(::memfd_create("fault", MFD_CLOEXEC));
    EXPECT_EQ(::write(fd.get(), &fault, 1), 1);
    const int files[] = {fd.get()};
    return parser_.Run(ParseKind::kSymbols, files, arguments);
  }

  // The value of a line of its /proc/PID/status.
  std::string StatusLine(const std::string& key) {
    const std::string text =
        *ReadFile("/proc/" + std::to_string(parser_.pid()) + "/status", 64 << 10);
    const size_t at = text.find("\n" + key + ":\t") + key.size() + 3;
    return text.substr(at, text.find('\n', at) - at);
  }

  ParserProcess parser_{FF_FAULTY_PARSER};
};

TEST_F(ParserProcessTest, AnswersArgumentsOfAnySizeUpToTheBound) {
  for (const size_t size : {size_t{0}, size_t{1}, kMaxParseArgumentBytes}) {
    const Result<std::string> answer = Parse('e', std::string(size, 'x'));
    ASSERT_TRUE(answer.ok()) << answer.status();
    EXPECT_EQ(*answer, std::string(size, 'x'));
  }
  EXPECT_EQ(parser_.counts().starts, 1u);
}

TEST_F(ParserProcessTest, HoldsNoPrivilege) {
  ASSERT_TRUE(Parse('e').ok());
  for (const char* const set : {"CapInh", "CapPrm", "CapEff", "CapAmb"})
    EXPECT_EQ(StatusLine(set), "0000000000000000") << set;
  EXPECT_EQ(StatusLine("NoNewPrivs"), "1");
  if (kSandboxIsWhole) {
    EXPECT_EQ(StatusLine("Seccomp"), "2");
  }
  if (::geteuid() == 0) {
    EXPECT_EQ(StatusLine("Uid"), "65534\t65534\t65534\t65534");
  }
}

TEST_F(ParserProcessTest, TheDeathOfTheChildCostsOneFile) {
  for (const char fault : {'c', 'x'}) {
    EXPECT_EQ(Parse(fault).status().code(), StatusCode::kDataLoss) << fault;
    EXPECT_TRUE(Parse('e').ok()) << fault;
  }
  EXPECT_EQ(parser_.counts().deaths, 2u);
}

TEST_F(ParserProcessTest, AFileThatTakesForEverCostsItselfAlone) {
  const StatusCode code = Parse('h').status().code();
  EXPECT_TRUE(code == StatusCode::kDataLoss || code == StatusCode::kDeadlineExceeded);
  EXPECT_TRUE(Parse('e').ok());
}

TEST_F(ParserProcessTest, WantOfMemoryIsAnAnswer) {
  if (kSandboxIsWhole) {
    EXPECT_EQ(Parse('m').status().code(), StatusCode::kResourceExhausted);
  }
  EXPECT_EQ(Parse('a').status().code(), StatusCode::kResourceExhausted);
  EXPECT_TRUE(Parse('e').ok());
  EXPECT_EQ(parser_.counts().deaths, 0u);
}

TEST_F(ParserProcessTest, AChildThatDiedWhileIdleCostsNoFile) {
  ASSERT_TRUE(Parse('e').ok());
  const pid_t pid = parser_.pid();
  ASSERT_EQ(::kill(pid, SIGKILL), 0);
  // Until it has ended and its files are closed, and still to be reaped by its owner.
  siginfo_t end;
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(pid), &end, WEXITED | WNOWAIT), 0);
  EXPECT_TRUE(Parse('e').ok());
  EXPECT_EQ(parser_.counts().deaths, 0u);
  EXPECT_EQ(parser_.counts().starts, 2u);
}

TEST_F(ParserProcessTest, EndsWhenItWasIdleFromOneRestToTheNext) {
  ASSERT_TRUE(Parse('e').ok());
  parser_.Rest();
  EXPECT_GT(parser_.pid(), 0);
  parser_.Rest();
  EXPECT_EQ(parser_.pid(), -1);
  EXPECT_TRUE(Parse('e').ok());
}

TEST_F(ParserProcessTest, LeavesNoDescriptorBehind) {
  const auto count = [] {
    int open = 0;
    for (int fd = 0; fd < 1024; ++fd)
      open += ::fcntl(fd, F_GETFD) >= 0;
    return open;
  };
  const int before = count();
  for (int i = 0; i < 20; ++i)
    Parse(i % 5 == 0 ? 'x' : 'e').IgnoreError();
  parser_.Rest();
  parser_.Rest();
  EXPECT_EQ(count(), before);
}

TEST(ParserProcess, AProgramThatCannotStartIsNoFaultOfTheFile) {
  for (const char* const program : {"/nonexistent/flamefleet-parse", "/bin/false"}) {
    ParserProcess parser(program);
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(parser.Run(ParseKind::kSymbols, {}, "").status().code(), StatusCode::kUnavailable)
          << program;
    }
    EXPECT_LE(parser.counts().starts, 1u) << "not tried again at once";
  }
}

}  // namespace
}  // namespace flamefleet::agent
