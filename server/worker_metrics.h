// What /metrics/workers shows: the last readings of every worker, under the worker's names and with a label `worker` that is
// the name the aggregator let in (docs/metrics.md, "Workers").
#pragma once

#include <vector>

#include "absl/time/time.h"
#include "prometheus/metric_family.h"
#include "server/session/worker_reports.h"

namespace distro::server {

// `now`: monotonic, as the reports were taken with.
std::vector<prometheus::MetricFamily> CollectWorkers(const WorkerReports& reports,
                                                     absl::Duration now);

}  // namespace distro::server
