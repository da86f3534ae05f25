// SPDX-License-Identifier: Apache-2.0
#include "agent/pipeline/cpu_pipeline.h"

#include <atomic>
#include <thread>
#include <utility>

#include "agent/parse/parser_process.h"
#include "agent/pipeline/collector.h"
#include "agent/pipeline/finisher.h"
#include "agent/pipeline/pipeline_limits.h"
#include "agent/pipeline/pipeline_metrics.h"
#include "agent/sample/event_check.h"
#include "agent/sample/preflight.h"
#include "agent/sample/ring_waiter.h"
#include "agent/sample/sampler.h"
#include "agent/stack/unwinder.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/progress.h"
#include "base/queue.h"
#include "base/thread.h"

namespace flamefleet::agent {
namespace {

constexpr std::chrono::milliseconds kDrainInterval{250};
// However many processes are met for the first time, and however short they live.
constexpr std::chrono::milliseconds kMinDrainInterval{10};
constexpr int kDrainsBetweenChores = 4;   // CPUs and counters once a second
constexpr int kDrainsBetweenChecks = 40;  // 10 s: /proc/stat is long on large machines
constexpr size_t kMaxStatBytes = 4 << 20;
constexpr size_t kMaxWaitingWindows = 2;
// A drain takes milliseconds. A window of a node with many new files, each of which may take
// kParseTimeout, takes minutes.
constexpr std::chrono::minutes kDrainLimit{1};
constexpr std::chrono::minutes kFinishLimit{10};

// What is missing without which sampling works, or all that it does not work without.
Result<std::vector<std::string>> RunPreflight() {
  std::string fatal;
  std::vector<std::string> shortages;
  for (PreflightProblem& problem : CheckHost(GatherHostFacts())) {
    if (problem.fatal) {
      fatal += (fatal.empty() ? "" : "\n") + problem.text;
      continue;
    }
    Log(LogLevel::kWarn, "profiles will be incomplete", {{"problem", problem.text}});
    shortages.push_back(std::move(problem.text));
  }
  if (!fatal.empty()) return FailedPreconditionError(fatal);
  return shortages;
}

SamplerOptions ToSamplerOptions(const CpuPipelineOptions& options) {
  SamplerOptions sampler{.pids = options.pids,
                         .frequency_hz = options.frequency_hz,
                         .stack_depth = options.stack_depth};
  if (options.scope == CpuPipelineOptions::Scope::kContainers)
    sampler.scope = FF_SCOPE_CGROUPS;
  else
    sampler.scope = options.pids.empty() ? FF_SCOPE_HOST : FF_SCOPE_PIDS;
  return sampler;
}

}  // namespace

class CpuPipeline::Impl {
 public:
  Impl(const CpuPipelineOptions& options, Metrics* metrics, Sink sink,
       std::unique_ptr<Sampler> sampler, RingWaiter waiter, std::vector<std::string> shortages)
      : shortages_(std::move(shortages)),
        window_length_(options.window),
        stat_path_(options.proc_root + "/stat"),
        metrics_(metrics),
        sampler_(std::move(sampler)),
        waiter_(std::move(waiter)),
        parser_(ParserProcess::Installed()),
        unwinder_(sampler_->unwind_maps(), options.proc_root, UnwindTableBytes(), parser_),
        collector_(options.scope, options.proc_root, OpenFileLimit(), SystemClock()),
        finisher_(options.proc_root, SymbolCacheBytes(), parser_, std::move(sink)) {
    finisher_.SetDebugFileFinder(options.find_debug_file);
    collector_.SetSampler(sampler_.get());
    collector_.SetUnwinder(&unwinder_);
    collector_.Rotate(std::make_unique<Window>(), sampler_->PeriodNanos());
    metrics_.SetMapBytes(sampler_->MapBytes());
    last_drain_ns_ = SystemClock().MonotonicNanos();
    symbolize_thread_ =
        StartThread("ff-symbolize", [this](const std::stop_token& stop) { RunSymbolize(stop); });
    sample_thread_ =
        StartThread("ff-sample", [this](const std::stop_token& stop) { RunSample(stop); });
  }

  void SetTargets(std::vector<CpuTarget> targets, std::optional<HostSeries> host) {
    const MutexLock lock(&mutex_);
    collector_.ReplaceTargets(std::move(targets), std::move(host));
  }

  Status SetFrequency(uint32_t frequency_hz) {
    const MutexLock lock(&mutex_);
    if (frequency_hz > 0 && sampler_->PeriodNanos() == kNanosPerSecond / frequency_hz)
      return OkStatus();
    // One window holds samples of one period.
    Drain();
    FF_RETURN_IF_ERROR(sampler_->SetFrequency(frequency_hz));
    Rotate();
    return OkStatus();
  }

  Status SetStackDepth(uint32_t frames) {
    const MutexLock lock(&mutex_);
    return sampler_->SetStackDepth(frames == 0 ? kDefaultStackDepth : frames);
  }

  std::string Silence() const {
    const MutexLock lock(&mutex_);
    return event_check_.IsSilent() ? event_check_.Problem() : "";
  }

  std::vector<std::string> Shortages() const {
    std::vector<std::string> all = shortages_;
    const MutexLock lock(&mutex_);
    std::string problem = event_check_.Problem();
    if (!problem.empty() && !event_check_.IsSilent()) all.push_back(std::move(problem));
    return all;
  }

  void SetReadsNewFiles(bool reads) { reads_new_files_ = reads; }
  void SetCacheHalvings(int halvings) { cache_halvings_ = halvings; }

  OtherCpu ReadOtherCpu() {
    const MutexLock lock(&mutex_);
    const Result<SampleCounters> counters = sampler_->ReadCounters();
    if (counters.ok()) bpf_ns_ = static_cast<int64_t>((*counters)[FF_COUNT_RUN_NANOS]);
    return {.bpf_ns = bpf_ns_, .parser_ns = parser_->CpuNanos()};
  }

  void Stop() {
    // In this order: the last window goes to the queue, then the queue is emptied.
    for (std::jthread* const thread : {&sample_thread_, &symbolize_thread_}) {
      thread->request_stop();
      if (thread->joinable()) thread->join();
    }
  }

  void SetLines(bool wanted) { lines_wanted_ = wanted; }

  uint64_t samples_seen() const { return samples_seen_; }
  int64_t last_drain_ns() const { return last_drain_ns_; }

  Status CheckProgress() const {
    FF_RETURN_IF_ERROR(sample_progress_.Check());
    return finish_progress_.Check();
  }

 private:
  void RunSample(const std::stop_token& stop) {
    for (int drains = 1; WaitForDrain(stop); ++drains) {
      const Progress::Work work(sample_progress_, kDrainLimit);
      const MutexLock lock(&mutex_);
      Drain();
      const int64_t age = SystemClock().MonotonicNanos() - collector_.WindowStartMonotonicNanos();
      if (age >= std::chrono::nanoseconds(window_length_).count()) Rotate();
      if (drains % kDrainsBetweenChores == 0) DoChores();
      if (drains % kDrainsBetweenChecks == 1) CheckEvents();
    }
    const MutexLock lock(&mutex_);
    Drain();
    Rotate();
    DoChores();
  }

  // Until the next regular drain is due; meanwhile drains for what the kernel wakes for, since what
  // a process is can be read only while it runs. False when stopped.
  bool WaitForDrain(const std::stop_token& stop) {
    const int64_t due_ns =
        SystemClock().MonotonicNanos() + std::chrono::nanoseconds(kDrainInterval).count();
    for (;;) {
      const int64_t left_ns = due_ns - SystemClock().MonotonicNanos();
      waiter_.Wait(stop, std::chrono::nanoseconds(left_ns));
      if (stop.stop_requested()) return false;
      if (SystemClock().MonotonicNanos() >= due_ns) return true;
      {
        const MutexLock lock(&mutex_);
        Drain();
      }
      if (WaitForStop(stop, kMinDrainInterval)) return false;
    }
  }

  void Drain() FF_REQUIRES(mutex_) {
    const Result<size_t> records = sampler_->Drain(collector_);
    if (!records.ok()) {
      metrics_.CountDrainError();
      return;
    }
    samples_seen_ = collector_.counts().samples;
    last_drain_ns_ = SystemClock().MonotonicNanos();
  }

  void Rotate() FF_REQUIRES(mutex_) {
    std::unique_ptr<Window> next = free_.TryPop().value_or(nullptr);
    if (!next) next = std::make_unique<Window>();
    Batch batch = collector_.Rotate(std::move(next), sampler_->PeriodNanos());
    if (batch.window->total() == 0) {
      Recycle(std::move(batch.window));
      return;
    }
    std::optional<Batch> dropped = full_.PushDroppingOldest(std::move(batch));
    if (!dropped) return;
    metrics_.CountDroppedWindow(dropped->window->total());
    Recycle(std::move(dropped->window));
  }

  void DoChores() FF_REQUIRES(mutex_) {
    const Result<SampleCounters> counters = sampler_->ReadCounters();
    if (counters.ok()) metrics_.Update(*counters, collector_, unwinder_.counts());
    TakeCpuStatus(sampler_->RefreshCpus());
  }

  void TakeCpuStatus(const Status& status) FF_REQUIRES(mutex_) {
    if (!status.ok() && status != cpu_status_)
      Log(LogLevel::kError, "a CPU is not sampled", {{"error", status}});
    cpu_status_ = status;
  }

  void CheckEvents() FF_REQUIRES(mutex_) {
    const Result<std::vector<uint64_t>> events = sampler_->EventsByCpu();
    const Result<std::string> stat = ReadFile(stat_path_, kMaxStatBytes);
    if (!events.ok() || !stat.ok()) return;
    const std::string before = event_check_.Problem();
    const std::vector<int> due =
        event_check_.Update(*events, BusyNanosByCpu(*stat), sampler_->PeriodNanos());
    const std::string now = event_check_.Problem();
    if (!now.empty() && now != before)
      Log(LogLevel::kError, "CPUs are not sampled", {{"problem", now}});
    if (due.empty()) return;
    metrics_.CountReopenedTimers(due.size());
    TakeCpuStatus(sampler_->ReopenEvents(due));
  }

  void RunSymbolize(const std::stop_token& stop) {
    constexpr std::chrono::hours kForEver{1};  // a stop ends the wait
    for (;;) {
      std::optional<Batch> batch = full_.Pop(stop, kForEver);
      if (batch) {
        const Progress::Work work(finish_progress_, kFinishLimit);
        finisher_.SetLines(lines_wanted_);
        finisher_.SetReadsNewFiles(reads_new_files_);
        finisher_.SetCacheHalvings(cache_halvings_);
        finisher_.Finish(*batch);
        metrics_.SetSymbolBytes(finisher_.SymbolBytes());
        metrics_.UpdateLines(finisher_.line_counts());
        metrics_.UpdateNames(finisher_.NamesRefused());
        metrics_.UpdateParser(parser_->counts());
        Recycle(std::move(batch->window));
      } else if (stop.stop_requested()) {
        return;
      }
    }
  }

  void Recycle(std::unique_ptr<Window> window) {
    window->Clear();
    free_.TryPush(window);
  }

  const std::vector<std::string> shortages_;  // by the preflight
  const std::chrono::milliseconds window_length_;
  const std::string stat_path_;
  PipelineMetrics metrics_;

  mutable Mutex mutex_;
  std::unique_ptr<Sampler> sampler_ FF_GUARDED_BY(mutex_);
  RingWaiter waiter_;  // of the sample thread
  const std::shared_ptr<ParserProcess> parser_;
  Unwinder unwinder_;  // must not outlive the sampler
  Collector collector_ FF_GUARDED_BY(mutex_);
  Status cpu_status_ FF_GUARDED_BY(mutex_);
  EventCheck event_check_ FF_GUARDED_BY(mutex_);
  int64_t bpf_ns_ FF_GUARDED_BY(mutex_) = 0;

  BoundedQueue<Batch> full_{kMaxWaitingWindows};
  // One being filled, those that wait, one being symbolized.
  BoundedQueue<std::unique_ptr<Window>> free_{kMaxWaitingWindows + 2};

  Finisher finisher_;  // ff-symbolize only

  Progress sample_progress_{"sample"};
  Progress finish_progress_{"finish"};
  std::atomic<bool> reads_new_files_ = true;
  std::atomic<int> cache_halvings_ = 0;
  std::atomic<uint64_t> samples_seen_ = 0;
  std::atomic<int64_t> last_drain_ns_ = 0;
  std::atomic<bool> lines_wanted_ = true;

  std::jthread symbolize_thread_;
  std::jthread sample_thread_;  // last: stops first
};

CpuPipeline::CpuPipeline(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

CpuPipeline::~CpuPipeline() {
  Stop();
}

Result<std::unique_ptr<CpuPipeline>> CpuPipeline::Create(const CpuPipelineOptions& options,
                                                         Metrics* metrics, Sink sink) {
  FF_ASSIGN_OR_RETURN(std::vector<std::string> shortages, RunPreflight());
  FF_ASSIGN_OR_RETURN(std::unique_ptr<Sampler> sampler, Sampler::Create(ToSamplerOptions(options)));
  FF_ASSIGN_OR_RETURN(RingWaiter waiter, RingWaiter::Create(sampler->ring_fd()));
  return std::unique_ptr<CpuPipeline>(
      new CpuPipeline(std::make_unique<Impl>(options, metrics, std::move(sink), std::move(sampler),
                                             std::move(waiter), std::move(shortages))));
}

void CpuPipeline::SetTargets(std::vector<CpuTarget> targets, std::optional<HostSeries> host) {
  impl_->SetTargets(std::move(targets), std::move(host));
}

Status CpuPipeline::SetFrequency(uint32_t frequency_hz) {
  return impl_->SetFrequency(frequency_hz);
}

std::vector<std::string> CpuPipeline::Shortages() const {
  return impl_->Shortages();
}

Status CpuPipeline::SetStackDepth(uint32_t frames) {
  return impl_->SetStackDepth(frames);
}

std::string CpuPipeline::Silence() const {
  return impl_->Silence();
}

void CpuPipeline::SetLines(bool wanted) {
  impl_->SetLines(wanted);
}

void CpuPipeline::SetReadsNewFiles(bool reads) {
  impl_->SetReadsNewFiles(reads);
}

void CpuPipeline::SetCacheHalvings(int halvings) {
  impl_->SetCacheHalvings(halvings);
}

CpuPipeline::OtherCpu CpuPipeline::ReadOtherCpu() {
  return impl_->ReadOtherCpu();
}

void CpuPipeline::Stop() {
  impl_->Stop();
}

uint64_t CpuPipeline::SamplesSeen() const {
  return impl_->samples_seen();
}

int64_t CpuPipeline::LastDrainMonotonicNanos() const {
  return impl_->last_drain_ns();
}

Status CpuPipeline::CheckProgress() const {
  return impl_->CheckProgress();
}

}  // namespace flamefleet::agent
