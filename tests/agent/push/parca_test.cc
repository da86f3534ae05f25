// SPDX-License-Identifier: Apache-2.0
// Pushes to Parca: what arrives at a real gRPC server, and what becomes of a
// profile when the server or the network misbehaves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "agent/push/pusher.h"
#include "base/reasons.h"
#include "base/tls/certificate.h"
#include "tests/agent/push/grpc_push.h"
#include "tests/base/pprof/test_profiles.h"
#include "tests/support/fake_backend.h"
#include "tests/support/parca_server.h"
#include "tests/support/raw_socket.h"
#include "tests/support/wait.h"

namespace flamefleet::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kLifeNs = 3600 * kNanosPerSecond;
constexpr const char* kName = "profiles.test";

BackendConfig Parca(const std::string& endpoint) {
  return {.name = "main", .endpoint = endpoint, .protocol = BackendProtocol::kParca};
}

class ParcaTest : public GrpcPushTest {
 protected:
  void Push(int number = 0) { PushProfile("pprof " + std::to_string(number), number); }
};

TEST_F(ParcaTest, AProfileArrivesWithItsNameLabelsAndCredentials) {
  ParcaServer server;
  BackendConfig backend = Parca(server.Url() + "/");
  backend.authorization = "Bearer hush";
  Use(backend);
  Push();
  ASSERT_TRUE(Drain());
  EXPECT_TRUE(WaitUntil([&] { return Delivered() == 1; }));
  ASSERT_EQ(server.Requests().size(), 1U);
  EXPECT_EQ(server.LastHeader("authorization"), "Bearer hush");
  const auto request = server.Requests()[0];
  ASSERT_EQ(request.series_size(), 1);
  std::string labels;
  for (const auto& label : request.series(0).labels().labels())
    labels += label.name() + "=" + label.value() + ",";
  EXPECT_EQ(labels, "__name__=process_cpu,pod=shop-1,service_name=shop,");
  ASSERT_EQ(request.series(0).samples_size(), 1);
  EXPECT_EQ(request.series(0).samples(0).raw_profile(), "pprof 0");
}

TEST_F(ParcaTest, EndpointsThatAreNoneAreRefused) {
  for (const char* endpoint : {"http://parca:7070/api", "parca:7070", "grpc://parca:7070",
                               "http://", "http://parca:x", "https://parca:7070/?a=b"}) {
    const Status set = pusher_.SetBackends({Parca(endpoint)});
    EXPECT_EQ(set.code(), StatusCode::kInvalidArgument) << endpoint;
  }
  BackendConfig backend = Parca("http://parca");
  EXPECT_TRUE(pusher_.SetBackends({backend}).ok());
  backend.authorization = "Bearer hush\nx";
  const Status set = pusher_.SetBackends({backend});
  EXPECT_EQ(set.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(ErrorMessage(set), Not(HasSubstr("hush")));
}

class ParcaTlsTest : public ParcaTest {
 protected:
  // Of a server that is called kName, by an authority of its own.
  ParcaTlsTest() {
    const int64_t now_ns = SystemClock().WallNanos();
    authority_ = *MakeAuthority(now_ns, kLifeNs);
    other_ = *MakeAuthority(now_ns, kLifeNs);
    const CertificatePair serving = *IssueServing(authority_, {kName}, now_ns, kLifeNs);
    grpc::SslServerCredentialsOptions tls;
    tls.pem_key_cert_pairs = {{serving.key, serving.certificate}};
    server_ = std::make_unique<ParcaServer>(ParcaServer::AlwaysOk, grpc::SslServerCredentials(tls));
    backend_ = Parca(LocalUrl("https", server_->port()));
  }

  CertificatePair authority_;
  CertificatePair other_;
  std::unique_ptr<ParcaServer> server_;
  BackendConfig backend_;
};

TEST_F(ParcaTlsTest, AServerOfTheAuthorityWithTheNameIsTrusted) {
  backend_.ca_pem = authority_.certificate;
  backend_.server_name = kName;
  Use(backend_);
  Push();
  EXPECT_TRUE(Drain());
  EXPECT_TRUE(WaitUntil([&] { return Delivered() == 1; }));
}

TEST_F(ParcaTlsTest, NoOtherServerIsSentAnything) {
  BackendConfig another_name = backend_;
  another_name.ca_pem = authority_.certificate;
  BackendConfig another_authority = backend_;
  another_authority.ca_pem = other_.certificate;
  another_authority.server_name = kName;
  BackendConfig system_roots = backend_;
  system_roots.server_name = kName;
  BackendConfig plain_text = Parca(LocalUrl("http", server_->port()));
  for (const BackendConfig& backend : {another_name, another_authority, system_roots, plain_text}) {
    Metrics metrics;
    Pusher pusher(kOptions, nullptr, &metrics, nullptr);
    ASSERT_TRUE(pusher.SetBackends({backend}).ok());
    pusher.Push({.backend = "main", .time_ns = SystemClock().WallNanos(), .pprof = "pprof"});
    const auto retries = metrics.Counter("flamefleet_agent_push_retries_total",
                                         "Pushes that failed and will be tried again.");
    EXPECT_TRUE(WaitUntil([&] { return retries.Value() >= 2; }));
  }
  EXPECT_EQ(server_->Requests().size(), 0U);
}

TEST_F(ParcaTlsTest, AChangedAuthorityDeliversWhatTheOldOneCouldNot) {
  backend_.ca_pem = other_.certificate;
  backend_.server_name = kName;
  Use(backend_);
  Push();
  ASSERT_TRUE(IsTriedAgain());
  backend_.ca_pem = authority_.certificate;
  Use(backend_);
  EXPECT_TRUE(Drain());
  EXPECT_TRUE(WaitUntil([&] { return Delivered() == 1; }));
}

TEST_F(ParcaTlsTest, WithoutVerificationAnyServerIsTrusted) {
  backend_.insecure_skip_verify = true;
  Use(backend_);
  Push();
  EXPECT_TRUE(Drain());
  EXPECT_TRUE(WaitUntil([&] { return Delivered() == 1; }));
}

class ParcaCodeTest : public ParcaTest, public ::testing::WithParamInterface<CodeFault> {};

TEST_P(ParcaCodeTest, TheTableHoldsAndTheNextProfileArrives) {
  ExpectTheTableHolds<ParcaServer>(GetParam(), BackendProtocol::kParca, "pprof 1", "pprof 2");
}

INSTANTIATE_TEST_SUITE_P(Faults, ParcaCodeTest, ::testing::ValuesIn(kCodeFaults),
                         [](const auto& row) { return std::string(row.param.name); });

TEST_F(ParcaTest, ACorruptProfileIsGivenUp) {
  ParcaServer server([](int, grpc::ServerContext&) {
    return grpc::Status(grpc::UNKNOWN, "gzip: invalid header");
  });
  Use(Parca(server.Url()));
  Push();
  EXPECT_TRUE(Drain());
  EXPECT_EQ(server.Requests().size(), static_cast<size_t>(kMaxServerErrors));
  EXPECT_TRUE(WaitUntil([&] { return Dropped("BackendRefused") == 1; }));
}

TEST_F(ParcaTest, AProfileOverTheServersMessageSizeArrivesInParts) {
  constexpr int kMaxMessageBytes = 64 << 10;
  ParcaServer server(ParcaServer::AlwaysOk, grpc::InsecureServerCredentials(), kMaxMessageBytes);
  Use(Parca(server.Url()));
  pprof::Profile profile;
  pprof::FillRandomProfile(1, 5000, &profile);
  const std::string whole = pprof::EncodeToString(profile);
  ASSERT_GT(whole.size(), static_cast<size_t>(kMaxMessageBytes));
  pusher_.Push({.backend = "main", .time_ns = SystemClock().WallNanos(), .pprof = whole});
  ASSERT_TRUE(Drain());
  EXPECT_GT(server.Requests().size(), 1U);
  int64_t arrived = 0;
  for (const auto& request : server.Requests()) {
    const pprof::Profile part = pprof::DecodeOrDie(request.series(0).samples(0).raw_profile());
    arrived = std::accumulate(part.values.begin(), part.values.end(), arrived);
  }
  EXPECT_EQ(arrived, std::accumulate(profile.values.begin(), profile.values.end(), int64_t{0}));
}

TEST_F(ParcaTest, AServerThatComesBackAfterRefusedConnectionsGetsTheProfile) {
  ExpectRefusalsAreSurvived<ParcaServer>(BackendProtocol::kParca, "pprof");
}

TEST_F(ParcaTest, AConnectionThatIsCutInTheAnswerIsMadeAgain) {
  ExpectACutIsSurvived<ParcaServer>(BackendProtocol::kParca, "pprof");
}

TEST_F(ParcaTest, AHalfOpenConnectionCostsOneTimeOut) {
  ExpectAFrozenConnectionIsSurvived<ParcaServer>(BackendProtocol::kParca, "pprof");
}

TEST_F(ParcaTest, ALateAnswerIsNoAnswer) {
  ExpectALateAnswerIsNone<ParcaServer>(BackendProtocol::kParca, "pprof");
}

TEST_F(ParcaTest, WhatIsNoGrpcServerIsTriedAgainForEver) {
  FakeBackend web_server(
      [](int) { return HttpServerResponse{.content_type = "text/html", .body = "<html>"}; });
  RawServer no_http([](RawSocket& socket) {
    socket.Receive();
    socket.Send("SSH-2.0-OpenSSH_9.2\r\n\r\n");
  });
  for (const std::string& url : {web_server.Url(), no_http.Url()}) {
    Metrics metrics;
    Pusher pusher(kOptions, nullptr, &metrics, nullptr);
    ASSERT_TRUE(pusher.SetBackends({Parca(url)}).ok());
    pusher.Push({.backend = "main", .time_ns = SystemClock().WallNanos(), .pprof = "pprof"});
    const auto retries = metrics.Counter("flamefleet_agent_push_retries_total",
                                         "Pushes that failed and will be tried again.");
    EXPECT_TRUE(WaitUntil([&] { return retries.Value() > kMaxServerErrors; }));
  }
}

}  // namespace
}  // namespace flamefleet::agent
