// SPDX-License-Identifier: Apache-2.0
// Two operators on one real kube-apiserver, which tell apart by their users what each of them wrote
// in its audit log.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/fd.h"
#include "base/thread.h"
#include "tests/operator/apiserver_fixture.h"
#include "tests/operator/operator_process.h"

namespace flamefleet {
namespace {

using nlohmann::json;

// Short, and long enough that a busy machine does not cost a healthy leader its lease.
const std::vector<std::string> kLeaseFlags = {"--lease-duration=8s", "--renew-deadline=6s",
                                              "--retry-period=500ms"};

struct AuditedWrite {
  std::string user;
  std::string resource;
  std::string received;  // RFC 3339 with six digits: compares as text
  std::string completed;
};

class LeaderTest : public testing::Test {
 protected:
  LeaderTest() {
    std::filesystem::create_directories(folder_);
    std::ofstream(folder_ + "/tokens.csv") << "token-a,user-a,1,system:masters\n"
                                              "token-b,user-b,2,system:masters\n";
    std::ofstream(folder_ + "/policy.yaml") << "apiVersion: audit.k8s.io/v1\n"
                                               "kind: Policy\n"
                                               "omitStages: [RequestReceived]\n"
                                               "rules:\n"
                                               "- {level: Metadata, users: [user-a, user-b], "
                                               "verbs: [create, update, patch, delete]}\n"
                                               "- {level: None}\n";
    server_ = std::make_unique<ApiServer>(
        std::vector<std::string>{"--token-auth-file=" + folder_ + "/tokens.csv",
                                 "--audit-policy-file=" + folder_ + "/policy.yaml",
                                 "--audit-log-path=" + folder_ + "/audit.log"});
    server_->MustKubectl({"create", "namespace", kOperatorNamespace});
  }
  ~LeaderTest() override { std::filesystem::remove_all(folder_); }

  std::string Kubeconfig(const std::string& user) const {
    const ClientConfig& admin = server_->config();
    std::ofstream(folder_ + "/ca.crt") << admin.tls.ca_pem;
    const std::string path = folder_ + "/" + user + ".kubeconfig";
    std::ofstream(path) << "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
                        << "clusters: [{name: k, cluster: {server: '" << admin.base_url
                        << "', certificate-authority: '" << folder_ << "/ca.crt'}}]\n"
                        << "users: [{name: u, user: {token: token-" << user << "}}]\n"
                        << "contexts: [{name: c, context: {cluster: k, user: u}}]\n";
    return path;
  }
  // Changes what the operator has to write.
  void SetMemory(int mebibytes) const {
    const json pool = {{"apiVersion", "flamefleet.dev/v1alpha1"},
                       {"kind", "AgentPool"},
                       {"metadata", {{"name", "default"}}},
                       {"spec", {{"resources", {{"limits", {{"memory", Memory(mebibytes)}}}}}}}};
    server_->MustKubectl({"apply", "--server-side", "-f", "-"}, pool.dump());
  }
  static std::string Memory(int mebibytes) { return std::to_string(mebibytes) + "Mi"; }
  bool DaemonSetHas(int mebibytes) const {
    const auto output = server_->Kubectl({"get", "daemonset", "-n", kOperatorNamespace, "-o",
                                          "jsonpath={.items[0].spec.template.spec.containers[0]"
                                          ".resources.limits.memory}"});
    return output.text == Memory(mebibytes);
  }
  // That succeeded, in the order in which they came.
  std::vector<AuditedWrite> Writes() const {
    std::vector<AuditedWrite> writes;
    std::ifstream file(folder_ + "/audit.log");
    for (std::string line; std::getline(file, line);) {
      const json event = json::parse(line, nullptr, false);
      if (event.is_discarded() || event["responseStatus"].value("code", 0) >= 300) continue;
      writes.push_back({event["user"]["username"], event["objectRef"]["resource"],
                        event["requestReceivedTimestamp"], event["stageTimestamp"]});
    }
    return writes;
  }

  const std::string folder_ = testing::TempDir() + "/ff-leader-" + std::to_string(getpid());
  std::unique_ptr<ApiServer> server_;
};

bool IsOpen(const std::string& address) {
  const UniqueFd connection(socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  to.sin_port = htons(static_cast<uint16_t>(std::stoi(address.substr(address.find(':') + 1))));
  return connect(connection.get(), reinterpret_cast<sockaddr*>(&to), sizeof(to)) == 0;
}

TEST_F(LeaderTest, AFrozenLeaderIsReplacedAndWritesNothingWhenItThaws) {
  OperatorProcess a(Kubeconfig("a"), kLeaseFlags);
  ASSERT_TRUE(Eventually([&] { return a.Leads(); }));
  OperatorProcess b(Kubeconfig("b"), kLeaseFlags);
  SetMemory(100);
  ASSERT_TRUE(Eventually([&] { return DaemonSetHas(100); }));
  // The standby is ready, knows everything, and serves no agent.
  ASSERT_TRUE(Eventually([&] { return b.Http("/readyz").status == 200; }));
  EXPECT_TRUE(Eventually(
      [&] { return b.Metric("flamefleet_operator_cached_objects{kind=\"AgentPool\"}") == 1; }));
  EXPECT_TRUE(IsOpen(a.agents_address()));
  EXPECT_FALSE(IsOpen(b.agents_address()));
  EXPECT_EQ(b.Metric("leader_election_master_status{name=\"flamefleet-operator\"}"), 0);

  // Frozen while it has something to write.
  SetMemory(101);
  a.Signal(SIGSTOP);
  SetMemory(102);
  ASSERT_TRUE(Eventually([&] { return DaemonSetHas(102) && b.Leads(); }));
  SetMemory(103);
  a.Signal(SIGCONT);
  SetMemory(104);
  ASSERT_TRUE(Eventually([&] { return a.Http("/readyz").body.starts_with("ok: standing by"); }));
  EXPECT_TRUE(Eventually([&] { return DaemonSetHas(104); }));
  EXPECT_FALSE(IsOpen(a.agents_address()));

  std::string taken;  // when
  int by_a = 0;
  int by_b = 0;
  for (const AuditedWrite& write : Writes()) {
    if (write.user == "user-b" && taken.empty()) {
      EXPECT_EQ(write.resource, "leases") << "a write before the lease was taken";
      taken = write.completed;
    }
    if (write.resource == "leases") continue;
    (write.user == "user-a" ? by_a : by_b) += 1;
  }
  for (const AuditedWrite& write : Writes()) {
    EXPECT_FALSE(write.user == "user-a" && write.received > taken)
        << write.resource << " written by the old leader at " << write.received
        << ", after the new one took over at " << taken;
  }
  EXPECT_GT(by_a, 0);
  EXPECT_GT(by_b, 0);

  // A clean end hands over.
  EXPECT_EQ(b.End(SIGTERM), 0);
  EXPECT_TRUE(Eventually([&] { return a.Leads(); }));
  SetMemory(105);
  EXPECT_TRUE(Eventually([&] { return DaemonSetHas(105); }));
}

}  // namespace
}  // namespace flamefleet
