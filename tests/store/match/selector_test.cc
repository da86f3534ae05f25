// SPDX-License-Identifier: Apache-2.0
#include "store/match/selector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace flamefleet::store {
namespace {

using ::testing::HasSubstr;

bool Matches(const std::string& query, const Labels& labels) {
  const Result<Selector> selector = ParseSelector(query);
  EXPECT_TRUE(selector.ok()) << query << ": " << selector.status();
  return selector.ok() && selector->Matches(labels);
}

const Labels kShop = {{"__name__", "process_cpu"},
                      {"service_name", "shop"},
                      {"k8s.pod", "web-1"},
                      {"note", "a\"b\\c\nd"}};

TEST(Selector, OperatorsAreThoseOfPrometheus) {
  EXPECT_TRUE(Matches(R"({service_name="shop"})", kShop));
  EXPECT_FALSE(Matches(R"({service_name="sho"})", kShop));
  EXPECT_FALSE(Matches(R"({service_name!="shop"})", kShop));
  EXPECT_TRUE(Matches(R"({service_name=~"s.*"})", kShop));
  EXPECT_FALSE(Matches(R"({service_name!~"s.*"})", kShop));
  EXPECT_TRUE(Matches(R"({service_name="shop",k8s.pod="web-1",})", kShop));
  EXPECT_FALSE(Matches(R"({service_name="shop",k8s.pod="web-2"})", kShop));
}

TEST(Selector, ExpressionsMatchTheWholeValue) {
  EXPECT_FALSE(Matches(R"({service_name=~"ho"})", kShop));
  EXPECT_TRUE(Matches(R"({service_name=~"cart|shop"})", kShop));
  EXPECT_FALSE(Matches(R"({service_name=~"cart|sho"})", kShop));
  EXPECT_TRUE(Matches(R"({note=~"a.*d"})", kShop));  // the dot takes the line break
}

TEST(Selector, AbsentLabelIsTheEmptyText) {
  EXPECT_TRUE(Matches(R"({zone=""})", kShop));
  EXPECT_TRUE(Matches(R"({zone!="x"})", kShop));
  EXPECT_TRUE(Matches(R"({zone=~".*"})", kShop));
  EXPECT_FALSE(Matches(R"({zone=~".+"})", kShop));
  EXPECT_FALSE(Matches(R"({service_name=""})", kShop));
}

TEST(Selector, TextsAreQuotedInThreeWays) {
  EXPECT_TRUE(Matches(R"({note="a\"b\\c\nd"})", kShop));
  EXPECT_TRUE(Matches(R"({note='a"b\\c\nd'})", kShop));
  EXPECT_TRUE(Matches("{note=`a\"b\\c\nd`}", kShop));
  EXPECT_TRUE(Matches(R"({"k8s.pod"="web-1"})", kShop));
  EXPECT_TRUE(Matches(R"( process_cpu { "k8s.pod" = "web-1" , note !~ "x" } )", kShop));
  EXPECT_TRUE(Matches(R"({k8s.pod=~`web-\d`})", kShop));
}

TEST(Selector, WithoutATypeItIsCpu) {
  const Labels memory = {{"__name__", "memory"}, {"service_name", "shop"}};
  for (const char* query : {"", "{}", R"({service_name="shop"})", "process_cpu"}) {
    EXPECT_TRUE(Matches(query, kShop)) << query;
    EXPECT_FALSE(Matches(query, memory)) << query;
  }
  EXPECT_TRUE(Matches("memory", memory));
  EXPECT_TRUE(Matches(R"({__name__=~".+"})", memory));
}

TEST(Selector, TypeMayNameTheSampleType) {
  EXPECT_EQ(ParseSelector("memory")->sample_type.type, "");
  EXPECT_EQ(ParseSelector("memory:inuse_space")->sample_type.type, "inuse_space");
  const Result<Selector> full = ParseSelector("memory:inuse_space:bytes:space:bytes{a=\"b\"}");
  ASSERT_TRUE(full.ok());
  EXPECT_EQ(full->sample_type.unit, "bytes");
  EXPECT_EQ(full->sample_type.period_type, "space");
  EXPECT_EQ(full->matchers.size(), 2U);
}

TEST(Selector, ErrorSaysWhereAndWhat) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"{", "character 2: want a label name"},
      {"{a}", "character 3: want =, !=, =~ or !~"},
      {"{a=b}", "character 4: want a quoted text"},
      {"{a=\"b}", "the text has no closing quote"},
      {"{a=\"b\" c=\"d\"}", "want , or }"},
      {"{a=\"\\d\"}", "unknown escape"},
      {"{a=~\"(\"}", "regular expression: missing )"},
      {"{a=\"b\"} more", "unexpected text"},
      {"a:b:c:d", "a profile type is"},
      {":x", "a profile type is"},
      {std::string("{a=\"\xff\"}"), "not UTF-8"},
      {std::string(kMaxSelectorBytes + 1, 'a'), "longer than"},
  };
  for (const auto& [query, message] : cases) {
    const Status status = ParseSelector(query).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << query;
    EXPECT_THAT(ErrorMessage(status), HasSubstr(message));
  }
}

TEST(Selector, NumberOfMatchersIsBounded) {
  std::string query = "{";
  for (size_t i = 0; i <= kMaxMatchers; ++i)
    query += "a=\"b\",";
  EXPECT_FALSE(ParseSelector(query + "}").ok());
}

}  // namespace
}  // namespace flamefleet::store
