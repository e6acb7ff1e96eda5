// Serves the worker's readings at the process's own /metrics (docs/metrics.md, "Worker").
// Thread-safe.
#pragma once

#include <atomic>
#include <vector>

#include "common/net/http/http_endpoint.h"
#include "prometheus/metric_family.h"
#include "worker/metrics/telemetry.h"

namespace distro::worker {

class WorkerMetrics : public WorkerTelemetry {
 public:
  using WorkerTelemetry::WorkerTelemetry;

  void SetReady(bool ready) { ready_ = ready; }

  std::vector<prometheus::MetricFamily> Collect();
  // Ready once it has joined, while the aggregator answers.
  ReadyReport Ready();

 private:
  std::atomic<bool> ready_ = false;
};

}  // namespace distro::worker
