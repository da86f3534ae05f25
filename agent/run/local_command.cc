// SPDX-License-Identifier: Apache-2.0
#include <charconv>
#include <cinttypes>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "agent/pipeline/cpu_pipeline.h"
#include "agent/push/pusher.h"
#include "agent/run/budget_keeper.h"
#include "agent/run/commands.h"
#include "agent/run/profile_files.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/thread.h"

namespace flamefleet::agent {
namespace {

// How long the last window may take to be delivered.
constexpr std::chrono::seconds kDrainTimeout{15};
// Files named in the summary.
constexpr size_t kShownFiles = 10;

struct LocalOptions {
  std::chrono::nanoseconds duration{0};  // 0: until SIGINT
  int64_t frequency_hz = 97;
  int64_t stack_depth = 127;
  int64_t cpu_budget = 0;  // thousandths of a CPU; 0: none
  std::vector<std::string> pid_texts;
  std::vector<uint32_t> pids;
  std::string out;
  std::string push;
};

Status ReadPids(LocalOptions* options) {
  for (const std::string& text : options->pid_texts) {
    uint32_t pid = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), pid);
    if (error != std::errc() || end != text.data() + text.size() || pid == 0) {
      return InvalidArgumentError("--pid '" + text + "': want a process id");
    }
    std::error_code ignored;
    if (!std::filesystem::exists("/proc/" + text, ignored)) {
      return InvalidArgumentError("--pid " + text + ": no such process");
    }
    options->pids.push_back(pid);
  }
  return OkStatus();
}

Status CheckOptions(LocalOptions* options) {
  if (options->out.empty() == options->push.empty()) {
    return InvalidArgumentError("want either --out DIR or --push URL");
  }
  return ReadPids(options);
}

// Samples until the time is over or a signal comes, and hands every profile to `sink`.
Status Profile(const LocalOptions& options, Metrics* metrics, CpuPipeline::Sink sink) {
  FF_ASSIGN_OR_RETURN(
      const auto pipeline,
      CpuPipeline::Create({.scope = CpuPipelineOptions::Scope::kHost,
                           .pids = options.pids,
                           .frequency_hz = static_cast<uint32_t>(options.frequency_hz),
                           .stack_depth = static_cast<uint32_t>(options.stack_depth)},
                          metrics, std::move(sink)));
  BudgetKeeper budget(pipeline.get(), metrics);
  budget.SetLimits({.frequency_hz = static_cast<uint32_t>(options.frequency_hz),
                    .millicores = options.cpu_budget});
  std::string span;
  if (options.duration.count() > 0) {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(options.duration);
    span = " for " + std::to_string(seconds.count()) + " s";
  }
  std::fprintf(stderr, "Profiling %s at %" PRId64 " Hz%s; Ctrl-C ends it.\n",
               options.pids.empty() ? "every process of this host" : "the given processes",
               options.frequency_hz, span.c_str());
  WaitForTerminationSignal(options.duration);
  pipeline->Stop();
  std::fprintf(stderr, "%" PRIu64 " samples taken.\n", pipeline->SamplesSeen());
  return OkStatus();
}

Status ProfileToFiles(const LocalOptions& options, Metrics* metrics) {
  ProfileFiles files;
  FF_RETURN_IF_ERROR(Profile(options, metrics, [&files](const FinishedProfile& profile) {
    const Status added = files.Add(profile);
    if (!added.ok()) Log(LogLevel::kWarn, "profile not kept", {{"error", added}});
  }));
  FF_ASSIGN_OR_RETURN(const auto written, files.Write(options.out));
  if (written.empty()) std::puts("No process used CPU: nothing to write.");
  for (size_t i = 0; i < written.size() && i < kShownFiles; ++i) {
    const auto& file = written[i];
    if (file.unit == "nanoseconds") {
      std::printf("%10.2f s CPU  %s\n",
                  static_cast<double>(file.total) / static_cast<double>(kNanosPerSecond),
                  file.path.c_str());
    } else {
      std::printf("%10" PRId64 " %s  %s\n", file.total, file.unit.c_str(), file.path.c_str());
    }
  }
  if (written.size() > kShownFiles) {
    std::printf("... and %zu more in %s\n", written.size() - kShownFiles, options.out.c_str());
  }
  if (!written.empty()) std::printf("Look: go tool pprof -top %s\n", written[0].path.c_str());
  return OkStatus();
}

Status ProfileToBackend(const LocalOptions& options, Metrics* metrics) {
  Pusher pusher(LaneOptions{}, /*spool=*/nullptr, metrics, nullptr);
  const std::string backend = "local";
  FF_RETURN_IF_ERROR(pusher.SetBackends({{.name = backend, .endpoint = options.push}}));
  FF_RETURN_IF_ERROR(Profile(options, metrics, [&](FinishedProfile profile) {
    profile.backend = backend;
    pusher.Push(profile);
  }));
  if (!pusher.Drain(kDrainTimeout)) {
    return UnavailableError(options.push + " did not take all profiles in time");
  }
  return OkStatus();
}

}  // namespace

int LocalCommand(int count, const char* const* arguments) {
  const std::string command = "flamefleet-agent local";
  LocalOptions options;
  Flags flags(command + " (--out DIR | --push URL) [flags]",
              "Profiles this host without Kubernetes. Needs root, or the capabilities BPF,\n"
              "PERFMON, SYS_PTRACE, CHECKPOINT_RESTORE, DAC_READ_SEARCH and SYSLOG.");
  flags.Text("out", "DIR", "write one NAME.pb.gz per service (executable) into this folder",
             &options.out);
  flags.Text("push", "URL",
             "push to a flamefleet-store or Pyroscope, such as http://localhost:4040",
             &options.push);
  flags.Duration("duration", "how long; without it until SIGINT", &options.duration);
  flags.Number("frequency", "HZ", "samples per second and CPU", 1, 999, &options.frequency_hz);
  flags.Number("stack-depth", "FRAMES", "frames of a program's call stack", 1, 511,
               &options.stack_depth);
  flags.Number("cpu-budget", "MILLICORES",
               "thousandths of a CPU that may be used; it samples less often to stay within", 5,
               1'000'000, &options.cpu_budget);
  flags.TextList("pid", "PID", "profile this process only", &options.pid_texts);
  Status status = flags.Parse(count, arguments);
  if (flags.help_wanted()) {
    std::fputs(flags.Help().c_str(), stdout);
    return 0;
  }
  if (status.ok()) status = CheckOptions(&options);
  if (!status.ok()) return UsageError(status, command);

  Metrics metrics;
  status =
      options.out.empty() ? ProfileToBackend(options, &metrics) : ProfileToFiles(options, &metrics);
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s: %s\n", command.c_str(), ErrorMessage(status).c_str());
  return kExitFailure;
}

}  // namespace flamefleet::agent
