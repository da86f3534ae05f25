// SPDX-License-Identifier: Apache-2.0
#include "agent/push/pusher.h"

#include <algorithm>
#include <set>
#include <utility>

#include "agent/push/push_request.h"
#include "base/log.h"
#include "base/reasons.h"
#include "base/thread.h"

namespace flamefleet::agent {
namespace {

// Pyroscope answers after 0.4 to 0.5 s; a store on a busy disk needs longer.
constexpr std::chrono::seconds kPushTimeout{30};
// Part of a back-off that is random.
constexpr double kJitter = 0.5;
// An answer is empty, or an error text.
constexpr size_t kMaxAnswerBytes = 64 << 10;

constexpr const char* kDroppedName = "flamefleet_agent_profiles_dropped_total";
constexpr const char* kDroppedHelp = "Profiles that were not delivered, by reason.";

std::map<std::string_view, CounterMetric> DropCounters(Metrics* metrics) {
  std::map<std::string_view, CounterMetric> counters;
  for (const std::string_view reason : {reasons::kQueueFull, reasons::kBackendRefused,
                                        reasons::kNoBackend, reasons::kAgentStopped}) {
    counters.emplace(
        reason, metrics->Counter(kDroppedName, kDroppedHelp, {{"reason", std::string(reason)}}));
  }
  return counters;
}

}  // namespace

Pusher::Pusher(const PusherOptions& options, Metrics* metrics, DeliveryObserver* observer)
    : options_(options),
      observer_(observer),
      queue_(options.max_bytes, options.max_profiles),
      produced_(metrics->Counter("flamefleet_agent_profiles_produced_total",
                                 "Profiles that were collected and handed to delivery.")),
      delivered_(metrics->Counter("flamefleet_agent_profiles_delivered_total",
                                  "Profiles that a backend acknowledged.")),
      delivered_bytes_(metrics->Counter("flamefleet_agent_delivered_bytes_total",
                                        "Bytes of the pushes that a backend acknowledged.")),
      retries_(metrics->Counter("flamefleet_agent_push_retries_total",
                                "Pushes that failed and will be tried again.")),
      dropped_(DropCounters(metrics)),
      waiting_(metrics->Gauge("flamefleet_agent_profiles_waiting",
                              "Profiles that wait for a backend or are being sent.")),
      waiting_bytes_(metrics->Gauge("flamefleet_agent_waiting_bytes",
                                    "Bytes of the profiles that wait or are being sent.")),
      seconds_(metrics->Histogram("flamefleet_agent_push_duration_seconds",
                                  "Time until a backend answered a push, or failed to.",
                                  {0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30})) {
  for (size_t i = 0; i < kSenders; ++i) {
    senders_.push_back(StartThread("ff-push-" + std::to_string(i),
                                   [this](std::stop_token stop) { SendUntilStopped(stop); }));
  }
}

Pusher::~Pusher() {
  for (std::jthread& sender : senders_)
    sender.request_stop();
  senders_.clear();
  Drop(queue_.Clear(), reasons::kAgentStopped, "the agent stops");
  ShowQueue();
}

Status Pusher::SetBackends(const std::vector<BackendConfig>& backends) {
  Status status = OkStatus();
  std::map<std::string, Backend> wanted;
  std::set<std::string> names;
  std::vector<QueuedPush> orphans;
  for (const BackendConfig& config : backends) {
    const MutexLock lock(&mutex_);
    const auto known = backends_.find(config.name);
    if (known != backends_.end() && known->second.endpoint == config.endpoint) {
      wanted[config.name] = known->second;
    } else {
      auto client =
          HttpClient::Create({.base_url = config.endpoint, .max_response_bytes = kMaxAnswerBytes});
      if (!client.ok()) {
        status = Annotate(client.status(), "backend " + config.name);
        continue;
      }
      wanted[config.name] = {.endpoint = config.endpoint,
                             .client = *std::move(client),
                             .backoff = std::make_shared<Backoff>(options_.first_backoff,
                                                                  options_.max_backoff, kJitter)};
    }
    names.insert(config.name);
  }
  {
    const MutexLock lock(&mutex_);
    backends_ = std::move(wanted);
    orphans = queue_.SetBackends(names);
  }
  Drop(orphans, reasons::kNoBackend, "the backend was removed");
  ShowQueue();
  return status;
}

std::shared_ptr<HttpClient> Pusher::ClientOf(const std::string& backend) {
  const MutexLock lock(&mutex_);
  const auto found = backends_.find(backend);
  return found == backends_.end() ? nullptr : found->second.client;
}

void Pusher::Push(const FinishedProfile& profile) {
  produced_.Increment();
  const PushQueue::Refused refused = queue_.Add({.collection = profile.collection,
                                                 .backend = profile.backend,
                                                 .body = EncodePushRequest(profile)});
  Drop(refused.full, reasons::kQueueFull,
       "more than " + std::to_string(options_.max_bytes) + " bytes or " +
           std::to_string(options_.max_profiles) + " profiles wait for the backends");
  if (refused.unknown_backend) {
    Drop(*refused.unknown_backend, reasons::kNoBackend,
         "backend '" + profile.backend + "' is not known to this agent");
  }
  ShowQueue();
}

void Pusher::SendUntilStopped(const std::stop_token& stop) {
  while (std::optional<QueuedPush> push = queue_.Take(stop))
    Send(*std::move(push), stop);
}

void Pusher::Send(QueuedPush push, const std::stop_token& stop) {
  const std::shared_ptr<HttpClient> client = ClientOf(push.backend);
  if (client == nullptr) {  // removed while this profile was on its way here
    queue_.Done(push);
    Drop(push, reasons::kNoBackend, "the backend was removed");
    return;
  }
  const auto start = std::chrono::steady_clock::now();
  const auto answer = client->Send({.method = "POST",
                                    .target = std::string(kPushPath),
                                    .headers = {{"Content-Type", std::string(kPushContentType)}},
                                    .body = push.body,
                                    .idle_timeout = kPushTimeout,
                                    .total_timeout = kPushTimeout},
                                   stop);
  seconds_.Observe(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  const Outcome outcome = JudgeAnswer(answer, push.server_errors);
  if (outcome.server_error) ++push.server_errors;
  if (outcome.kind == Outcome::Kind::kRetry) {
    Retry(std::move(push), outcome);
    return;
  }
  queue_.Done(push);
  if (outcome.kind == Outcome::Kind::kDrop) {
    Drop(push, reasons::kBackendRefused, outcome.message);
    return;
  }
  delivered_.Increment();
  delivered_bytes_.Increment(static_cast<double>(push.body.size()));
  ShowQueue();
  NoteSuccess(push.backend);
  if (observer_ != nullptr) observer_->OnDelivered(push.collection);
}

void Pusher::Retry(QueuedPush push, const Outcome& outcome) {
  retries_.Increment();
  const auto wait = std::max(NoteFailure(push.backend, outcome.message), outcome.retry_after);
  if (observer_ != nullptr) {
    observer_->OnNotDelivered(push.collection, reasons::kBackendUnreachable, outcome.message);
  }
  const auto orphan = queue_.Retry(std::move(push), std::chrono::steady_clock::now() + wait);
  if (orphan) Drop(*orphan, reasons::kNoBackend, "the backend was removed");
}

// How long the backend is left alone.
std::chrono::milliseconds Pusher::NoteFailure(const std::string& backend,
                                              const std::string& message) {
  const MutexLock lock(&mutex_);
  const auto found = backends_.find(backend);
  if (found == backends_.end()) return options_.first_backoff;
  if (!std::exchange(found->second.failing, true)) {
    Log(LogLevel::kWarn, "backend does not take profiles, will try again",
        {{"backend", backend}, {"endpoint", found->second.endpoint}, {"error", message}});
  }
  return found->second.backoff->Next();
}

void Pusher::NoteSuccess(const std::string& backend) {
  const MutexLock lock(&mutex_);
  const auto found = backends_.find(backend);
  if (found == backends_.end()) return;
  found->second.backoff->Reset();
  if (std::exchange(found->second.failing, false)) {
    Log(LogLevel::kInfo, "backend takes profiles again", {{"backend", backend}});
  }
}

void Pusher::Drop(const QueuedPush& push, std::string_view reason, const std::string& message) {
  dropped_.at(reason).Increment();
  ShowQueue();
  if (observer_ != nullptr) observer_->OnNotDelivered(push.collection, reason, message);
}

void Pusher::Drop(const std::vector<QueuedPush>& pushes, std::string_view reason,
                  const std::string& message) {
  for (const QueuedPush& push : pushes)
    Drop(push, reason, message);
}

void Pusher::ShowQueue() {
  const MutexLock lock(&show_mutex_);
  waiting_.Set(static_cast<double>(queue_.Profiles()));
  waiting_bytes_.Set(static_cast<double>(queue_.Bytes()));
}

}  // namespace flamefleet::agent
