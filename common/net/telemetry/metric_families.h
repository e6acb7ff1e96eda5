// Builds metric families at each scrape, for series that come and go (one per worker), and renders
// the text for Prometheus.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/net/http/http_endpoint.h"
#include "common/net/telemetry/metrics.h"
#include "prometheus/metric_family.h"

namespace distro {

// Checks the rules of Prometheus and ours: names and label names are [a-z_][a-z0-9_]*, the help
// text is one non-empty line of UTF-8, label values are non-empty UTF-8. InvalidArgument otherwise.
absl::Status CheckMetric(const std::string& name, const std::string& help,
                         const MetricLabels& labels);

// Builds families sample by sample. Omits values that are not finite and samples that CheckMetric
// refuses, so that a peer's readings cannot break the scrape. Not thread-safe.
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

// Appends the families `from` to `to`.
void AppendFamilies(std::vector<prometheus::MetricFamily> from,
                    std::vector<prometheus::MetricFamily>* to);

// The text exposition format 0.0.4, served as kMetricsContentType.
inline constexpr char kMetricsContentType[] = "text/plain; version=0.0.4; charset=utf-8";
std::string MetricsText(const std::vector<prometheus::MetricFamily>& families);
// GET `path`: the families in the text format.
HttpRoute MetricsRoute(std::string path,
                       std::function<std::vector<prometheus::MetricFamily>()> collect);

// Looks up values by name and labels, for a page that shows the numbers of a scrape. Immutable.
class MetricValues {
 public:
  // Uses counters and gauges; ignores histograms.
  explicit MetricValues(const std::vector<prometheus::MetricFamily>& families);

  // The value of the series with exactly these labels, if there is one.
  std::optional<double> Find(const std::string& name, const MetricLabels& labels = {}) const;
  // 0 if there is none.
  double Get(const std::string& name, const MetricLabels& labels = {}) const;
  // The sum over all series of the name; 0 if there is none.
  double Sum(const std::string& name) const;

 private:
  std::map<std::string, std::map<MetricLabels, double>> values_;
};

}  // namespace distro
