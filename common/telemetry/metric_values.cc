#include "common/telemetry/metric_values.h"

namespace distro {

MetricValues::MetricValues(const std::vector<prometheus::MetricFamily>& families) {
  for (const prometheus::MetricFamily& family : families) {
    const bool counter = family.type == prometheus::MetricType::Counter;
    if (!counter && family.type != prometheus::MetricType::Gauge) continue;
    for (const prometheus::ClientMetric& metric : family.metric) {
      MetricLabels labels;
      for (const auto& label : metric.label) labels.emplace(label.name, label.value);
      values_[family.name][labels] = counter ? metric.counter.value : metric.gauge.value;
    }
  }
}

double MetricValues::Get(const std::string& name, const MetricLabels& labels) const {
  const auto family = values_.find(name);
  if (family == values_.end()) return 0;
  const auto series = family->second.find(labels);
  return series == family->second.end() ? 0 : series->second;
}

double MetricValues::Sum(const std::string& name) const {
  double sum = 0;
  const auto family = values_.find(name);
  if (family == values_.end()) return 0;
  for (const auto& [labels, value] : family->second) sum += value;
  return sum;
}

}  // namespace distro
