// SPDX-License-Identifier: Apache-2.0
// The program itself, as a user starts it. Needs root: it samples this kernel.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "tests/bpf/child.h"
#include "tests/support/child_process.h"
#include "tests/support/command.h"
#include "tests/support/fake_backend.h"
#include "tests/support/temp_dir.h"
#include "tests/support/wait.h"

namespace flamefleet::agent {
namespace {

using ::testing::HasSubstr;

CommandResult Agent(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), FF_AGENT);
  return RunCommand(arguments);
}

TEST(AgentCommand, HelpAndVersionSucceedAndWrongUsageIsTwo) {
  EXPECT_EQ(Agent({"--help"}).exit_code, 0);
  EXPECT_THAT(Agent({"--help"}).out, HasSubstr("local"));
  EXPECT_EQ(Agent({"--version"}).out, "flamefleet-agent " FF_VERSION "\n");
  EXPECT_THAT(Agent({"run", "--help"}).out, HasSubstr("$FLAMEFLEET_NODE"));
  EXPECT_EQ(Agent({}).exit_code, 2);
  EXPECT_EQ(Agent({"dance"}).exit_code, 2);
  const CommandResult missing = Agent({"run", "--node", "n"});
  EXPECT_EQ(missing.exit_code, 2);
  EXPECT_THAT(missing.err, HasSubstr("--operator is missing"));
  EXPECT_EQ(Agent({"local"}).exit_code, 2);
  EXPECT_EQ(Agent({"local", "--out", "x", "--push", "http://y"}).exit_code, 2);
  EXPECT_THAT(Agent({"local", "--out", "x", "--pid", "0"}).err, HasSubstr("--pid '0'"));
  EXPECT_THAT(Agent({"local", "--out", "x", "--frequency", "1000"}).err, HasSubstr("1 to 999"));
}

TEST(AgentCommand, LocalWritesTheServiceOfAProcessWithItsFunctions) {
  const TempDir directory;
  testing::Burner burner({"split"});
  const CommandResult result = Agent({"local", "--duration", "3s", "--frequency", "199", "--pid",
                                      std::to_string(burner.pid()), "--out", directory.path()});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr(directory.path() + "/burner.pb.gz"));
  EXPECT_THAT(RunCommand({"go", "tool", "pprof", "-top", directory.path() + "/burner.pb.gz"}).out,
              ::testing::AllOf(HasSubstr("BurnSeventy"), HasSubstr("BurnThirty")));
}

// As on a node that is a container itself: in it the program has another number than the kernel
// knows it by.
TEST(AgentCommand, LocalProfilesItsOwnPidNamespace) {
  const TempDir directory;
  const std::string script =
      "sleep 1000 | \"$1\" split & "
      "exec \"$0\" local --duration 3s --frequency 199 --pid $! --out \"$2\"";
  const CommandResult result = RunCommand({"unshare", "--pid", "--fork", "--mount-proc", "sh", "-c",
                                           script, FF_AGENT, FF_BURNER, directory.path()});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("hostPID"));
  EXPECT_THAT(RunCommand({"go", "tool", "pprof", "-top", directory.path() + "/burner.pb.gz"}).out,
              ::testing::AllOf(HasSubstr("BurnSeventy"), HasSubstr("BurnThirty")));
}

TEST(AgentCommand, LocalWithoutDurationFlushesAtSigint) {
  FakeBackend backend;
  testing::Burner burner({"split"});
  ChildProcess agent(
      {FF_AGENT, "local", "--pid", std::to_string(burner.pid()), "--push", backend.Url()});
  agent.AwaitLine("Profiling");
  ASSERT_TRUE(WaitUntil([&] { return backend.Count() >= 1; }));
  const size_t before = backend.Count();
  ::kill(agent.pid(), SIGINT);
  EXPECT_EQ(agent.Wait(), 0);
  EXPECT_GT(backend.Count(), before);
  EXPECT_EQ(FakeBackend::LabelsOf(backend.Requests()[0]),
            "__delta__=false,__name__=process_cpu,service_name=burner");
}

TEST(AgentCommand, LocalSaysWhenTheBackendIsNoUrl) {
  const CommandResult result = Agent({"local", "--push", "localhost:4040"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("want http://HOST:PORT"));
}

}  // namespace
}  // namespace flamefleet::agent
