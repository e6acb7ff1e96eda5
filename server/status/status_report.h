// Renders /status.json: the run, its rounds, its workers and their problems, for the page and for
// programs. The schema is in docs/status_page.md; the numbers are those of /metrics. Pure.
#pragma once

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/net/http/http_endpoint.h"
#include "common/net/telemetry/metric_families.h"
#include "server/log/run_identity.h"
#include "server/round/round_manager.h"
#include "server/session/worker_reports.h"
#include "server/status/run_history.h"
#include "server/status/worker_rates.h"

namespace distro::server {

struct StatusFacts {
  const RunIdentity* run = nullptr;  // null: there is none yet
  RunStatus status = {};
  HistoryView history = {};
  const MetricValues* metrics = nullptr;
  std::vector<WorkerReport> reports = {};
  const WorkerRates* rates = nullptr;
  ReadyReport ready = {};
  std::string version = {};
  absl::Time now = {};
};

// JSON in one line. Invalid bytes of UTF-8 text become U+FFFD; numbers that are not finite are
// null.
std::string StatusJson(const StatusFacts& facts);

}  // namespace distro::server
