// SPDX-License-Identifier: Apache-2.0
// OTLP over real HTTP; the status codes are those of the specification and of the OpenTelemetry
// collector.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/gzip.h"
#include "proto/otlp/profiles.pb.h"
#include "tests/store/http/store_server.h"

namespace flamefleet::store {
namespace {

namespace pb = opentelemetry::proto::collector::profiles::v1development;
using ::testing::HasSubstr;
using OtlpHandlerTest = StoreServerTest;

constexpr char kPath[] = "/v1development/profiles";
const Headers kProtobuf = {{"Content-Type", "application/x-protobuf"}};

pb::ExportProfilesServiceRequest GoodRequest() {
  pb::ExportProfilesServiceRequest request;
  for (const char* text : {"", "cpu", "nanoseconds", "work"})
    request.mutable_dictionary()->add_string_table(text);
  request.mutable_dictionary()->add_function_table();
  request.mutable_dictionary()->add_function_table()->set_name_strindex(3);
  request.mutable_dictionary()->add_location_table();
  request.mutable_dictionary()->add_location_table()->add_lines()->set_function_index(1);
  request.mutable_dictionary()->add_stack_table();
  request.mutable_dictionary()->add_stack_table()->add_location_indices(1);
  pb::Profile* const profile =
      request.add_resource_profiles()->add_scope_profiles()->add_profiles();
  profile->set_time_unix_nano(kNow);
  profile->mutable_sample_type()->set_type_strindex(1);
  profile->mutable_sample_type()->set_unit_strindex(2);
  profile->add_samples()->set_stack_index(1);
  profile->mutable_samples(0)->add_values(7);
  return request;
}

void ExpectError(const Reply& reply, int status, int code, const std::string& message) {
  EXPECT_EQ(reply.status, status);
  EXPECT_EQ(reply.headers.at("content-type"), "application/x-protobuf");
  pb::RpcStatus error;
  ASSERT_TRUE(error.ParseFromString(reply.body));
  EXPECT_EQ(error.code(), code);
  EXPECT_THAT(error.message(), HasSubstr(message));
}

TEST_F(OtlpHandlerTest, WhatIsStoredIsAnsweredWithAnEmpty200) {
  const std::string body = GoodRequest().SerializeAsString();
  Headers gzip = kProtobuf;
  gzip["Content-Encoding"] = "gzip";
  gzip["Otlp-Profiles-Development-Version"] = "1";
  for (const Reply& reply : {Send(port(), "POST", kPath, kProtobuf, body),
                             Send(port(), "POST", kPath, gzip, *Gzip(body)),
                             Send(port(), "POST", kPath, kProtobuf, "")}) {
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(reply.body, "");
    EXPECT_EQ(reply.headers.at("content-type"), "application/x-protobuf");
  }
}

TEST_F(OtlpHandlerTest, WhatIsRefusedInPartIsSaidAndCounted) {
  pb::ExportProfilesServiceRequest request = GoodRequest();
  request.mutable_resource_profiles(0)
      ->mutable_scope_profiles(0)
      ->add_profiles()
      ->add_samples()
      ->set_stack_index(9);
  const Reply reply = Send(port(), "POST", kPath, kProtobuf, request.SerializeAsString());
  EXPECT_EQ(reply.status, 200);
  pb::ExportProfilesServiceResponse answer;
  ASSERT_TRUE(answer.ParseFromString(reply.body));
  EXPECT_EQ(answer.partial_success().rejected_profiles(), 1);
  EXPECT_THAT(answer.partial_success().error_message(), HasSubstr("index 9 into 2 stacks"));
  EXPECT_THAT(Send(port(), "GET", "/metrics", {}, "").body,
              HasSubstr("flamefleet_store_profiles_refused_total{reason=\"malformed_profile\"} 1"));
}

TEST_F(OtlpHandlerTest, WhatIsRefusedAsAWholeSaysWhy) {
  ExpectError(Send(port(), "POST", kPath, kProtobuf, "not protobuf"), 400, 3, "damaged");
  pb::ExportProfilesServiceRequest old = GoodRequest();
  old.mutable_resource_profiles(0)
      ->mutable_scope_profiles(0)
      ->mutable_profiles(0)
      ->set_time_unix_nano(1);
  ExpectError(Send(port(), "POST", kPath, kProtobuf, old.SerializeAsString()), 400, 3,
              "older than what this store keeps");
  Headers gzip = kProtobuf;
  gzip["Content-Encoding"] = "gzip";
  ExpectError(Send(port(), "POST", kPath, gzip, *Gzip(std::string(80 << 20, '\0'))), 413, 8,
              "after decompression");
}

TEST_F(OtlpHandlerTest, OtherTypesCompressionsVersionsAndMethodsAreRefused) {
  const std::string body = GoodRequest().SerializeAsString();
  ExpectError(Send(port(), "POST", kPath, {{"Content-Type", "application/json"}}, "{}"), 415, 3,
              "application/x-protobuf");
  Headers headers = kProtobuf;
  headers["Content-Encoding"] = "zstd";
  ExpectError(Send(port(), "POST", kPath, headers, body), 415, 3, "gzip");
  for (const char* version : {"2", "0", ""}) {
    headers = kProtobuf;
    headers["otlp-profiles-development-version"] = version;
    ExpectError(Send(port(), "POST", kPath, headers, body), 400, 3, "reads version 1");
  }
  EXPECT_EQ(Send(port(), "GET", kPath, {}, "").status, 405);
}

}  // namespace
}  // namespace flamefleet::store
