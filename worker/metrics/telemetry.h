// Collects the worker's readings for heartbeats (docs/metrics.md, "Worker"). Without
// prometheus-cpp, so that the Python package can use it. Thread-safe.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/client/exchange/transfer_stats.h"
#include "distro/v1/telemetry.pb.h"
#include "worker/metrics/gpu_readings.h"
#include "worker/train/phase_clock.h"
#include "worker/train/summary.h"

namespace distro::worker {

// The arithmetic of a step, and the peak rate of the devices.
struct ComputeRates {
  double flops_per_token = 0;
  double peak_flops_per_second = 0;
};

class WorkerTelemetry {
 public:
  // `phases` is borrowed.
  explicit WorkerTelemetry(const PhaseClock* phases);

  // Sets the source of transfers; used as long as readings are requested.
  void SetTransfers(std::function<TransferStats()> read);
  void SetCompute(const ComputeRates& rates);
  // The machine's GPUs; borrowed, nullptr: none.
  void SetGpus(const GpuReader* gpus);
  // Sets the training thread's readings. Drops and counts values that are not finite.
  void Update(const TrainSummary& summary);

  // All readings of this moment. Counters never go back.
  v1::WorkerTelemetry Telemetry();

 protected:
  // Queries the driver, which may be slow: without the lock that the training thread needs.
  std::vector<GpuReading> ReadGpus() ABSL_LOCKS_EXCLUDED(mu_);
  void Read(const std::vector<GpuReading>& gpus) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const PhaseClock* const phases_;

  absl::Mutex mu_;
  std::function<TransferStats()> read_transfers_ ABSL_GUARDED_BY(mu_);
  TransferStats transfers_ ABSL_GUARDED_BY(mu_);  // as last read
  ComputeRates rates_ ABSL_GUARDED_BY(mu_);
  const GpuReader* gpus_ ABSL_GUARDED_BY(mu_) = nullptr;
  uint64_t next_round_ ABSL_GUARDED_BY(mu_) = 0;
  std::string uncounted_ ABSL_GUARDED_BY(mu_);  // of the last Update
  uint64_t failed_checkpoints_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t failed_saves_ ABSL_GUARDED_BY(mu_) = 0;
  v1::WorkerTelemetry training_ ABSL_GUARDED_BY(mu_);  // of the last Update
  v1::WorkerTelemetry shown_ ABSL_GUARDED_BY(mu_);     // last
};

}  // namespace distro::worker
