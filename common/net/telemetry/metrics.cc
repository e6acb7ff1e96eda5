#include "common/net/telemetry/metrics.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/net/telemetry/metric_families.h"
#include "common/net/wire/worker_readings.h"

namespace distro {
namespace {

[[noreturn]] void Bug(const std::string& what) {
  std::fprintf(stderr, "metrics: %s\n", what.c_str());
  std::abort();
}

// Converts the exception of prometheus-cpp for a family that exists with another type.
template <typename Make>
auto& OrBug(const std::string& name, const Make& make) {
  try {
    return make();
  } catch (const std::exception& error) {
    Bug(absl::StrCat(name, ": ", error.what()));
  }
}

}  // namespace

void Counter::Increment(double by) {
  if (std::isfinite(by) && by >= 0) {
    counter_->Increment(by);
  } else {
    dropped_->Add();
  }
}

void Gauge::Set(double value) {
  if (std::isfinite(value)) {
    gauge_->Set(value);
  } else {
    dropped_->Add();
  }
}

void Gauge::Clear() { gauge_->Set(std::numeric_limits<double>::quiet_NaN()); }

void Histogram::Observe(double value) {
  if (std::isfinite(value)) {
    histogram_->Observe(value);
  } else {
    dropped_->Add();
  }
}

std::vector<double> RoundSecondsBuckets() {
  std::vector<double> bounds(kDurationBounds.begin(), kDurationBounds.end());
  bounds.insert(bounds.end(),
                {300, 600, 1800, 3600, 7200, 14400, 28800, 57600, 86400, 172800, 345600, 604800});
  return bounds;
}

std::vector<double> MillisecondsBuckets() {
  return {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5};
}

MetricsRegistry::MetricsRegistry(std::string prefix) : prefix_(std::move(prefix)) {
  dropped_total_ =
      &prometheus::BuildCounter()
           .Name(prefix_ + "dropped_values_total")
           .Help("Values dropped because they were not finite, or would have lowered a counter.")
           .Register(registry_)
           .Add({});
}

std::string MetricsRegistry::Checked(const std::string& name, const std::string& help,
                                     const MetricLabels& labels) const {
  const std::string full = prefix_ + name;
  const absl::Status status = CheckMetric(full, help, labels);
  if (!status.ok()) Bug(std::string(status.message()));
  return full;
}

Counter* MetricsRegistry::AddCounter(const std::string& name, const std::string& help,
                                     const MetricLabels& labels) {
  const std::string full = Checked(name, help, labels);
  prometheus::Counter& counter = OrBug(full, [&]() -> prometheus::Counter& {
    return prometheus::BuildCounter().Name(full).Help(help).Register(registry_).Add(labels);
  });
  absl::MutexLock lock(&mu_);
  return &counters_.emplace_back(&counter, &dropped_);
}

Gauge* MetricsRegistry::AddGauge(const std::string& name, const std::string& help,
                                 const MetricLabels& labels) {
  const std::string full = Checked(name, help, labels);
  prometheus::Gauge& gauge = OrBug(full, [&]() -> prometheus::Gauge& {
    return prometheus::BuildGauge().Name(full).Help(help).Register(registry_).Add(labels);
  });
  absl::MutexLock lock(&mu_);
  return &gauges_.emplace_back(&gauge, &dropped_);
}

Histogram* MetricsRegistry::AddHistogram(const std::string& name, const std::string& help,
                                         const std::vector<double>& buckets,
                                         const MetricLabels& labels) {
  const std::string full = Checked(name, help, labels);
  prometheus::Histogram& histogram = OrBug(full, [&]() -> prometheus::Histogram& {
    return prometheus::BuildHistogram().Name(full).Help(help).Register(registry_).Add(labels,
                                                                                      buckets);
  });
  absl::MutexLock lock(&mu_);
  return &histograms_.emplace_back(&histogram, &dropped_);
}

std::vector<prometheus::MetricFamily> MetricsRegistry::Collect() {
  absl::MutexLock lock(&mu_);
  const uint64_t dropped = dropped_.count();
  dropped_total_->Increment(static_cast<double>(dropped - dropped_shown_));
  dropped_shown_ = dropped;
  std::vector<prometheus::MetricFamily> families = registry_.Collect();
  for (prometheus::MetricFamily& family : families) {
    if (family.type != prometheus::MetricType::Gauge) continue;
    std::erase_if(family.metric, [](const auto& m) { return std::isnan(m.gauge.value); });
  }
  std::erase_if(families, [](const auto& family) { return family.metric.empty(); });
  return families;
}

}  // namespace distro
