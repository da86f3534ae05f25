// SPDX-License-Identifier: Apache-2.0
// Everything that can go wrong between the cache and a real kube-apiserver. After each fault the
// cache is what the server has, and nothing that is alive was ever reported as deleted.
#include "tests/operator/kube/fault_suite.h"

#include <atomic>
#include <fstream>

#include "base/fd.h"

namespace flamefleet {
namespace {

using Fault = FaultProxy::Fault;

INSTANTIATE_TEST_SUITE_P(Kinds, FaultSuite, testing::Bool(), [](const auto& kind) {
  return kind.param ? "PodsInProtobuf" : "ConfigMapsInJson";
});

TEST_P(FaultSuite, AConnectionCutInsideAnObject) {
  Put("large", std::string(20'000, 'x'));
  // The list that it begins with is cut, then a watch.
  proxy_.SetScript(Times(3, Any, {.cut_after = 10'000}));
  Start();
  EXPECT_EQ(Lists(), 1);
  proxy_.SetScript(Times(2, IsWatch, {.cut_after = 10'000}));
  proxy_.CutAll();
  Change();
  Put("large", std::string(20'000, 'y'));
  EXPECT_TRUE(BecomesTrue());
  EXPECT_EQ(Lists(), 1) << "a cut watch needs no new list";
}

TEST_P(FaultSuite, GoneInAWatchEvent) {
  Start();
  proxy_.SetScript(Times(1, IsWatch, {.kind = Kind::kAnswer, .answer = GoneEvent()}));
  proxy_.CutAll();
  Change();
  EXPECT_TRUE(BecomesTrue());
  EXPECT_TRUE(Eventually([&] { return Lists() >= 2; }));
}

TEST_P(FaultSuite, GoneForAWatchAndForTheListAfterIt) {
  Start();
  proxy_.SetScript(Times(2, Any, {.kind = Kind::kAnswer, .answer = Refusal(410, "Expired")}));
  proxy_.CutAll();
  Change();
  EXPECT_TRUE(BecomesTrue());
}

TEST_P(FaultSuite, GoneForTheContinueTokenOfAList) {
  auto left = std::make_shared<std::atomic<int>>(2);
  proxy_.SetScript([left](const std::string& target) -> Fault {
    if (IsWatchList(target)) return {.kind = Kind::kAnswer, .answer = Refusal(422, "Invalid")};
    const bool next_page = target.find("continue=") != std::string::npos;
    if (!next_page || left->fetch_sub(1) <= 0) return {};
    return {.kind = Kind::kAnswer, .answer = Refusal(410, "Expired")};
  });
  ReflectorOptions options;
  options.page_size = 1;
  Start(options);
  Change();
  EXPECT_TRUE(BecomesTrue());
  EXPECT_GE(Requests("continue="), 1U);
}

TEST_P(FaultSuite, RefusalsOfEveryKind) {
  const std::vector<std::string> refusals = {
      Refusal(429, "TooManyRequests", "Retry-After: 1\r\n"),
      Refusal(503, "ServiceUnavailable", "Retry-After: 1\r\n"),
      Refusal(500, "InternalError"),
      Refusal(409, "Conflict"),
      FaultProxy::Answer(502, "Content-Type: text/html\r\n", "<html>bad gateway</html>"),
      FaultProxy::Answer(200, "Content-Type: text/html\r\n", "<html>a login page</html>"),
      FaultProxy::Answer(200, "Content-Type: text/html\r\n", ""),
      "rubbish\r\n\r\n",
  };
  proxy_.SetScript(EachOnce(refusals));  // to the list that it begins with
  Start();
  proxy_.SetScript(EachOnce(refusals));  // to a watch
  proxy_.CutAll();
  Change();
  EXPECT_TRUE(BecomesTrue());
}

TEST_P(FaultSuite, AHalfOpenConnection) {
  ReflectorOptions options;
  options.idle_timeout = std::chrono::seconds(2);
  Start(options);
  proxy_.SetScript(Times(1, IsWatch, {.kind = Kind::kHang}));
  proxy_.CutAll();
  Change();
  EXPECT_TRUE(BecomesTrue());
}

TEST_P(FaultSuite, AStreamOfBookmarksOnly) {
  Start();
  // Others write, so the version goes on; ours did not change.
  server_->MustKubectl({"create", "namespace", GetParam() ? "n1" : "n2"});
  std::string version;
  Truth(&version);
  proxy_.SetScript(Times(1, IsWatch, {.kind = Kind::kAnswer, .answer = Bookmark(version)}));
  proxy_.CutAll();
  EXPECT_TRUE(Eventually([&] { return Requests("resourceVersion=" + version) > 0; }));
  Change();
  EXPECT_TRUE(BecomesTrue());
  EXPECT_EQ(Lists(), 1);
}

TEST_P(FaultSuite, WatchListRefused) {
  proxy_.SetScript([](const std::string& target) -> Fault {
    if (!IsWatchList(target)) return {};
    return {.kind = Kind::kAnswer, .answer = Refusal(422, "Invalid")};
  });
  Start();
  EXPECT_EQ(Requests("limit="), 1U);
  proxy_.CutAll();
  Change();
  EXPECT_TRUE(BecomesTrue());
}

TEST_P(FaultSuite, AWatchListWithoutItsEnd) {
  proxy_.SetScript([this](const std::string& target) -> Fault {
    if (!IsWatchList(target)) return {};
    return {.kind = Kind::kAnswer, .answer = Bookmark("1")};
  });
  Start();
  EXPECT_GE(Requests("limit="), 1U);
  Change();
  EXPECT_TRUE(BecomesTrue());
}

TEST_P(FaultSuite, AnOlderServerAnswersAfterReconnect) {
  Start();
  std::string old;
  Truth(&old);
  // In the past that it would see again, "phoenix" is deleted; now it is alive.
  Put("phoenix", "1");
  ASSERT_TRUE(admin_->Delete(resource_, "default", "phoenix").ok());
  Put("phoenix", "2");
  ASSERT_TRUE(BecomesTrue());
  const std::set<std::string> before = mirror_.Deleted();
  proxy_.SetScript(
      [old, left = std::make_shared<std::atomic<int>>(2)](const std::string& target) -> Fault {
        if (!IsWatch(target) || left->fetch_sub(1) <= 0) return {};
        const size_t at = target.find("resourceVersion=");
        const size_t end = target.find('&', at);
        return {.target = target.substr(0, at) + "resourceVersion=" + old +
                          (end == std::string::npos ? "" : target.substr(end))};
      });
  proxy_.CutAll();
  Change();
  EXPECT_TRUE(BecomesTrue());
  std::set<std::string> deleted = mirror_.Deleted();
  deleted.erase("b");
  EXPECT_EQ(deleted, before);
  removed_.insert("phoenix");
}

TEST_P(FaultSuite, AVersionThatTheServerHasNotSeen) {
  ReflectorOptions options;
  options.idle_timeout = std::chrono::seconds(1);
  Start(options);
  // As after a restore of etcd: for ever from the future, and the server says nothing.
  proxy_.SetScript([](const std::string& target) -> Fault {
    if (!IsWatch(target)) return {};
    return {.kind = Kind::kHang};
  });
  proxy_.CutAll();
  Change();
  EXPECT_TRUE(BecomesTrue()) << "by a new list";
  EXPECT_GE(Lists(), 2);
}

TEST_P(FaultSuite, AChangedCa) {
  ClientConfig config;
  config.ca_file = Path("ca.pem");
  std::ofstream(config.ca_file) << Content("one.pem");
  Start({}, config);
  proxy_.SetCertificate(Certificate("two"));
  proxy_.CutAll();
  Change();
  ASSERT_TRUE(Eventually([&] { return Answers("<error>") > 0; }));
  std::ofstream(config.ca_file) << Content("two.pem");
  EXPECT_TRUE(BecomesTrue());
}

// A token that is bound to a Secret is refused once that is gone, as one whose time is over.
TEST_P(FaultSuite, AnExpiredToken) {
  const std::string name = GetParam() ? "pod-reader" : "map-reader";
  server_->MustKubectl({"create", "serviceaccount", name});
  server_->MustKubectl({"create", "role", name, "--verb=get,list,watch",
                        "--resource=" + std::string(resource_.plural)});
  server_->MustKubectl(
      {"create", "rolebinding", name, "--role=" + name, "--serviceaccount=default:" + name});
  const auto new_token = [&](const std::string& secret) {
    server_->MustKubectl({"create", "secret", "generic", secret});
    return server_->MustKubectl(
        {"create", "token", name, "--bound-object-kind=Secret", "--bound-object-name=" + secret});
  };
  const std::string first = new_token(name + "-1");
  const std::string second = new_token(name + "-2");
  ClientConfig config;
  config.token_file = Path(name + ".token");
  ASSERT_TRUE(WriteFileAtomically(config.token_file, first, 0600).ok());
  Start({}, config);
  config = server_->config();
  config.tls.client_cert_pem = config.tls.client_key_pem = "";
  config.token = first.substr(0, first.find('\n'));
  Metrics metrics;
  const auto client = *RestClient::Create(config, SystemClock(), metrics);
  EXPECT_TRUE(client->Get(resource_, "default", "stays").ok());
  server_->MustKubectl({"delete", "secret", name + "-1"});
  // The server remembers for ten seconds that the token was good.
  ASSERT_TRUE(Eventually([&] {
    const auto answer = client->Get(resource_, "default", "stays");
    return ErrorMessage(answer.status()).find("Unauthorized") != std::string::npos;
  }));
  const Objects before = mirror_.Get();
  proxy_.CutAll();
  Change();
  ASSERT_TRUE(Eventually([&] { return Answers("401") >= 2; })) << "again after the file was read";
  EXPECT_EQ(mirror_.Get(), before);
  ASSERT_TRUE(WriteFileAtomically(Path(name + ".token"), second, 0600).ok());
  EXPECT_TRUE(BecomesTrue());
  EXPECT_EQ(Lists(), 1) << "a token needs no new list";
}

}  // namespace
}  // namespace flamefleet
