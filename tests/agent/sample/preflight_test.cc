// SPDX-License-Identifier: Apache-2.0
#include "agent/sample/preflight.h"

#include <gtest/gtest.h>

#include "agent/sample/sampler.h"

namespace flamefleet::agent {
namespace {

HostFacts GoodHost() {
  return {.capabilities = ~uint64_t{0},
          .kernel_release = "6.12.9",
          .kernel_version = "#1 SMP",
          .perf_event_paranoid = 2,
          .has_btf = true};
}

constexpr uint64_t Without(uint64_t capabilities, int number) {
  return capabilities & ~(uint64_t{1} << number);
}

// The six of the DaemonSet: DAC_READ_SEARCH, SYS_PTRACE, SYSLOG, PERFMON, BPF, CHECKPOINT_RESTORE.
constexpr uint64_t kSix =
    (1ull << 2) | (1ull << 19) | (1ull << 34) | (1ull << 38) | (1ull << 39) | (1ull << 40);
constexpr int kSysAdmin = 21;

// The texts that are fatal, or not.
std::vector<std::string> Texts(const HostFacts& facts, bool fatal) {
  std::vector<std::string> texts;
  for (const PreflightProblem& problem : CheckHost(facts)) {
    EXPECT_EQ(problem.text.find('\n'), std::string::npos);
    if (problem.fatal == fatal) texts.push_back(problem.text);
  }
  return texts;
}

bool OneSays(const std::vector<std::string>& texts, const std::string& words) {
  return texts.size() == 1 && texts[0].find(words) != std::string::npos;
}

TEST(Preflight, RootOnAGoodHostHasNoProblem) {
  EXPECT_TRUE(CheckHost(GoodHost()).empty());
}

TEST(Preflight, TheSixCapabilitiesOfTheDaemonSetAreEnough) {
  HostFacts facts = GoodHost();
  facts.capabilities = kSix;
  EXPECT_TRUE(CheckHost(facts).empty());
}

TEST(Preflight, NamesEachCapabilityThatIsMissing) {
  struct Case {
    int number;
    const char* name;
    bool fatal;
  };
  for (const Case& c :
       {Case{39, "CAP_BPF", true}, Case{38, "CAP_PERFMON", true}, Case{19, "CAP_SYS_PTRACE", false},
        Case{40, "CAP_CHECKPOINT_RESTORE", false}, Case{2, "CAP_DAC_READ_SEARCH", false},
        Case{34, "CAP_SYSLOG", false}}) {
    HostFacts facts = GoodHost();
    facts.capabilities = Without(kSix, c.number);
    EXPECT_TRUE(OneSays(Texts(facts, c.fatal), std::string(c.name) + " is missing")) << c.name;
    EXPECT_TRUE(Texts(facts, !c.fatal).empty()) << c.name;
  }
}

TEST(Preflight, WithoutAnyCapabilityThereIsALineForEach) {
  HostFacts facts = GoodHost();
  facts.capabilities = 0;
  EXPECT_EQ(CheckHost(facts).size(), 6u);
}

TEST(Preflight, RefusesWhatTheKernelWouldRefuse) {
  HostFacts facts = GoodHost();
  facts.has_btf = false;
  EXPECT_TRUE(OneSays(Texts(facts, true), "CONFIG_DEBUG_INFO_BTF"));

  facts = GoodHost();
  facts.lockdown = "none integrity [confidentiality]\n";
  EXPECT_TRUE(OneSays(Texts(facts, true), "lockdown=integrity"));
  facts.lockdown = "none [integrity] confidentiality\n";
  EXPECT_TRUE(CheckHost(facts).empty());

  facts = GoodHost();
  facts.perf_event_paranoid = 3;
  EXPECT_TRUE(CheckHost(facts).empty()) << "CAP_SYS_ADMIN passes";
  facts.capabilities = Without(~uint64_t{0}, kSysAdmin);
  EXPECT_TRUE(OneSays(Texts(facts, true), "sysctl kernel.perf_event_paranoid=2"));
}

TEST(Preflight, InAPidNamespaceOfItsOwnItSaysThatItSeesNothingElse) {
  HostFacts facts = GoodHost();
  facts.pid_namespace = 4'026'532'000;
  EXPECT_TRUE(OneSays(Texts(facts, false), "hostPID: true"));
  EXPECT_TRUE(Texts(facts, true).empty());
}

TEST(Preflight, RefusesKernelsThatAreTooOldOrCanFreeze) {
  struct Case {
    const char* release;
    const char* version;
    const char* ubuntu;
    const char* words;  // "": good
  };
  for (const Case& c : {
           Case{"5.10.0-28-amd64", "#1 SMP Debian 5.10.209-2 (2024-01-31)", "", "too old"},
           Case{"5.11.0", "#1 SMP", "", ""},
           Case{"5.15.0-91-generic", "#101-Ubuntu SMP", "Ubuntu 5.15.0-91.101-generic 5.15.131",
                ""},
           Case{"5.18.19", "#1 SMP", "", ""},
           Case{"5.19.0", "#1 SMP", "", "6.1.36"},
           Case{"6.0.12", "#1 SMP", "", "6.1.36"},
           Case{"6.1.35", "#1 SMP", "", "6.1.36"},
           Case{"6.1.36", "#1 SMP", "", ""},
           // Debian says 6.1.0 for all of 6.1
           Case{"6.1.0-18-amd64", "#1 SMP PREEMPT_DYNAMIC Debian 6.1.76-1 (2024-02-01)", "", ""},
           Case{"6.1.0-9-amd64", "#1 SMP PREEMPT_DYNAMIC Debian 6.1.27-1 (2023-05-08)", "",
                "6.1.36"},
           Case{"6.2.0-39-generic", "#40-Ubuntu SMP", "Ubuntu 6.2.0-39.40-generic 6.2.16",
                "6.3.10"},
           Case{"6.3.9", "#1 SMP", "", "6.3.10"},
           Case{"6.3.10", "#1 SMP", "", ""},
           Case{"6.8.0-40-generic", "#40-Ubuntu SMP", "Ubuntu 6.8.0-40.40-generic 6.8.12", ""},
           Case{"7.0.0", "#1 SMP", "", ""},
       }) {
    HostFacts facts = GoodHost();
    facts.kernel_release = c.release;
    facts.kernel_version = c.version;
    facts.ubuntu_signature = c.ubuntu;
    if (*c.words == '\0')
      EXPECT_TRUE(CheckHost(facts).empty()) << c.release;
    else
      EXPECT_TRUE(OneSays(Texts(facts, true), c.words)) << c.release;
  }
}

TEST(Preflight, GathersTheFactsOfThisHost) {
  const HostFacts facts = GatherHostFacts();
  EXPECT_FALSE(facts.kernel_release.empty());
  EXPECT_FALSE(facts.kernel_version.empty());
}

TEST(CpuList, IsReadAsTheKernelWritesIt) {
  EXPECT_EQ(*ParseCpuList("0\n"), (std::vector<int>{0}));
  EXPECT_EQ(*ParseCpuList("0-3,5,7-8\n"), (std::vector<int>{0, 1, 2, 3, 5, 7, 8}));
  EXPECT_EQ(*ParseCpuList("\n"), std::vector<int>());
  for (const char* const bad : {"x", "1-", "3-1", "-1", "1;2", "0-99999999", "1,,2"})
    EXPECT_FALSE(ParseCpuList(bad).ok()) << bad;
}

}  // namespace
}  // namespace flamefleet::agent
