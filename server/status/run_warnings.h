// Detects problems of the run as a whole, with the names of the corresponding Prometheus alerts
// (docs/runbooks). Pure. Warnings depend on the current state and the last rounds; alerts on longer
// times.
#pragma once

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/net/telemetry/metric_families.h"
#include "server/round/round_manager.h"
#include "server/status/run_history.h"

namespace distro::server {

struct Warning {
  std::string name;  // of the alert and of its runbook
  bool critical = false;
  std::string what;  // human-readable, one sentence
};

struct WarningFacts {
  const RunStatus* status = nullptr;
  const HistoryView* history = nullptr;
  const MetricValues* metrics = nullptr;
  uint64_t min_workers = 0;
  absl::Time now;
};

// Critical ones first.
std::vector<Warning> RunWarnings(const WarningFacts& facts);

}  // namespace distro::server
