// Metrics of a process, on top of prometheus-cpp's core. Drops non-finite values (one NaN would
// stay in a counter for ever), and checks names, help texts and labels when they are added (one bad
// byte would break the whole scrape).
//
//   MetricsRegistry registry("distro_worker_");
//   Counter* const tokens = registry.AddCounter("tokens_total", "Tokens trained on.");
//   tokens->Increment(4096);
//
// Add everything at start, and keep the pointers for hot paths. An invalid name, help text or
// label, or a family that exists with another type, is a bug and ends the process with a message.
// Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "prometheus/counter.h"
#include "prometheus/gauge.h"
#include "prometheus/histogram.h"
#include "prometheus/metric_family.h"
#include "prometheus/registry.h"

namespace distro {

using MetricLabels = std::map<std::string, std::string>;

// Counts dropped values: those that were not finite, or negative increments of a counter.
class DroppedValues {
 public:
  void Add() { count_.fetch_add(1, std::memory_order_relaxed); }
  uint64_t count() const { return count_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> count_ = 0;
};

class Counter {
 public:
  Counter(prometheus::Counter* counter, DroppedValues* dropped)
      : counter_(counter), dropped_(dropped) {}
  void Increment(double by = 1);
  double value() const { return counter_->Value(); }

 private:
  prometheus::Counter* const counter_;
  DroppedValues* const dropped_;
};

// Has no series while its value is not known: before the first Set(), and after Clear().
class Gauge {
 public:
  Gauge(prometheus::Gauge* gauge, DroppedValues* dropped) : gauge_(gauge), dropped_(dropped) {
    Clear();
  }
  void Set(double value);
  void Clear();
  double value() const { return gauge_->Value(); }

 private:
  prometheus::Gauge* const gauge_;
  DroppedValues* const dropped_;
};

class Histogram {
 public:
  Histogram(prometheus::Histogram* histogram, DroppedValues* dropped)
      : histogram_(histogram), dropped_(dropped) {}
  void Observe(double value);

 private:
  prometheus::Histogram* const histogram_;
  DroppedValues* const dropped_;
};

// Upper bounds in seconds: for rounds, from 50 ms to seven days, and for operations of
// milliseconds.
std::vector<double> RoundSecondsBuckets();
std::vector<double> MillisecondsBuckets();

class MetricsRegistry {
 public:
  // Every name begins with `prefix`, such as "distro_worker_". Adds the counter
  // <prefix>dropped_values_total.
  explicit MetricsRegistry(std::string prefix);
  MetricsRegistry(const MetricsRegistry&) = delete;
  MetricsRegistry& operator=(const MetricsRegistry&) = delete;

  // Adds one series to the family `name` (without the prefix). The same name with the same help and
  // other labels adds another series. Pointers are valid as long as the registry.
  Counter* AddCounter(const std::string& name, const std::string& help,
                      const MetricLabels& labels = {});
  Gauge* AddGauge(const std::string& name, const std::string& help,
                  const MetricLabels& labels = {});
  Histogram* AddHistogram(const std::string& name, const std::string& help,
                          const std::vector<double>& buckets, const MetricLabels& labels = {});

  // Counts values that were dropped elsewhere.
  void CountDropped(int values) {
    for (int i = 0; i < values; ++i) dropped_.Add();
  }

  // All families with their present values, those that are known.
  std::vector<prometheus::MetricFamily> Collect();

 private:
  std::string Checked(const std::string& name, const std::string& help,
                      const MetricLabels& labels) const;

  // Constant after construction.
  const std::string prefix_;
  prometheus::Counter* dropped_total_ = nullptr;

  // Have their own locking.
  prometheus::Registry registry_;
  DroppedValues dropped_;

  absl::Mutex mu_;
  uint64_t dropped_shown_ ABSL_GUARDED_BY(mu_) = 0;
  std::deque<Counter> counters_ ABSL_GUARDED_BY(mu_);
  std::deque<Gauge> gauges_ ABSL_GUARDED_BY(mu_);
  std::deque<Histogram> histograms_ ABSL_GUARDED_BY(mu_);
};

}  // namespace distro
