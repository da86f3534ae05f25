// SPDX-License-Identifier: Apache-2.0
#include "base/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include "base/mutex.h"
#include "base/status.h"

namespace flamefleet {

void CounterMetric::Increment(double by) {
  counter_->Increment(by);
}

double CounterMetric::Value() const {
  return counter_->Value();
}

void GaugeMetric::Set(double value) {
  gauge_->Set(value);
}

double GaugeMetric::Value() const {
  return gauge_->Value();
}

void HistogramMetric::Observe(double value) {
  histogram_->Observe(value);
}

class Metrics::Impl {
 public:
  // A name has one help text: prometheus-cpp would keep the first one silently.
  void CheckHelp(const std::string& name, const std::string& help) {
    const MutexLock lock(&mutex_);  // some are declared while the program runs
    const auto known = help_of_.emplace(name, help).first;
    FF_CHECK(known->second == help);
  }

  prometheus::Registry registry;

 private:
  Mutex mutex_;
  std::map<std::string, std::string> help_of_ FF_GUARDED_BY(mutex_);
};

Metrics::Metrics() : impl_(std::make_unique<Impl>()) {}

Metrics::~Metrics() = default;

CounterMetric Metrics::Counter(const std::string& name, const std::string& help,
                               const MetricLabels& labels) {
  impl_->CheckHelp(name, help);
  return CounterMetric(
      &prometheus::BuildCounter().Name(name).Help(help).Register(impl_->registry).Add(labels));
}

GaugeMetric Metrics::Gauge(const std::string& name, const std::string& help,
                           const MetricLabels& labels) {
  impl_->CheckHelp(name, help);
  return GaugeMetric(
      &prometheus::BuildGauge().Name(name).Help(help).Register(impl_->registry).Add(labels));
}

HistogramMetric Metrics::Histogram(const std::string& name, const std::string& help,
                                   const std::vector<double>& bounds, const MetricLabels& labels) {
  impl_->CheckHelp(name, help);
  return HistogramMetric(&prometheus::BuildHistogram()
                              .Name(name)
                              .Help(help)
                              .Register(impl_->registry)
                              .Add(labels, bounds));
}

std::string Metrics::RenderText() const {
  return prometheus::TextSerializer().Serialize(impl_->registry.Collect());
}

}  // namespace flamefleet
