#include "common/net/telemetry/metric_families.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/status_macros.h"
#include "common/base/utf8.h"
#include "prometheus/text_serializer.h"

namespace distro {
namespace {

bool IsName(absl::string_view name) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; };
  if (name.empty() || !letter(name[0])) return false;
  return std::all_of(name.begin(), name.end(),
                     [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

prometheus::ClientMetric Sample(const MetricLabels& labels, prometheus::MetricType type,
                                double value) {
  prometheus::ClientMetric sample;
  for (const auto& [name, text] : labels) sample.label.push_back({name, text});
  if (type == prometheus::MetricType::Counter) {
    sample.counter.value = value;
  } else {
    sample.gauge.value = value;
  }
  return sample;
}

}  // namespace

absl::Status CheckMetric(const std::string& name, const std::string& help,
                         const MetricLabels& labels) {
  if (!IsName(name)) return absl::InvalidArgumentError(absl::StrCat("metric ", name, ": name"));
  if (help.empty() || !IsValidUtf8(help) || help.find('\n') != std::string::npos) {
    return absl::InvalidArgumentError(absl::StrCat("metric ", name, ": help text"));
  }
  for (const auto& [label, value] : labels) {
    if (!IsName(label) || value.empty() || !IsValidUtf8(value)) {
      return absl::InvalidArgumentError(absl::StrCat("metric ", name, ": label ", label));
    }
  }
  return absl::OkStatus();
}

void FamilyBuilder::AddGauge(const std::string& name, const std::string& help,
                             const MetricLabels& labels, double value) {
  Add(name, help, prometheus::MetricType::Gauge, labels, value);
}

void FamilyBuilder::AddCounter(const std::string& name, const std::string& help,
                               const MetricLabels& labels, double value) {
  Add(name, help, prometheus::MetricType::Counter, labels, value);
}

void FamilyBuilder::Add(const std::string& name, const std::string& help,
                        prometheus::MetricType type, const MetricLabels& labels, double value) {
  if (!std::isfinite(value) || !CheckMetric(name, help, labels).ok()) return;
  auto family = std::find_if(families_.begin(), families_.end(),
                             [&](const auto& candidate) { return candidate.name == name; });
  if (family == families_.end()) {
    families_.push_back({name, help, type, {}});
    family = families_.end() - 1;
  }
  family->metric.push_back(Sample(labels, family->type, value));
}

void AppendFamilies(std::vector<prometheus::MetricFamily> from,
                    std::vector<prometheus::MetricFamily>* to) {
  for (prometheus::MetricFamily& family : from) to->push_back(std::move(family));
}

std::string MetricsText(const std::vector<prometheus::MetricFamily>& families) {
  return prometheus::TextSerializer().Serialize(families);
}

HttpRoute MetricsRoute(std::string path,
                       std::function<std::vector<prometheus::MetricFamily>()> collect) {
  return {std::move(path), [collect = std::move(collect)](const HttpRequest&) {
            return HttpResponse{200, kMetricsContentType, MetricsText(collect())};
          }};
}

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

std::optional<double> MetricValues::Find(const std::string& name,
                                         const MetricLabels& labels) const {
  const auto family = values_.find(name);
  if (family == values_.end()) return std::nullopt;
  const auto series = family->second.find(labels);
  if (series == family->second.end()) return std::nullopt;
  return series->second;
}

double MetricValues::Get(const std::string& name, const MetricLabels& labels) const {
  return Find(name, labels).value_or(0);
}

double MetricValues::Sum(const std::string& name) const {
  double sum = 0;
  const auto family = values_.find(name);
  if (family == values_.end()) return 0;
  for (const auto& [labels, value] : family->second) sum += value;
  return sum;
}

}  // namespace distro
