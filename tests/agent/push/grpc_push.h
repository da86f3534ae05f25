// SPDX-License-Identifier: Apache-2.0
// Pushes over gRPC: a Pusher with one backend, and its books; and what each code of a call means
// for the profile that was pushed, the table of outcome.h.
#pragma once

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "agent/push/pusher.h"
#include "tests/fakes/tcp_proxy.h"
#include "tests/support/wait.h"

namespace flamefleet::agent {

inline constexpr LaneOptions kOptions = {.first_backoff = std::chrono::milliseconds(5),
                                         .max_backoff = std::chrono::milliseconds(20),
                                         .push_timeout = std::chrono::seconds(2)};

inline std::string LocalUrl(const char* scheme, uint16_t port) {
  return std::string(scheme) + "://127.0.0.1:" + std::to_string(port);
}

struct CodeFault {
  const char* name;
  grpc::StatusCode code;
  const char* message;
  const char* dropped;  // reason; nullptr: it is delivered in the end
};

class GrpcPushTest : public ::testing::Test {
 protected:
  void Use(const BackendConfig& backend) {
    const Status set = pusher_.SetBackends({backend});
    ASSERT_TRUE(set.ok()) << set;
  }
  void PushProfile(std::string pprof, int number = 0, ProfileType type = ProfileType::kCpu) {
    pusher_.Push({.collection = {.pod_uid = "uid", .container = "app", .type = type},
                  .backend = "main",
                  .labels = {{"service_name", "shop"}, {"pod", "shop-1"}},
                  .time_ns = SystemClock().WallNanos() + number,
                  .pprof = std::move(pprof)});
  }
  bool Drain() { return pusher_.Drain(std::chrono::seconds(60)); }
  double Delivered() {
    return metrics_
        .Counter("flamefleet_agent_profiles_delivered_total",
                 "Profiles that a backend acknowledged.")
        .Value();
  }
  double Dropped(const std::string& reason) {
    return metrics_
        .Counter("flamefleet_agent_profiles_dropped_total",
                 "Profiles that were not delivered, by reason.", {{"reason", reason}})
        .Value();
  }
  bool IsTriedAgain() {
    const auto retries = metrics_.Counter("flamefleet_agent_push_retries_total",
                                          "Pushes that failed and will be tried again.");
    return WaitUntil([&] { return retries.Value() >= 2; });
  }

  // Pushes two profiles to a server that answers the first call with the fault.
  template <typename Server>
  void ExpectTheTableHolds(const CodeFault& fault, BackendProtocol protocol,
                           const std::string& first, const std::string& second) {
    Server server([&fault](int number, grpc::ServerContext&) {
      return number == 0 ? grpc::Status(fault.code, fault.message) : grpc::Status();
    });
    Use({.name = "main", .endpoint = server.Url(), .protocol = protocol});
    PushProfile(first, 1);
    ASSERT_TRUE(Drain());
    PushProfile(second, 2);
    ASSERT_TRUE(Drain());
    EXPECT_TRUE(WaitUntil([&] { return Delivered() == (fault.dropped == nullptr ? 2 : 1); }));
    if (fault.dropped != nullptr) {
      EXPECT_TRUE(WaitUntil([&] { return Dropped(fault.dropped) == 1; }));
    } else {
      const auto requests = server.Requests();
      EXPECT_EQ(requests.at(1).SerializeAsString(), requests.at(0).SerializeAsString());
    }
  }

  // The network between the agent and a server that is well.
  template <typename Server>
  void ExpectRefusalsAreSurvived(BackendProtocol protocol, const std::string& pprof) {
    Server server;
    TcpProxy network(server.port());
    network.SetDown(true);
    UseAt(network, protocol);
    PushProfile(pprof);
    ASSERT_TRUE(IsTriedAgain());
    network.SetDown(false);
    EXPECT_TRUE(Drain());
    EXPECT_GE(server.Requests().size(), 1U);
  }
  template <typename Server>
  void ExpectACutIsSurvived(BackendProtocol protocol, const std::string& pprof) {
    Server server;
    TcpProxy network(server.port());
    network.CutAfter(20);
    UseAt(network, protocol);
    PushProfile(pprof);
    ASSERT_TRUE(IsTriedAgain());
    network.CutAfter(0);
    EXPECT_TRUE(Drain());
    EXPECT_TRUE(WaitUntil([&] { return Delivered() == 1; }));
  }
  template <typename Server>
  void ExpectAFrozenConnectionIsSurvived(BackendProtocol protocol, const std::string& pprof) {
    Server server;
    TcpProxy network(server.port());
    UseAt(network, protocol);
    PushProfile(pprof, 1);
    ASSERT_TRUE(Drain());
    network.SetFrozen(true);
    PushProfile(pprof, 2);
    const auto retries = metrics_.Counter("flamefleet_agent_push_retries_total",
                                          "Pushes that failed and will be tried again.");
    ASSERT_TRUE(WaitUntil([&] { return retries.Value() >= 1; }));
    network.SetFrozen(false);
    EXPECT_TRUE(Drain());
    EXPECT_TRUE(WaitUntil([&] { return Delivered() == 2; }));
    EXPECT_GE(network.accepted(), 2);
  }
  template <typename Server>
  void ExpectALateAnswerIsNone(BackendProtocol protocol, const std::string& pprof) {
    Server server([](int number, grpc::ServerContext& context) {
      EXPECT_TRUE(number != 0 || WaitUntil([&] { return context.IsCancelled(); }));
      return grpc::Status();
    });
    Use({.name = "main", .endpoint = server.Url(), .protocol = protocol});
    PushProfile(pprof);
    EXPECT_TRUE(Drain());
    EXPECT_GE(server.Requests().size(), 2U);
  }
  void UseAt(const TcpProxy& network, BackendProtocol protocol) {
    Use({.name = "main", .endpoint = LocalUrl("http", network.port()), .protocol = protocol});
  }

  Metrics metrics_;
  Pusher pusher_{kOptions, nullptr, &metrics_, nullptr};
};

inline constexpr CodeFault kCodeFaults[] = {
    {"Cancelled", grpc::CANCELLED, "", nullptr},
    // What Parca says to a damaged gzip, and a server in trouble to
    // anything.
    {"Unknown", grpc::UNKNOWN, "gzip: invalid header", nullptr},
    {"InvalidArgument", grpc::INVALID_ARGUMENT, "missing __name__ label", "BackendRefused"},
    {"DeadlineExceeded", grpc::DEADLINE_EXCEEDED, "", nullptr},
    {"NotFound", grpc::NOT_FOUND, "", nullptr},
    {"AlreadyExists", grpc::ALREADY_EXISTS, "", "BackendRefused"},
    {"PermissionDenied", grpc::PERMISSION_DENIED, "", nullptr},
    {"ResourceExhausted", grpc::RESOURCE_EXHAUSTED, "slow down", nullptr},
    // Not a profile that could be split.
    {"TooLarge", grpc::RESOURCE_EXHAUSTED,
     "grpc: received message larger than max (68157495 vs. 67108864)", "ProfileTooLarge"},
    {"FailedPrecondition", grpc::FAILED_PRECONDITION, "", "BackendRefused"},
    {"Aborted", grpc::ABORTED, "", nullptr},
    {"OutOfRange", grpc::OUT_OF_RANGE, "", "BackendRefused"},
    {"Unimplemented", grpc::UNIMPLEMENTED, "unknown service", nullptr},
    {"Internal", grpc::INTERNAL, "", nullptr},
    {"Unavailable", grpc::UNAVAILABLE, "", nullptr},
    {"DataLoss", grpc::DATA_LOSS, "", nullptr},
    {"Unauthenticated", grpc::UNAUTHENTICATED, "", nullptr},
};

}  // namespace flamefleet::agent
