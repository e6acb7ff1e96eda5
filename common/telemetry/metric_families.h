// Families that are made anew at each scrape, for series that come and go (one a worker), and the
// text that Prometheus reads.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/http/http_endpoint.h"
#include "common/telemetry/metrics.h"
#include "prometheus/metric_family.h"

namespace distro {

// InvalidArgument: not what Prometheus and our rules take: [a-z_][a-z0-9_]* names; a help text that
// is not empty, one line of UTF-8; label names [a-z_][a-z0-9_]*, label values that are not empty,
// UTF-8.
absl::Status CheckMetric(const std::string& name, const std::string& help,
                         const MetricLabels& labels);

// Builds families sample by sample. Values that are not finite are left out, so a reading that a
// peer sent cannot spoil the scrape; so are samples that CheckMetric refuses. Not thread-safe.
class FamilyBuilder {
 public:
  void AddGauge(const std::string& name, const std::string& help, const MetricLabels& labels,
                double value);
  void AddCounter(const std::string& name, const std::string& help, const MetricLabels& labels,
                  double value);

  // The families in the order of their first sample.
  std::vector<prometheus::MetricFamily> Take() { return std::move(families_); }

 private:
  void Add(const std::string& name, const std::string& help, prometheus::MetricType type,
           const MetricLabels& labels, double value);

  std::vector<prometheus::MetricFamily> families_;
};

// Moves families behind those that are there.
void AppendFamilies(std::vector<prometheus::MetricFamily> from,
                    std::vector<prometheus::MetricFamily>* to);

// The text exposition format 0.0.4, served as kMetricsContentType.
inline constexpr char kMetricsContentType[] = "text/plain; version=0.0.4; charset=utf-8";
std::string MetricsText(const std::vector<prometheus::MetricFamily>& families);
// GET `path`: the families in the text format.
HttpRoute MetricsRoute(std::string path,
                       std::function<std::vector<prometheus::MetricFamily>()> collect);

// Families looked up by name and labels, for a page that shows the numbers of a scrape. Immutable.
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
