// SPDX-License-Identifier: Apache-2.0
#include "agent/pipeline/thread_table.h"

#include <gtest/gtest.h>

namespace flamefleet::agent {
namespace {

TEST(ThreadTable, AThreadHasOneNumberForEachOfItsNames) {
  ThreadTable table;
  EXPECT_EQ(table.Number(0, 7, "init"), 0u);
  EXPECT_EQ(table.Number(0, 7, "worker\xff"), 1u);
  EXPECT_EQ(table.Number(0, 7, "init"), 0u);
  EXPECT_EQ(table.Number(0, 8, "init"), 2u);
  const std::vector<ThreadLabel> labels = table.Take();
  ASSERT_EQ(labels.size(), 3u);
  EXPECT_EQ(labels[0], (ThreadLabel{.id = 7, .name = "init"}));
  EXPECT_EQ(labels[1].name, "worker?") << "a pprof has UTF-8 alone";
  EXPECT_TRUE(table.Take().empty());
}

TEST(ThreadTable, BeyondTheBoundOfASeriesThreadsShareOneName) {
  ThreadTable table;
  for (uint32_t id = 1; id <= 1000; ++id)
    table.Number(0, id, "worker");
  const uint32_t of_another_series = table.Number(1, 2000, "main");
  EXPECT_EQ(table.Number(0, 1, "worker"), 0u) << "who was told apart stays so";
  const std::vector<ThreadLabel> labels = table.Take();
  ASSERT_EQ(labels.size(), kMaxThreadsOfSeries + 2);
  EXPECT_EQ(labels[kMaxThreadsOfSeries], (ThreadLabel{.name = kOtherThreads}));
  EXPECT_EQ(labels[of_another_series], (ThreadLabel{.id = 2000, .name = "main"}));
}

}  // namespace
}  // namespace flamefleet::agent
