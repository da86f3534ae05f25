// SPDX-License-Identifier: Apache-2.0
#include "agent/scrape/scraper.h"

#include <algorithm>
#include <set>
#include <utility>

#include "agent/scrape/rewrite.h"
#include "base/http/fetch.h"
#include "base/next_time.h"
#include "base/reasons.h"
#include "base/thread.h"

namespace flamefleet::agent {
namespace {

// Beside the time that an endpoint may take: decoding, which waits for that of the other threads.
constexpr std::chrono::minutes kDecodeLimit{5};
constexpr int kMaxRedirects = 2;  // of one pull
constexpr const char* kScrapesName = "flamefleet_agent_scrapes_total";
constexpr const char* kScrapesHelp = "Scrapes of pprof endpoints, by result.";

std::map<std::string_view, CounterMetric> FailureCounters(Metrics* metrics) {
  std::map<std::string_view, CounterMetric> counters;
  for (const std::string_view reason :
       {reasons::kConnectionRefused, reasons::kConnectionFailed, reasons::kTimeout,
        reasons::kCertificateNotTrusted, reasons::kHTTPError, reasons::kNotAProfile,
        reasons::kProfileTooLarge, reasons::kProfilingInUse}) {
    counters.emplace(
        reason, metrics->Counter(kScrapesName, kScrapesHelp, {{"result", std::string(reason)}}));
  }
  return counters;
}

Result<FetchResponse> FetchFollowing(FetchOptions options, const std::stop_token& stop) {
  Result<FetchResponse> response = Fetch(options, stop);
  for (int i = 0; i < kMaxRedirects && response.ok(); ++i) {
    const std::optional<std::string> target = RedirectTarget(options, *response);
    if (!target) break;
    options.target = *target;
    response = Fetch(options, stop);
  }
  return response;
}

bool IsCpu(const ScrapeJob& job) {
  return job.key.type == ProfileType::kCpu;
}

}  // namespace

Scraper::Scraper(const Clock& clock, Metrics* metrics, ScrapeObserver* observer, Sink sink,
                 const ScrapeLimits& limits)
    : clock_(clock),
      observer_(observer),
      sink_(std::move(sink)),
      limits_(limits),
      succeeded_(metrics->Counter(kScrapesName, kScrapesHelp, {{"result", "ok"}})),
      missed_(metrics->Counter("flamefleet_agent_scrape_turns_missed_total",
                               "Turns of scrape jobs that passed before one could begin.")),
      failed_(FailureCounters(metrics)),
      jobs_gauge_(metrics->Gauge("flamefleet_agent_scrape_jobs", "Scrape jobs in force.")) {}

Scraper::~Scraper() {
  for (Lane* const lane : {&lane_, &cpu_lane_}) {
    for (std::jthread& thread : lane->threads)
      thread.request_stop();
  }
}

void Scraper::StartThreads(Lane* lane, size_t jobs, size_t max) {
  while (lane->threads.size() < std::min(jobs, max)) {
    const std::string number = std::to_string(lane->threads.size());
    lane->threads.push_back(
        StartThread((lane->is_cpu ? "ff-cpu-" : "ff-scrape-") + number,
                    [this, lane](const std::stop_token& stop) { ScrapeUntilStopped(lane, stop); }));
  }
}

void Scraper::SetJobs(const std::vector<ScrapeJob>& jobs) {
  const auto cpu_jobs = static_cast<size_t>(std::ranges::count_if(jobs, IsCpu));
  StartThreads(&lane_, jobs.size() - cpu_jobs, kMaxScrapes);
  StartThreads(&cpu_lane_, cpu_jobs, kMaxCpuScrapes);
  const MutexLock lock(&mutex_);
  std::map<CollectionKey, Entry> next;
  for (const ScrapeJob& job : jobs) {
    auto known = entries_.extract(job.key);
    if (!known.empty() && SameEndpoint(known.mapped().job, job)) {
      Entry& entry = known.mapped();
      if (job.interval < entry.job.interval)
        entry.due = std::min(entry.due, std::chrono::steady_clock::now() + FirstDelay(job));
      entry.job = job;
      next.insert(std::move(known));
    } else {
      next[job.key] = {.job = job,
                       .due = std::chrono::steady_clock::now() + FirstDelay(job),
                       .past = std::make_unique<Past>(&room_),
                       .generation = next_generation_++};
    }
  }
  entries_ = std::move(next);
  jobs_gauge_.Set(static_cast<double>(entries_.size()));
  changed_.SignalAll();
}

void Scraper::ScrapeUntilStopped(Lane* lane, const std::stop_token& stop) {
  while (std::optional<Turn> turn = AwaitTurn(lane, stop))
    Scrape(*std::move(turn), stop);
}

std::optional<Scraper::Turn> Scraper::AwaitTurn(Lane* lane, const std::stop_token& stop) {
  const MutexLock turn_lock(&lane->turn_mutex);
  const std::stop_callback wake(stop, [this] {
    const MutexLock lock(&mutex_);
    changed_.SignalAll();
  });
  const MutexLock lock(&mutex_);
  while (!stop.stop_requested()) {
    Entry* first = nullptr;
    for (auto& [key, entry] : entries_) {
      if (entry.past == nullptr || IsCpu(entry.job) != lane->is_cpu) continue;  // null: runs
      if (first == nullptr || entry.due < first->due) first = &entry;
    }
    const auto now = std::chrono::steady_clock::now();
    if (first == nullptr) {
      changed_.Wait(&mutex_);
    } else if (first->due > now) {
      WaitFor(changed_, mutex_, first->due - now);
    } else {
      // Turns that were missed are not made up for.
      const auto interval = std::max(first->job.interval, std::chrono::milliseconds(1));
      const int64_t missed = (now - first->due) / interval;
      if (missed > 0) missed_.Increment(static_cast<double>(missed));
      first->due += (missed + 1) * interval;
      return Turn{first->job, std::move(first->past), first->generation};
    }
  }
  return std::nullopt;
}

void Scraper::Scrape(Turn turn, const std::stop_token& stop) {
  std::unique_ptr<Past> past = std::move(turn.past);
  ScrapeFailure failure;
  std::optional<FinishedProfile> profile = Pull(turn.job, past.get(), stop, &failure);
  // Nothing is there: then elsewhere, or where it was first.
  if (failure.is_absent && FallbackPath(turn.job)) {
    past->uses_fallback = !past->uses_fallback;
    failure = {};
    profile = Pull(turn.job, past.get(), stop, &failure);
  }
  if (stop.stop_requested() || !IsWanted(turn)) return;
  std::chrono::milliseconds rest{0};
  if (!failure.reason.empty()) {
    rest = RestAfter(failure, ++past->failures, turn.job.interval);
    failed_.at(failure.reason).Increment();
    observer_->OnCollectFailed(turn.job.key, failure.reason, failure.message);
  } else {
    past->failures = 0;
    succeeded_.Increment();
    if (profile)
      sink_(*profile);
    else
      observer_->OnNothingToDeliver(turn.job.key);
  }
  Return(turn, std::move(past), rest);
}

// Not when the job is gone or reads another endpoint now.
bool Scraper::IsWanted(const Turn& turn) {
  const MutexLock lock(&mutex_);
  const auto found = entries_.find(turn.job.key);
  return found != entries_.end() && found->second.generation == turn.generation;
}

void Scraper::Return(const Turn& turn, std::unique_ptr<Past> past, std::chrono::milliseconds rest) {
  const MutexLock lock(&mutex_);
  const auto found = entries_.find(turn.job.key);
  if (found == entries_.end() || found->second.generation != turn.generation) return;
  found->second.past = std::move(past);
  if (rest.count() > 0)
    found->second.due = std::max(found->second.due, std::chrono::steady_clock::now() + rest);
  changed_.SignalAll();  // one waits in each lane
}

Status Scraper::AcquireBody(const std::stop_token& stop) {
  const std::stop_callback wake(stop, [this] {
    const MutexLock lock(&body_mutex_);
    body_released_.SignalAll();
  });
  const MutexLock lock(&body_mutex_);
  while (cpu_bodies_ == kMaxCpuBodies) {
    if (stop.stop_requested()) return CancelledError("stop was requested");
    body_released_.Wait(&body_mutex_);
  }
  ++cpu_bodies_;
  return OkStatus();
}

void Scraper::ReleaseBody() {
  const MutexLock lock(&body_mutex_);
  --cpu_bodies_;
  body_released_.Signal();
}

std::optional<FinishedProfile> Scraper::Pull(const ScrapeJob& job, Past* past,
                                             const std::stop_token& stop, ScrapeFailure* failure) {
  FetchOptions options = FetchOptionsOf(job, past->uses_fallback);
  options.max_body_bytes = limits_.body;
  bool has_body = false;
  if (IsCpu(job)) {
    options.before_body = [this, &stop, &has_body] {
      if (has_body) return OkStatus();  // that of a redirect before
      const Status status = AcquireBody(stop);
      has_body = status.ok();
      return status;
    };
  }
  std::optional<FinishedProfile> profile = Read(job, options, past, stop, failure);
  if (has_body) ReleaseBody();
  return profile;
}

std::optional<FinishedProfile> Scraper::Read(const ScrapeJob& job, const FetchOptions& options,
                                             Past* past, const std::stop_token& stop,
                                             ScrapeFailure* failure) {
  const Time start = std::chrono::steady_clock::now();
  // No two profiles of one series share a time: backends keep only one of them.
  const int64_t time_ns = NextTime(clock_.WallNanos(), past->last_time_ns);
  const Progress::Work work(progress_, (1 + kMaxRedirects) * options.timeout + kDecodeLimit);
  const Result<FetchResponse> response = FetchFollowing(options, stop);
  if (!response.ok()) {
    *failure = FailureOfFetch(response.status());
    return std::nullopt;
  }
  if (response->status != 200) {
    *failure = FailureOfAnswer(*response);
    return std::nullopt;
  }
  const auto duration = past->last_scrape ? start - *past->last_scrape : Time::duration::zero();
  const MutexLock lock(&decode_mutex_);
  Result<std::optional<RewrittenProfile>> rewritten = RewriteProfile(
      response->body, time_ns, duration, ServesDeltas(job) ? nullptr : &past->delta, limits_);
  if (!rewritten.ok()) {
    *failure = FailureOfDecode(rewritten.status());
    return std::nullopt;
  }
  past->last_scrape = start;
  past->last_time_ns = time_ns;
  if (!*rewritten) return std::nullopt;
  return FinishedProfile{.collection = job.key,
                         .backend = job.backend,
                         .labels = job.labels,
                         .time_ns = time_ns,
                         .pprof = std::move((*rewritten)->pprof),
                         .samples = (*rewritten)->samples};
}

}  // namespace flamefleet::agent
