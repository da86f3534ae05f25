// SPDX-License-Identifier: Apache-2.0
#include "operator/render/schema.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace flamefleet::render {
namespace {

using nlohmann::json;

json Target(const char* spec) {
  return {{"apiVersion", "flamefleet.dev/v1alpha1"},
          {"kind", "ProfilingTarget"},
          {"metadata", {{"name", "t"}}},
          {"spec", json::parse(spec)}};
}

std::vector<std::string> Errors(const char* spec) {
  json object = Target(spec);
  std::vector<std::string> errors;
  for (const SchemaError& error : Schemas().Check("ProfilingTarget", object))
    errors.push_back(error.field + ": " + error.cause);
  return errors;
}

TEST(Schemas, EachKindOfConstraintIsChecked) {
  const std::pair<const char*, const char*> rows[] = {
      {R"({"profiles":[{"type":"cpu"}]})", "spec.selector: is required"},
      {R"({"selector":{},"profiles":[]})", "spec.profiles: want at least 1 items"},
      {R"({"selector":{},"profiles":[{"type":"heap"}]})", "spec.profiles[0].type: want one of cpu"},
      {R"({"selector":{},"profiles":[{"type":"cpu"},{"type":"cpu"}]})",
       "spec.profiles[1]: an item before it is the same"},
      {R"({"selector":{},"profiles":[{"type":"cpu"}],"containers":["a","a"]})",
       "spec.containers[1]: an item before it is the same"},
      {R"({"selector":{},"profiles":[{"type":"cpu"}],"serviceName":""})",
       "spec.serviceName: want at least 1"},
      {R"({"selector":{},"profiles":[{"type":"cpu"}],"serviceName":"a b"})",
       "spec.serviceName: want text that matches"},
      {R"({"selector":{},"profiles":[{"type":"cpu"}],"labels":{"a":1}})",
       "spec.labels[a]: want string, got integer: put it in quotes"},
      {R"({"selector":{},"profiles":[{"type":"cpu"}],"paused":"true"})",
       "spec.paused: want boolean, got string"},
      {R"({"selector":{"matchlabels":{}},"profiles":[{"type":"cpu"}]})",
       "spec.selector.matchlabels: no such field"},
      {R"({"selector":{},"profiles":[{"type":"memory","pull":{"port":1.5}}]})",
       "spec.profiles[0].pull.port: want integer or string"},
      {R"({"selector":null,"profiles":[{"type":"cpu"}]})", "spec.selector: want object, got null"}};
  for (const auto& [spec, want] : rows)
    EXPECT_THAT(Errors(spec), testing::Contains(testing::StartsWith(want))) << spec;
  EXPECT_THAT(Errors(R"({"selector":{},"profiles":[{"type":"cpu"}]})"), testing::IsEmpty());
}

TEST(Schemas, DefaultsAreSetAndAStatusIsNotLookedAt) {
  json object = Target(R"({"selector":{},"paused":null,"profiles":[{"type":"cpu"}]})");
  object["status"] = "nonsense";
  EXPECT_TRUE(Schemas().Check("ProfilingTarget", object).empty());
  EXPECT_EQ(object["spec"]["paused"], false);
  EXPECT_FALSE(object.contains("status"));
}

}  // namespace
}  // namespace flamefleet::render
