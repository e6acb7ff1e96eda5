// Exports the metrics of the aggregator's parts on /metrics and /metrics/workers, read at each
// scrape (docs/metrics.md). Thread-safe.
#pragma once

#include <vector>

#include "absl/time/time.h"
#include "prometheus/metric_family.h"
#include "server/connections/connection_table.h"
#include "server/limits/stream_limiter.h"
#include "server/session/worker_reports.h"

namespace distro::server {

// Metrics of open streams and of payloads in transfer.
std::vector<prometheus::MetricFamily> StreamMetrics(const StreamLimiter& limiter);

std::vector<prometheus::MetricFamily> ConnectionMetrics(const ConnectionTable& table);

// The content of /metrics/workers: the last readings of every worker, under the worker's metric
// names and with a label `worker`, its authenticated name (docs/metrics.md, "Workers"). `now`:
// monotonic, by the clock of the reports.
std::vector<prometheus::MetricFamily> CollectWorkers(const WorkerReports& reports,
                                                     absl::Duration now);

}  // namespace distro::server
