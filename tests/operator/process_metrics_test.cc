// SPDX-License-Identifier: Apache-2.0
#include "operator/process_metrics.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <time.h>
#include <unistd.h>

#include <string>

#include "base/fd.h"

namespace flamefleet {
namespace {

class ProcessMetricsTest : public testing::Test {
 protected:
  double Value(const std::string& name) {
    process_.Update();
    const std::string text = metrics_.RenderText();
    const size_t at = text.find("\n" + name + " ");
    EXPECT_NE(at, std::string::npos) << text;
    return std::stod(text.substr(at + name.size() + 2));
  }

  Metrics metrics_;
  ProcessMetrics process_{metrics_};
};

TEST_F(ProcessMetricsTest, AnOpenFileCountsUntilItIsClosed) {
  const double before = Value("process_open_fds");
  {
    const UniqueFd file(open("/dev/null", O_RDONLY | O_CLOEXEC));
    EXPECT_EQ(Value("process_open_fds"), before + 1);
  }
  EXPECT_EQ(Value("process_open_fds"), before);
  EXPECT_GT(Value("process_max_fds"), before);
}

TEST_F(ProcessMetricsTest, CpuTimeIsTheKernelsAndGrows) {
  const double before = Value("process_cpu_seconds_total");
  EXPECT_GT(before, 0);
  const clock_t until = clock() + CLOCKS_PER_SEC / 50;
  while (clock() < until) {
  }
  const double after = Value("process_cpu_seconds_total");
  EXPECT_GE(after, before + 0.02);
  EXPECT_LE(after, static_cast<double>(clock()) / CLOCKS_PER_SEC + 0.001);
}

TEST_F(ProcessMetricsTest, TouchedMemoryIsResident) {
  const double before = Value("process_resident_memory_bytes");
  const std::string block(64 << 20, 'x');
  EXPECT_GE(Value("process_resident_memory_bytes"), before + (60 << 20)) << block.size();
  EXPECT_GE(Value("process_virtual_memory_bytes"), Value("process_resident_memory_bytes"));
}

TEST_F(ProcessMetricsTest, TheStartIsAMomentAgo) {
  const double started = Value("process_start_time_seconds");
  EXPECT_LE(started, static_cast<double>(time(nullptr)) + 1);
  EXPECT_GT(started, static_cast<double>(time(nullptr)) - 3600);
}

}  // namespace
}  // namespace flamefleet
