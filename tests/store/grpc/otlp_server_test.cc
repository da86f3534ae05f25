// SPDX-License-Identifier: Apache-2.0
// Calls of a gRPC client; tests/clients has those of the OpenTelemetry collector.
#include "store/grpc/otlp_server.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/clock.h"
#include "base/tls/certificate.h"
#include "proto/otlp/profiles.grpc.pb.h"
#include "tests/store/http/store_server.h"

namespace flamefleet::store {
namespace {

namespace pb = opentelemetry::proto::collector::profiles::v1development;
using ::testing::HasSubstr;

class OtlpServerTest : public StoreServerTest {
 protected:
  void Listen(const std::optional<HttpServerTls>& tls = std::nullopt) {
    Result<std::unique_ptr<OtlpServer>> server = OtlpServer::Create(
        "127.0.0.1:0", tls,
        [this](const HttpServerRequest& request) { return handler_->Handle(request); });
    ASSERT_TRUE(server.ok()) << server.status();
    otlp_ = *std::move(server);
  }

  grpc::Status Export(const pb::ExportProfilesServiceRequest& request,
                      const std::shared_ptr<grpc::ChannelCredentials>& credentials =
                          grpc::InsecureChannelCredentials()) {
    grpc::ChannelArguments arguments;
    arguments.SetSslTargetNameOverride("profiles.test");
    const auto channel = grpc::CreateCustomChannel("127.0.0.1:" + std::to_string(otlp_->port()),
                                                   credentials, arguments);
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
    context.set_compression_algorithm(compression_);
    for (const auto& [name, value] : metadata_)
      context.AddMetadata(name, value);
    return pb::ProfilesService::NewStub(channel)->Export(&context, request, &response_);
  }

  // With one profile that is good, and one that is not.
  static pb::ExportProfilesServiceRequest GoodAndBad() {
    pb::ExportProfilesServiceRequest request;
    for (const char* text : {"", "cpu", "nanoseconds"})
      request.mutable_dictionary()->add_string_table(text);
    pb::ScopeProfiles* const scope = request.add_resource_profiles()->add_scope_profiles();
    pb::Profile* const profile = scope->add_profiles();
    profile->set_time_unix_nano(kNow);
    profile->mutable_sample_type()->set_type_strindex(1);
    profile->mutable_sample_type()->set_unit_strindex(2);
    profile->add_samples()->add_values(7);
    scope->add_profiles()->add_samples()->set_stack_index(9);
    return request;
  }

  std::multimap<std::string, std::string> metadata_;
  grpc_compression_algorithm compression_ = GRPC_COMPRESS_NONE;
  pb::ExportProfilesServiceResponse response_;
  std::unique_ptr<OtlpServer> otlp_;
};

TEST_F(OtlpServerTest, WhatIsStoredAndRefusedIsSaidCompressedOrNot) {
  Listen();
  for (const auto algorithm : {GRPC_COMPRESS_NONE, GRPC_COMPRESS_GZIP}) {
    compression_ = algorithm;
    const grpc::Status status = Export(GoodAndBad());
    EXPECT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(response_.partial_success().rejected_profiles(), 1);
    EXPECT_THAT(response_.partial_success().error_message(), HasSubstr("index 9"));
  }
  EXPECT_THAT(Get(port(), "/pprof?query=process_cpu&from=0").body, ::testing::Not(""));
}

TEST_F(OtlpServerTest, RefusalsHaveTheirCodes) {
  Listen();
  pb::ExportProfilesServiceRequest bad;
  bad.add_resource_profiles()->add_scope_profiles()->add_profiles()->add_samples()->set_stack_index(
      9);
  EXPECT_EQ(Export(bad).error_code(), grpc::INVALID_ARGUMENT);
  metadata_ = {{"otlp-profiles-development-version", "2"}};
  grpc::Status status = Export(GoodAndBad());
  EXPECT_EQ(status.error_code(), grpc::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("reads version 1"));
  metadata_.clear();
  status = Export({});
  EXPECT_TRUE(status.ok()) << status.error_message();
}

TEST_F(OtlpServerTest, ABombCostsNoMoreThanTheBound) {
  Listen();
  pb::ExportProfilesServiceRequest request;
  request.mutable_dictionary()->add_string_table(std::string(80 << 20, 'a'));
  compression_ = GRPC_COMPRESS_GZIP;
  const grpc::Status status = Export(request);
  EXPECT_EQ(status.error_code(), grpc::RESOURCE_EXHAUSTED);
  EXPECT_THAT(status.error_message(), HasSubstr("after decompression"));
  compression_ = GRPC_COMPRESS_NONE;
  EXPECT_EQ(Export(request).error_code(), grpc::RESOURCE_EXHAUSTED);
}

TEST_F(OtlpServerTest, WithACertificateOnlyTlsIsServed) {
  const int64_t now_ns = SystemClock().WallNanos();
  const CertificatePair authority = *MakeAuthority(now_ns, kHour);
  const CertificatePair serving = *IssueServing(authority, {"profiles.test"}, now_ns, kHour);
  const HttpServerTls tls = {dir_.path() + "/tls.crt", dir_.path() + "/tls.key"};
  std::ofstream(tls.cert_file) << serving.certificate;
  std::ofstream(tls.key_file) << serving.key;
  Listen(tls);
  const grpc::Status status =
      Export(GoodAndBad(), grpc::SslCredentials({.pem_root_certs = authority.certificate}));
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(Export(GoodAndBad()).error_code(), grpc::UNAVAILABLE);
}

TEST_F(OtlpServerTest, AnAddressThatIsTakenIsAnError) {
  Listen();
  EXPECT_EQ(OtlpServer::Create("127.0.0.1:" + std::to_string(otlp_->port()), std::nullopt, {})
                .status()
                .code(),
            StatusCode::kUnavailable);
}

}  // namespace
}  // namespace flamefleet::store
