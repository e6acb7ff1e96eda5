// Compares what a process exports with the tables of docs/metrics.md, so that no metric is without
// its row and no row without its metric. A row is
//
//   | `distro_worker_loss` | gauge `label` | The family's help text. Further words. |
//
// with every label of the family behind its type, and the help text first in the third column.
#pragma once

#include <string>
#include <vector>

#include "prometheus/metric_family.h"

namespace distro::testing {

// The differences between the families and the page's rows whose names begin with `prefix`, one
// line each; empty if they agree. Ignores families with other prefixes.
std::vector<std::string> MetricsDocFaults(const std::string& page,
                                          const std::vector<prometheus::MetricFamily>& families,
                                          const std::string& prefix);

// docs/metrics.md of the source tree. Fails the test when it cannot be read.
std::string MetricsPage();

}  // namespace distro::testing
