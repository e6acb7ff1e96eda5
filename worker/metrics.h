// The worker's metrics (docs/metrics.md, "Worker") and the HTTP endpoint that serves them.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/log.h"
#include "common/telemetry/http_endpoint.h"
#include "common/telemetry/metrics.h"
#include "worker/train/summary.h"

namespace distro::worker {

// The series, set from summaries. Thread-safe.
class WorkerMetrics {
 public:
  WorkerMetrics();

  // Takes the readings over; they never go back within a process.
  void Update(const TrainSummary& summary);
  void SetReady(bool ready) { ready_ = ready; }

  std::vector<prometheus::MetricFamily> Collect();
  ReadyReport Ready() const;

 private:
  using Reading = std::function<double(const TrainSummary&)>;
  struct Mirror {
    Counter* counter;
    Reading reading;
  };
  void AddTransfers();
  void AddUpdates();
  void AddMirror(const std::string& name, const std::string& help, const MetricLabels& labels,
                 Reading reading);

  MetricsRegistry registry_{"distro_worker_"};
  std::vector<Mirror> counters_;  // constant after construction
  std::array<Counter*, kPhases> phases_;
  Gauge* round_;
  Gauge* loss_;
  Gauge* evaluation_loss_;
  Gauge* gradient_norm_;
  Gauge* learning_rate_;
  std::atomic<bool> ready_ = false;
};

}  // namespace distro::worker
