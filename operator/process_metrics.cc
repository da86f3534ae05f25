// SPDX-License-Identifier: Apache-2.0
#include "operator/process_metrics.h"

#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <system_error>

namespace flamefleet {
namespace {

double SecondsOf(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

// Since boot; 0: unknown.
double StartedAfterBoot() {
  std::ifstream file("/proc/self/stat");
  std::string stat;
  std::getline(file, stat);
  // The name, in parentheses, may hold anything; starttime is the 20th field after it.
  const size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos) return 0;
  std::istringstream fields(stat.substr(name_end + 1));
  std::string field;
  for (int i = 0; i < 20; ++i)
    fields >> field;
  return std::strtod(field.c_str(), nullptr) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

}  // namespace

ProcessMetrics::ProcessMetrics(Metrics& metrics)
    : cpu_seconds_(metrics.Counter("process_cpu_seconds_total",
                                   "Total user and system CPU time spent in seconds.")),
      start_time_(metrics.Gauge("process_start_time_seconds",
                                "Start time of the process since unix epoch in seconds.")),
      resident_bytes_(
          metrics.Gauge("process_resident_memory_bytes", "Resident memory size in bytes.")),
      virtual_bytes_(
          metrics.Gauge("process_virtual_memory_bytes", "Virtual memory size in bytes.")),
      open_fds_(metrics.Gauge("process_open_fds", "Number of open file descriptors.")),
      max_fds_(metrics.Gauge("process_max_fds", "Maximum number of open file descriptors.")) {
  const double started = StartedAfterBoot();
  if (started > 0) start_time_.Set(SecondsOf(CLOCK_REALTIME) - SecondsOf(CLOCK_BOOTTIME) + started);
}

void ProcessMetrics::Update() {
  const MutexLock lock(&mutex_);
  cpu_seconds_.Increment(SecondsOf(CLOCK_PROCESS_CPUTIME_ID) - cpu_seconds_.Value());

  std::ifstream statm("/proc/self/statm");
  double virtual_pages = 0;
  double resident_pages = 0;
  if (statm >> virtual_pages >> resident_pages) {
    const auto page = static_cast<double>(sysconf(_SC_PAGESIZE));
    virtual_bytes_.Set(virtual_pages * page);
    resident_bytes_.Set(resident_pages * page);
  }

  std::error_code error;
  int open = 0;
  std::filesystem::directory_iterator it("/proc/self/fd", error);
  for (; !error && it != std::filesystem::directory_iterator(); it.increment(error))
    ++open;
  if (!error) open_fds_.Set(open - 1);  // without the one that reads the folder
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) max_fds_.Set(static_cast<double>(limit.rlim_cur));
}

}  // namespace flamefleet
