// Collects the worker's readings for heartbeats and for the process's own /metrics
// (docs/metrics.md, "Worker"). Thread-safe.
#pragma once

#include <atomic>
#include <functional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/exchange/transfer_stats.h"
#include "common/http/http_endpoint.h"
#include "common/telemetry/worker_families.h"
#include "distro/v1/telemetry.pb.h"
#include "prometheus/metric_family.h"
#include "worker/metrics/gpu_readings.h"
#include "worker/train/phase_clock.h"
#include "worker/train/summary.h"

namespace distro::worker {

// The arithmetic of a step, and the peak rate of the devices.
struct ComputeRates {
  double flops_per_token = 0;
  double peak_flops_per_second = 0;
};

class WorkerMetrics {
 public:
  // `phases` is borrowed.
  explicit WorkerMetrics(const PhaseClock* phases);

  // Sets the source of transfers; used as long as readings are requested.
  void SetTransfers(std::function<TransferStats()> read);
  void SetCompute(const ComputeRates& rates);
  // The machine's GPUs; borrowed, nullptr: none.
  void SetGpus(const GpuReader* gpus);
  // Sets the training thread's readings. Drops and counts values that are not finite.
  void Update(const TrainSummary& summary);
  void SetReady(bool ready) { ready_ = ready; }

  // All readings of this moment. Counters never go back.
  v1::WorkerTelemetry Telemetry();

  std::vector<prometheus::MetricFamily> Collect();
  // Ready once it has joined, while the aggregator answers.
  ReadyReport Ready();

 private:
  // Queries the driver, which may be slow: without the lock that the training thread needs.
  std::vector<GpuReading> ReadGpus() ABSL_LOCKS_EXCLUDED(mu_);
  void Read(const std::vector<GpuReading>& gpus) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const PhaseClock* const phases_;
  std::atomic<bool> ready_ = false;

  absl::Mutex mu_;
  std::function<TransferStats()> read_transfers_ ABSL_GUARDED_BY(mu_);
  TransferStats transfers_ ABSL_GUARDED_BY(mu_);  // as last read
  ComputeRates rates_ ABSL_GUARDED_BY(mu_);
  const GpuReader* gpus_ ABSL_GUARDED_BY(mu_) = nullptr;
  uint64_t next_round_ ABSL_GUARDED_BY(mu_) = 0;
  std::string uncounted_ ABSL_GUARDED_BY(mu_);  // of the last Update
  WorkerReadings::FailedWrites failed_writes_ ABSL_GUARDED_BY(mu_);
  v1::WorkerTelemetry training_ ABSL_GUARDED_BY(mu_);  // of the last Update
  v1::WorkerTelemetry shown_ ABSL_GUARDED_BY(mu_);     // last
};

}  // namespace distro::worker
