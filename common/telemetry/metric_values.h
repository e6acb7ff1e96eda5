// Families looked up by name and labels, for a page that shows the numbers of a scrape. Immutable.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "common/telemetry/metrics.h"
#include "prometheus/metric_family.h"

namespace distro {

class MetricValues {
 public:
  // Takes counters and gauges; histograms are left out.
  explicit MetricValues(const std::vector<prometheus::MetricFamily>& families);

  // Of exactly these labels; 0 when there is no such series.
  double Get(const std::string& name, const MetricLabels& labels = {}) const;
  // Over all labels; 0 without a series.
  double Sum(const std::string& name) const;

 private:
  std::map<std::string, std::map<MetricLabels, double>> values_;
};

}  // namespace distro
