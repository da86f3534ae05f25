// SPDX-License-Identifier: Apache-2.0
// Metrics: the Prometheus metrics of one program (prometheus-cpp beneath), rendered by RenderText
// on GET /metrics.
//
// A metric is declared once, where it is counted, with its help and label names; its handle is a
// member of the class that counts. Names carry the unit and, for counters, _total; label values are
// from a closed set (reasons, stages), never a pod or a path. Counters with a `reason` start at 0
// for every reason, so that a missing series is never "no loss".
//
// Thread: registration from the thread that builds the program; Increment, Set and Observe from any
// thread, lock-free after WithLabels. Bounds: none needed, label sets are closed.
#pragma once

#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace prometheus {
class Counter;
class Gauge;
class Histogram;
}  // namespace prometheus

namespace flamefleet {

using MetricLabels = std::map<std::string, std::string>;

// Cheap handles, valid as long as their Metrics.
class CounterMetric {
 public:
  explicit CounterMetric(prometheus::Counter* counter) : counter_(counter) {}
  void Increment(double by = 1);
  double Value() const;

 private:
  prometheus::Counter* counter_;
};

class GaugeMetric {
 public:
  explicit GaugeMetric(prometheus::Gauge* gauge) : gauge_(gauge) {}
  void Set(double value);
  double Value() const;

 private:
  prometheus::Gauge* gauge_;
};

class HistogramMetric {
 public:
  explicit HistogramMetric(prometheus::Histogram* histogram) : histogram_(histogram) {}
  void Observe(double value);

 private:
  prometheus::Histogram* histogram_;
};

class Metrics {
 public:
  Metrics();
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  // The same name may be declared again with other label values, never with another help text or
  // type.
  CounterMetric Counter(const std::string& name, const std::string& help,
                        const MetricLabels& labels = {});
  GaugeMetric Gauge(const std::string& name, const std::string& help,
                    const MetricLabels& labels = {});
  HistogramMetric Histogram(const std::string& name, const std::string& help,
                            const std::vector<double>& bounds, const MetricLabels& labels = {});

  // Text exposition format, content type "text/plain; version=0.0.4".
  std::string RenderText() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace flamefleet
