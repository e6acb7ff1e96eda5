#include "tests/testing/metrics_doc.h"

#include <map>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/file.h"
#include "gtest/gtest.h"

namespace distro::testing {
namespace {

struct Row {
  std::string type;
  std::string labels;
  std::string text;
};

std::map<std::string, Row> RowsOf(const std::string& page, const std::string& prefix) {
  std::map<std::string, Row> rows;
  for (absl::string_view line : absl::StrSplit(page, '\n')) {
    if (!absl::StartsWith(line, absl::StrCat("| `", prefix))) continue;
    const std::vector<std::string> cells = absl::StrSplit(line, absl::MaxSplits('|', 3));
    if (cells.size() < 4) continue;
    const std::string name(absl::StripAsciiWhitespace(cells[1]));
    const std::pair<std::string, std::string> kind =
        absl::StrSplit(absl::StripAsciiWhitespace(cells[2]), absl::MaxSplits(' ', 1));
    rows[name.substr(1, name.size() - 2)] = {
        kind.first, kind.second, std::string(absl::StripLeadingAsciiWhitespace(cells[3]))};
  }
  return rows;
}

std::string TypeName(prometheus::MetricType type) {
  switch (type) {
    case prometheus::MetricType::Counter:
      return "counter";
    case prometheus::MetricType::Gauge:
      return "gauge";
    case prometheus::MetricType::Histogram:
      return "histogram";
    default:
      return "other";
  }
}

std::set<std::string> LabelsOf(const prometheus::MetricFamily& family) {
  std::set<std::string> labels;
  for (const auto& metric : family.metric) {
    for (const auto& label : metric.label) labels.insert(label.name);
  }
  return labels;
}

void Compare(const prometheus::MetricFamily& family, const Row& row,
             std::vector<std::string>* faults) {
  const auto fault = [&](const std::string& what) {
    faults->push_back(absl::StrCat(family.name, ": ", what));
  };
  if (row.type != TypeName(family.type)) {
    fault(absl::StrCat("is a ", TypeName(family.type), ", the page says ", row.type));
  }
  if (!absl::StartsWith(row.text, family.help)) {
    fault(absl::StrCat("its row does not begin with its help text: ", family.help));
  }
  for (const std::string& label : LabelsOf(family)) {
    if (!absl::StrContains(row.labels, absl::StrCat("`", label, "`"))) {
      fault(absl::StrCat("its row does not name the label `", label, "`"));
    }
  }
}

}  // namespace

std::vector<std::string> MetricsDocFaults(const std::string& page,
                                          const std::vector<prometheus::MetricFamily>& families,
                                          const std::string& prefix) {
  std::map<std::string, Row> rows = RowsOf(page, prefix);
  std::vector<std::string> faults;
  for (const prometheus::MetricFamily& family : families) {
    if (!absl::StartsWith(family.name, prefix)) continue;
    const auto row = rows.find(family.name);
    if (row == rows.end()) {
      faults.push_back(absl::StrCat(family.name, ": has no row: | `", family.name, "` | ",
                                    TypeName(family.type), " | ", family.help, " |"));
      continue;
    }
    Compare(family, row->second, &faults);
    rows.erase(row);
  }
  for (const auto& [name, row] : rows) {
    faults.push_back(absl::StrCat(name, ": has a row but is not exported"));
  }
  return faults;
}

std::string MetricsPage() {
  const auto page = ReadFile(absl::StrCat(DISTRO_SOURCE_DIR, "/docs/metrics.md"));
  EXPECT_TRUE(page.ok()) << page.status();
  return page.value_or("");
}

}  // namespace distro::testing
