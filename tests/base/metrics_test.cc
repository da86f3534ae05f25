// SPDX-License-Identifier: Apache-2.0
#include "base/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>

namespace flamefleet {
namespace {

using ::testing::HasSubstr;

TEST(Metrics, ACounterIsRenderedBeforeItCounts) {
  Metrics metrics;
  metrics.Counter("flamefleet_lost_total", "Lost.", {{"reason", "QueueFull"}});
  EXPECT_THAT(metrics.RenderText(), HasSubstr("flamefleet_lost_total{reason=\"QueueFull\"} 0\n"));
}

TEST(Metrics, TheSameNameAndLabelsAreTheSameCounter) {
  Metrics metrics;
  CounterMetric first = metrics.Counter("flamefleet_x_total", "X.", {{"a", "1"}});
  CounterMetric second = metrics.Counter("flamefleet_x_total", "X.", {{"a", "1"}});
  first.Increment();
  second.Increment(2);
  EXPECT_EQ(first.Value(), 3);
}

TEST(Metrics, PromtoolAcceptsWhatIsRendered) {
  Metrics metrics;
  metrics.Counter("flamefleet_pushes_total", "Pushes.", {{"outcome", "ok\"\\\n"}}).Increment();
  metrics.Gauge("flamefleet_queue_bytes", "Bytes waiting.").Set(1.5);
  metrics.Histogram("flamefleet_push_seconds", "Time of a push.", {0.1, 1, 10}).Observe(0.5);
  FILE* const promtool = popen("promtool check metrics", "w");
  const std::string text = metrics.RenderText();
  fwrite(text.data(), 1, text.size(), promtool);
  EXPECT_EQ(pclose(promtool), 0) << text;
}

}  // namespace
}  // namespace flamefleet
