// Exports the metrics of the aggregator's parts on /metrics and /metrics/workers, read at each
// scrape (docs/metrics.md). Thread-safe.
#pragma once

#include <vector>

#include "absl/time/time.h"
#include "prometheus/metric_family.h"
#include "server/connections/connection_table.h"
#include "server/limits/stream_gate.h"
#include "server/session/worker_reports.h"

namespace distro::server {

// Streams, and the payloads that are arriving.
std::vector<prometheus::MetricFamily> StreamMetrics(const StreamGate& gate);

std::vector<prometheus::MetricFamily> ConnectionMetrics(const ConnectionTable& table);

// What /metrics/workers shows: the last readings of every worker, under the worker's names and with
// a label `worker` that is the name the aggregator let in (docs/metrics.md, "Workers"). `now`:
// monotonic, as the reports were taken with.
std::vector<prometheus::MetricFamily> CollectWorkers(const WorkerReports& reports,
                                                     absl::Duration now);

}  // namespace distro::server
