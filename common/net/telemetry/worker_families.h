// A worker's readings as metrics, distro_worker_*: the same names, help texts and numbers on the
// worker's own /metrics and on the aggregator's /metrics/workers (docs/metrics.md, "Worker"). Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "distro/v1/telemetry.pb.h"
#include "prometheus/metric_family.h"

namespace distro {

struct WorkerReadings {
  std::string worker = {};  // value of the label `worker`; empty: the page of the worker itself
  uint64_t next_round = 0;
  std::optional<double> last_report_seconds = std::nullopt;  // since 1970
  const v1::WorkerTelemetry* telemetry = nullptr;            // borrowed; output of RepairTelemetry
  // Writes to its own disk that failed, in a row until now; known on the worker's own page only.
  struct FailedWrites {
    uint64_t checkpoint = 0, state = 0;
  };
  std::optional<FailedWrites> failed_writes = std::nullopt;
};

// One family for each metric, with the series of all workers in their order. A worker has no series
// for an unknown value; a family without series is omitted.
std::vector<prometheus::MetricFamily> WorkerFamilies(absl::Span<const WorkerReadings> workers);

}  // namespace distro
