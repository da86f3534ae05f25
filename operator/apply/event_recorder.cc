// SPDX-License-Identifier: Apache-2.0
#include "operator/apply/event_recorder.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/log.h"
#include "base/thread.h"
#include "base/utf8.h"
#include "operator/api/well_known.h"
#include "operator/runtime/lease_record.h"

namespace flamefleet {
namespace {

using nlohmann::json;

constexpr const char* kEventFieldManager = "flamefleet-operator-events";
// Events of objects without a namespace live here: the API server's rule.
constexpr const char* kClusterNamespace = "default";
// How often the thread looks for what has become due.
constexpr std::chrono::milliseconds kLongestWait{500};
constexpr std::chrono::seconds kFirstRetry{1};
constexpr std::chrono::seconds kMaxRetry{60};
// Of the object's name in the event's, which has 253 bytes.
constexpr size_t kMaxNamePart = 200;

CounterMetric Total(Metrics& metrics, const char* result) {
  return metrics.Counter("flamefleet_operator_events_total",
                         "What became of each event that was to be said about an object.",
                         {{"result", result}});
}

// At most `size` bytes of UTF-8, cut between characters.
// A name that no other event has: the object's, and a hash of what makes this one different.
std::string NameOf(const std::string& object, const std::string& what) {
  std::string name = object.substr(0, kMaxNamePart);
  while (!name.empty() && std::isalnum(static_cast<unsigned char>(name.back())) == 0)
    name.pop_back();
  std::array<char, 20> hash{};
  std::snprintf(hash.data(), hash.size(), ".%016zx", std::hash<std::string>()(what));
  return name + hash.data();
}

}  // namespace

// One event, in all its occurrences.
struct EventRecorder::Series {
  json regarding;
  EventText text;
  std::string ns;
  std::string name;          // of the Event
  int64_t first_ns = 0;      // wall clock
  int64_t last_ns = 0;       // wall clock
  int64_t last_said_ns = 0;  // monotonic, as all below
  int64_t count = 0;
  int64_t due_ns = 0;  // when it is written next; 0: not by itself
  int64_t written_ns = 0;
  int tries = 0;

  json Encode(const std::string& instance) const {
    json event = {{"apiVersion", kEvents.api_version},
                  {"kind", kEvents.kind},
                  {"metadata", {{"name", name}, {"namespace", ns}}},
                  {"eventTime", FormatMicroTime(first_ns)},
                  {"reportingController", api::kReportingController},
                  {"reportingInstance", instance},
                  {"type", text.warning ? "Warning" : "Normal"},
                  {"reason", text.reason},
                  {"action", text.action},
                  {"note", text.note},
                  {"regarding", regarding}};
    if (count > 1) {
      event["series"] = {{"count", count}, {"lastObservedTime", FormatMicroTime(last_ns)}};
    }
    return event;
  }
};

struct EventRecorder::Object {
  explicit Object(int64_t now_ns) : writes(kObjectBurst, kObjectInterval, now_ns) {}
  TokenBucket writes;
  std::map<std::string, Series> series;  // by type, reason and action
};

EventRecorder::EventRecorder(RestClient& client, const Clock& clock, Metrics& metrics,
                             std::string instance)
    : client_(client),
      clock_(clock),
      instance_(std::move(instance)),
      written_(Total(metrics, "written")),
      repeated_(Total(metrics, "repeated")),
      dropped_full_(Total(metrics, "dropped_full")),
      dropped_rate_(Total(metrics, "dropped_rate")),
      dropped_failed_(Total(metrics, "dropped_failed")),
      thread_(StartThread("events", [this](const std::stop_token& stop) { Run(stop); })) {}

EventRecorder::~EventRecorder() = default;

EventRecorder::Series* EventRecorder::Find(const Resource& resource, const api::ObjectMeta& about,
                                           const EventText& text, int64_t now_ns) {
  const std::string id = std::string(resource.plural) + "/" + about.uid;
  const std::string key = (text.warning ? "W/" : "N/") + text.reason + "/" + text.action;
  const auto object = objects_.find(id);
  if (object != objects_.end()) {
    const auto known = object->second.series.find(key);
    if (known != object->second.series.end()) return &known->second;
  }
  if (known_ >= kMaxSeries) ForgetOld(now_ns);
  if (known_ >= kMaxSeries) return nullptr;
  ++known_;
  Series& series = objects_.try_emplace(id, now_ns).first->second.series[key];
  series.ns = about.ns.empty() ? kClusterNamespace : about.ns;
  series.regarding = {{"apiVersion", resource.api_version},
                      {"kind", resource.kind},
                      {"name", about.name},
                      {"uid", about.uid}};
  if (!about.ns.empty()) series.regarding["namespace"] = about.ns;
  return &series;
}

void EventRecorder::Record(const Resource& resource, const api::ObjectMeta& about, EventText text) {
  text.note = CutUtf8(ToUtf8(text.note), kMaxNote);
  const int64_t now_ns = clock_.MonotonicNanos();
  MutexLock lock(&mutex_);
  Series* const series = Find(resource, about, text, now_ns);
  if (series == nullptr) {
    dropped_full_.Increment();
    return;
  }
  series->last_ns = clock_.WallNanos();
  series->last_said_ns = now_ns;
  const bool begins = series->count == 0 || series->text.note != text.note;
  if (begins) {
    series->count = 0;
    series->first_ns = series->last_ns;
    series->name = NameOf(about.name, about.uid + text.reason + text.action + text.note +
                                          std::to_string(series->first_ns));
  } else {
    repeated_.Increment();
  }
  ++series->count;
  series->text = std::move(text);
  const bool stale = now_ns - series->written_ns >= std::chrono::nanoseconds(kRefresh).count();
  if (series->due_ns == 0 && (begins || stale)) series->due_ns = now_ns;
  if (series->due_ns != 0) changed_.Signal();
}

void EventRecorder::Run(const std::stop_token& stop) {
  const std::stop_callback wake(stop, [this] { changed_.SignalAll(); });
  while (!stop.stop_requested()) {
    Write write;
    if (!NextWrite(write)) {
      MutexLock lock(&mutex_);
      WaitFor(changed_, mutex_, kLongestWait);
      continue;
    }
    const Status status =
        client_.Apply({kEvents, write.ns, write.name, kEventFieldManager, write.body, false}, stop)
            .status();
    if (!stop.stop_requested()) Written(write, status);
  }
}

bool EventRecorder::NextWrite(Write& write) {
  MutexLock lock(&mutex_);
  const int64_t now_ns = clock_.MonotonicNanos();
  for (auto& [id, object] : objects_) {
    for (auto& [key, series] : object.series) {
      if (series.due_ns == 0 || series.due_ns > now_ns) continue;
      if (series.tries == 0 && !object.writes.Take(now_ns)) {
        // Its note goes out with the next one that may.
        dropped_rate_.Increment();
        series.due_ns = now_ns + std::chrono::nanoseconds(kObjectInterval).count();
        continue;
      }
      write = {id, key, series.ns, series.name, series.Encode(instance_).dump()};
      series.due_ns = 0;
      series.written_ns = now_ns;
      return true;
    }
  }
  return false;
}

void EventRecorder::Written(const Write& write, const Status& status) {
  MutexLock lock(&mutex_);
  const auto object = objects_.find(write.object);
  if (object == objects_.end()) return;
  const auto found = object->second.series.find(write.series);
  if (found == object->second.series.end()) return;
  Series& series = found->second;
  if (status.ok()) {
    written_.Increment();
    series.tries = 0;
    return;
  }
  const bool retry = status.code() != StatusCode::kInvalidArgument &&
                     status.code() != StatusCode::kPermissionDenied &&
                     status.code() != StatusCode::kNotFound;
  if (retry && ++series.tries < kMaxTries) {
    const auto wait = std::min<std::chrono::nanoseconds>(
        kMaxRetry, std::chrono::nanoseconds(kFirstRetry) * (1 << std::min(series.tries - 1, 10)));
    series.due_ns = clock_.MonotonicNanos() + wait.count();
    return;
  }
  series.tries = 0;
  dropped_failed_.Increment();
  Log(LogLevel::kWarn, "event dropped",
      {{"name", write.name},
       {"namespace", write.ns},
       {"reason", series.text.reason},
       {"error", status}});
}

void EventRecorder::ForgetOld(int64_t now_ns) {
  known_ = 0;
  for (auto& [id, object] : objects_) {
    std::erase_if(object.series, [&](const auto& entry) {
      return now_ns - entry.second.last_said_ns >= std::chrono::nanoseconds(kForget).count();
    });
    known_ += object.series.size();
  }
  // An object without series keeps its place only as long as its bucket could matter.
  std::erase_if(objects_, [](const auto& entry) { return entry.second.series.empty(); });
}

}  // namespace flamefleet
