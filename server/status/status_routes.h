// The status page on the HTTP port: `/`, its files below /page/, the runbooks below /runbooks/,
// /favicon.ico and /status.json (docs/status_page.md). The page loads nothing from elsewhere and
// polls /status.json; its Content-Security-Policy blocks everything else.
#pragma once

#include <functional>
#include <vector>

#include "common/base/clock.h"
#include "common/net/http/http_endpoint.h"
#include "common/net/telemetry/metric_families.h"
#include "server/round/run_host.h"
#include "server/session/worker_reports.h"
#include "server/status/run_history.h"
#include "server/status/worker_rates.h"

namespace distro::server {

// All borrowed, for as long as the routes are served.
struct StatusSources {
  const RunHost* host = nullptr;
  const RunHistory* history = nullptr;
  const WorkerReports* reports = nullptr;
  WorkerRates* rates = nullptr;
  const Clock* clock = nullptr;
  std::function<MetricValues()> metrics;  // as on /metrics
  std::function<ReadyReport()> ready;     // as on /readyz
};

std::vector<HttpRoute> StatusRoutes(const StatusSources& sources);

}  // namespace distro::server
