// SPDX-License-Identifier: Apache-2.0
// Pusher against an https server of Python's that wants a password.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <mutex>

#include "agent/push/pusher.h"
#include "base/base64.h"
#include "base/reasons.h"
#include "tests/support/tls_server.h"
#include "tests/support/wait.h"

namespace flamefleet::agent {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

class Deliveries final : public DeliveryObserver {
 public:
  void OnDelivered(const CollectionKey&) override { ++delivered; }
  void OnNotDelivered(const CollectionKey&, std::string_view reason,
                      const std::string& message) override {
    const std::lock_guard lock(mutex_);
    failures_.push_back(std::string(reason) + ": " + message);
  }
  std::vector<std::string> failures() const {
    const std::lock_guard lock(mutex_);
    return failures_;
  }
  std::atomic<int> delivered = 0;

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> failures_;
};

class PushCredentialsTest : public TlsServerTest {
 protected:
  PushCredentialsTest()
      : server_({"python3", "tests/agent/push/basic_auth_server.py", directory_ + "/address.pem",
                 directory_ + "/address.key", "agent:hush-new"}) {
    backend_.name = "main";
    backend_.endpoint = "https://" + server_.AwaitLine("ACCEPT ");
    backend_.ca_pem = Pem("ca.pem");
    SetPassword("hush-new");
  }

  void SetPassword(const std::string& password) {
    backend_.authorization = "Basic " + EncodeBase64("agent:" + password);
  }
  void Configure() {
    const Status set = pusher_.SetBackends({backend_});
    EXPECT_TRUE(set.ok()) << set;
  }
  void Push() {
    pusher_.Push({.collection = {.pod_uid = "uid", .container = "app", .type = ProfileType::kCpu},
                  .backend = "main",
                  .labels = {{"service_name", "shop"}},
                  .time_ns = SystemClock().WallNanos(),
                  .pprof = "pprof"});
  }
  bool FailsFor(std::string_view reason) {
    return WaitUntil([&] {
      for (const std::string& failure : deliveries_.failures()) {
        if (failure.starts_with(reason)) return true;
      }
      return false;
    });
  }

  ChildProcess server_;
  BackendConfig backend_;
  Metrics metrics_;
  Deliveries deliveries_;
  Pusher pusher_{
      {.first_backoff = std::chrono::milliseconds(5), .max_backoff = std::chrono::milliseconds(20)},
      nullptr,
      &metrics_,
      &deliveries_};
};

TEST_F(PushCredentialsTest, AChangedPasswordDeliversWhatTheOldOneCouldNot) {
  SetPassword("hush-old");
  Configure();
  Push();
  ASSERT_TRUE(FailsFor(reasons::kBackendUnauthorized));
  EXPECT_EQ(deliveries_.delivered, 0);
  SetPassword("hush-new");
  Configure();
  EXPECT_TRUE(WaitUntil([&] { return deliveries_.delivered == 1; }));
  EXPECT_THAT(deliveries_.failures(), Not(Contains(HasSubstr("hush"))));
}

TEST_F(PushCredentialsTest, AChangedAuthorityDeliversWhatTheOldOneCouldNot) {
  backend_.ca_pem = Pem("other.pem");
  Configure();
  Push();
  ASSERT_TRUE(FailsFor(reasons::kBackendUnreachable));
  EXPECT_EQ(deliveries_.delivered, 0);
  backend_.ca_pem = Pem("ca.pem");
  Configure();
  EXPECT_TRUE(WaitUntil([&] { return deliveries_.delivered == 1; }));
}

}  // namespace
}  // namespace flamefleet::agent
