// SPDX-License-Identifier: Apache-2.0
#include "operator/runtime/worker.h"

#include <exception>

#include "base/log.h"

namespace flamefleet {
namespace {

bool RetryHelps(const Status& status) {
  switch (status.code()) {
    case StatusCode::kInvalidArgument:
    case StatusCode::kFailedPrecondition:
    case StatusCode::kPermissionDenied:
    case StatusCode::kAlreadyExists:
    case StatusCode::kUnimplemented:
      return false;
    default:
      return true;
  }
}

}  // namespace

// One controller and what is counted of it, under the names that dashboards for controllers know.
struct Worker::Entry {
  Entry(Controller& which, Metrics& metrics)
      : controller(which),
        success(Total(metrics, "success")),
        requeue_after(Total(metrics, "requeue_after")),
        error(Total(metrics, "error")),
        requeue(Total(metrics, "requeue")),
        errors(metrics.Counter("controller_runtime_reconcile_errors_total",
                               "Reconciles that failed.", {{"controller", which.name()}})),
        terminal_errors(metrics.Counter("controller_runtime_terminal_reconcile_errors_total",
                                        "Reconciles that failed in a way that a retry does not "
                                        "help.",
                                        {{"controller", which.name()}})),
        seconds(metrics.Histogram(
            "controller_runtime_reconcile_time_seconds", "Time of one reconcile.",
            {0.001, 0.005, 0.025, 0.1, 0.5, 1, 5, 30}, {{"controller", which.name()}})),
        panics(metrics.Counter("controller_runtime_reconcile_panics_total",
                               "Reconciles that ended in an exception, which is a bug.",
                               {{"controller", which.name()}})),
        timeouts(metrics.Counter("controller_runtime_reconcile_timeouts_total",
                                 "Reconciles that failed since an answer was not there in time.",
                                 {{"controller", which.name()}})),
        active(metrics.Gauge("controller_runtime_active_workers", "Reconciles that run now.",
                             {{"controller", which.name()}})) {
    metrics
        .Gauge("controller_runtime_max_concurrent_reconciles",
               "Reconciles that may run at the same time.", {{"controller", which.name()}})
        .Set(1);
  }

  CounterMetric Total(Metrics& metrics, const char* result) {
    return metrics.Counter("controller_runtime_reconcile_total", "Reconciles by result.",
                           {{"controller", controller.name()}, {"result", result}});
  }

  Controller& controller;
  // One object that a library throws at must not end the work for all others.
  Result<Controller::Outcome> Reconcile(const std::string& object, const std::stop_token& stop) {
    try {
      return controller.Reconcile(object, stop);
    } catch (const std::exception& thrown) {
      panics.Increment();
      return InternalError("reconcile " + controller.name() + "/" + object +
                           ": exception: " + thrown.what());
    }
  }

  CounterMetric success, requeue_after, error, requeue, errors, terminal_errors;
  HistogramMetric seconds;
  CounterMetric panics, timeouts;
  GaugeMetric active;
};

Worker::Worker(WorkQueue& queue, OwnWrites& own_writes, const Clock& clock, Metrics& metrics)
    : queue_(queue), own_writes_(own_writes), clock_(clock), metrics_(metrics) {}

Worker::~Worker() = default;

void Worker::Register(Controller& controller) {
  controllers_.emplace(controller.name(), std::make_unique<Entry>(controller, metrics_));
}

void Worker::Run(const std::stop_token& stop) {
  while (const auto key = queue_.Take(stop))
    Process(*key, stop);
}

bool Worker::RunOnce(const std::stop_token& stop) {
  const auto key = queue_.TryTake();
  if (key) Process(*key, stop);
  return key.has_value();
}

void Worker::Process(const std::string& key, const std::stop_token& stop) {
  const size_t slash = key.find('/');
  const auto found = controllers_.find(key.substr(0, slash));
  FF_CHECK(slash != std::string::npos && found != controllers_.end());
  Entry& entry = *found->second;
  if (!own_writes_.Seen(key)) {
    entry.requeue.Increment();
    queue_.Add(key, kUnseenRetry);
    queue_.Done(key);
    return;
  }
  own_writes_.Begin(key);

  const int64_t started_ns = clock_.MonotonicNanos();
  entry.active.Set(1);
  const Result<Controller::Outcome> outcome = entry.Reconcile(key.substr(slash + 1), stop);
  entry.active.Set(0);
  entry.seconds.Observe(static_cast<double>(clock_.MonotonicNanos() - started_ns) / 1e9);

  if (!outcome.ok()) {
    if (!stop.stop_requested()) Fail(key, outcome.status(), entry);
  } else {
    queue_.Forget(key);
    reported_.erase(key);
    for (const std::string& other : outcome->concerns)
      queue_.Add(other, kConcernDelay);
    if (outcome->recheck_after.count() > 0) {
      entry.requeue_after.Increment();
      queue_.Add(key, outcome->recheck_after);
    } else {
      entry.success.Increment();
    }
  }
  queue_.Done(key);
}

void Worker::Fail(const std::string& key, const Status& why, Entry& entry) {
  entry.error.Increment();
  entry.errors.Increment();
  if (why.code() == StatusCode::kDeadlineExceeded) entry.timeouts.Increment();
  const bool retry = RetryHelps(why);
  if (retry) {
    queue_.AddAfterFailure(key);
  } else {
    entry.terminal_errors.Increment();
    queue_.Add(key, kTerminalRetry);
  }
  std::string& reported = reported_[key];
  if (reported == ErrorMessage(why)) return;
  reported = ErrorMessage(why);
  Log(retry ? LogLevel::kWarn : LogLevel::kError, "reconcile failed",
      {{"key", key}, {"error", why}, {"code", ErrorCodeName(why)}, {"terminal", !retry}});
}

}  // namespace flamefleet
