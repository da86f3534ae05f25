// SPDX-License-Identifier: Apache-2.0
#include "operator/render/yaml_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

namespace flamefleet::render {
namespace {

using nlohmann::json;

// Each document as "number: json", or "number! cause".
std::vector<std::string> Read(const std::string& text) {
  std::vector<std::string> out;
  ReadYaml(text, [&](int number, const Result<json>& document) {
    out.push_back(std::to_string(number) + (document.ok()
                                                ? ": " + document->dump()
                                                : "! " + ErrorMessage(document.status())));
  });
  return out;
}

TEST(ReadYaml, PlainScalarsAreWhatKubectlTakesThemFor) {
  const std::pair<const char*, json> rows[] = {
      {"true", true},     {"yes", true},    {"on", true},    {"off", false},
      {"null", nullptr},  {"~", nullptr},   {"6060", 6060},  {"0x10", 16},
      {"010", 8},         {"0o10", 8},      {"1_000", 1000}, {"1.50", 1.5},
      {"1e3", 1000.0},    {"-5", -5},       {".5", 0.5},     {"08", 8.0},
      {"1.2.3", "1.2.3"}, {"15s", "15s"},   {"v1", "v1"},    {"2026-11-29", "2026-11-29"},
      {"-", "-"},         {"Yes!", "Yes!"}, {"1,5", "1,5"},  {"18446744073709551615", UINT64_MAX},
      {"0x", "0x"},       {"nan", "nan"},   {"-inf", "-inf"}};
  for (const auto& [text, want] : rows)
    EXPECT_EQ(ResolvePlainScalar(text), want) << text;
}

TEST(ReadYaml, QuotesMakeText) {
  EXPECT_THAT(Read("a: \"true\"\nb: '6060'\nc: !!str 5\nd: |\n  yes\n"),
              testing::ElementsAre(R"(1: {"a":"true","b":"6060","c":"5","d":"yes\n"})"));
}

TEST(ReadYaml, AnchorsAndMergeKeysAreResolvedAndOwnKeysWin) {
  EXPECT_THAT(Read("base: &b {x: 1, y: 2}\nuse: {<<: *b, y: 3}\nlist: [*b]\n"),
              testing::ElementsAre(
                  R"(1: {"base":{"x":1,"y":2},"list":[{"x":1,"y":2}],"use":{"x":1,"y":3}})"));
  EXPECT_THAT(Read("a: &a {x: 1}\nb: &b {x: 2, z: 3}\nc:\n  <<: [*a, *b]\n"),
              testing::ElementsAre(R"(1: {"a":{"x":1},"b":{"x":2,"z":3},"c":{"x":1,"z":3}})"));
}

TEST(ReadYaml, ABadDocumentCostsTheOthersNothing) {
  EXPECT_THAT(
      Read("# licence\n---\na: 1\n---\nb: [1\n---\n# nothing\n---\nc: 3\n"),
      testing::ElementsAre("1: {\"a\":1}", testing::StartsWith("2! line "), "4: {\"c\":3}"));
}

TEST(ReadYaml, ErrorsNameLineAndColumnOfTheText) {
  EXPECT_THAT(
      Read("a: 1\n---\nb: 1\nb: 2\n"),
      testing::ElementsAre("1: {\"a\":1}", "2! line 4, column 1: key \"b\" is there twice"));
}

TEST(ReadYaml, ATextWithADirectiveOrAnEndMarkerIsRead) {
  EXPECT_THAT(Read("%YAML 1.2\n---\na: 1\n...\n"), testing::ElementsAre("1: {\"a\":1}"));
  EXPECT_THAT(Read("--- {a: 1}\n--- {b: 2}\n"),
              testing::ElementsAre("1: {\"a\":1}", "2: {\"b\":2}"));
  EXPECT_THAT(Read(""), testing::IsEmpty());
  EXPECT_THAT(Read("a: |\n  ---\n  x\n"), testing::ElementsAre(R"(1: {"a":"---\nx\n"})"));
}

TEST(ReadYaml, AliasesOfAliasesAreBounded) {
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 12; ++i) {
    const std::string before = "*a" + std::to_string(i - 1);
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + before;
    for (int k = 0; k < 9; ++k)
      bomb += ", " + before;
    bomb += "]\n";
  }
  EXPECT_THAT(Read(bomb), testing::ElementsAre(testing::HasSubstr("larger than")));
  EXPECT_THAT(Read("a: &a [*a]\n"), testing::ElementsAre(testing::HasSubstr("part of")));
}

TEST(ReadYaml, DepthIsBounded) {
  EXPECT_THAT(Read(std::string(100'000, '[')), testing::ElementsAre(testing::StartsWith("1! ")));
  EXPECT_THAT(Read("{\"a\":" + std::string(100'000, '[') + std::string(100'000, ']') + "}"),
              testing::ElementsAre(testing::HasSubstr("nested deeper")));
}

TEST(ReadYaml, BytesThatAreNotUtf8AreRefused) {
  EXPECT_THAT(Read("a: \xff\n"), testing::ElementsAre("1! the text is not UTF-8"));
}

}  // namespace
}  // namespace flamefleet::render
