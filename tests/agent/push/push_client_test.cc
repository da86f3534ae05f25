// SPDX-License-Identifier: Apache-2.0
#include "agent/push/push_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/fake_backend.h"

namespace flamefleet::agent {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(PushClient, SendsTenantCredentialsAndTheEndpointsPath) {
  FakeBackend backend;
  const auto client = PushClient::Create({.name = "main",
                                          .endpoint = backend.Url() + "/pyroscope/",
                                          .tenant_id = "team-a",
                                          .authorization = "Bearer hush"});
  ASSERT_TRUE(client.ok()) << client.status();
  EXPECT_EQ((*client)->Push({.body = "body"}, {}).kind, Outcome::Kind::kDelivered);
  const HttpServerRequest request = backend.Requests().at(0);
  EXPECT_EQ(request.path, "/pyroscope/push.v1.PusherService/Push");
  EXPECT_EQ(request.Header("x-scope-orgid"), "team-a");
  EXPECT_EQ(request.Header("authorization"), "Bearer hush");
}

TEST(PushClient, AFailedPushDoesNotRepeatTheCredentials) {
  std::string url;
  {
    FakeBackend gone;
    url = gone.Url();
  }
  const auto client = PushClient::Create({.endpoint = url, .authorization = "Bearer hush"});
  const Outcome outcome = (*client)->Push({.body = "body"}, {});
  EXPECT_EQ(outcome.kind, Outcome::Kind::kRetry);
  EXPECT_THAT(outcome.message, Not(HasSubstr("hush")));
}

TEST(PushClient, CertificatesThatAreNoneAreRefused) {
  const auto client = PushClient::Create(
      {.endpoint = "https://127.0.0.1:1", .ca_pem = "-----BEGIN CERTIFICATE-----\nx\n"});
  EXPECT_EQ(client.status().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace flamefleet::agent
