// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/log_format.h"

namespace flamefleet {
namespace {

TEST(Log, ALineIsOneJsonObjectWhateverTheTextHolds) {
  const std::string line = FormatLogLine(
      0, LogLevel::kWarn, "profile \"dropped\"",
      {{"path", std::string("a\nb\x01\xff")}, {"count", 3}, {"ok", true}, {"cpu", 0.5}});
  EXPECT_EQ(line.find('\n'), std::string::npos);
  const auto parsed = nlohmann::json::parse(line);
  EXPECT_EQ(parsed["time"], "1970-01-01T00:00:00.000Z");
  EXPECT_EQ(parsed["level"], "warn");
  EXPECT_EQ(parsed["event"], "profile \"dropped\"");
  EXPECT_EQ(parsed["path"], "a\nb\x01\xEF\xBF\xBD");
  EXPECT_EQ(parsed["count"], 3);
  EXPECT_EQ(parsed["ok"], true);
}

TEST(Log, AnUnknownLevelIsRefused) {
  EXPECT_EQ(*ParseLogLevel("warn"), LogLevel::kWarn);
  EXPECT_FALSE(ParseLogLevel("WARN").ok());
}

TEST(LogText, QuotesOnlyWhatNeedsIt) {
  EXPECT_EQ(FormatLogText(0, LogLevel::kInfo, "leading",
                          {{"lease", "flamefleet-operator"}, {"pods", 3}, {"ok", true}}),
            "1970-01-01T00:00:00.000Z INFO  leading  lease=flamefleet-operator pods=3 ok=true");
  EXPECT_EQ(FormatLogText(0, LogLevel::kWarn, "failed",
                          {{"error", "a \"b\"\nc=d"}, {"empty", ""}, {"path", "a\\nb"}}),
            "1970-01-01T00:00:00.000Z WARN  failed  error=\"a \\\"b\\\"\\nc=d\" empty=\"\" "
            "path=\"a\\\\nb\"");
}

TEST(LogFormat, HasTwoNames) {
  EXPECT_EQ(ParseLogFormat("json").value_or(LogFormat::kText), LogFormat::kJson);
  EXPECT_EQ(ParseLogFormat("text").value_or(LogFormat::kJson), LogFormat::kText);
  EXPECT_FALSE(ParseLogFormat("yaml").ok());
}

}  // namespace
}  // namespace flamefleet
