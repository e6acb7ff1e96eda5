#include "worker/metrics.h"

#include <optional>
#include <string>
#include <utility>

#include "common/base/version.h"
#include "common/telemetry/metric_families.h"
#include "common/telemetry/process_metrics.h"
#include "common/telemetry/worker_families.h"
#include "common/telemetry/worker_readings.h"
#include "worker/telemetry.h"

namespace distro::worker {

WorkerMetrics::WorkerMetrics(const PhaseClock* phases) : phases_(phases) {
  training_.set_version(std::string(Version()));
}

void WorkerMetrics::SetTransfers(std::function<TransferStats()> read) {
  absl::MutexLock lock(&mu_);
  read_transfers_ = std::move(read);
}

void WorkerMetrics::SetCompute(const ComputeRates& rates) {
  absl::MutexLock lock(&mu_);
  rates_ = rates;
}

void WorkerMetrics::SetGpus(const GpuReader* gpus) {
  absl::MutexLock lock(&mu_);
  gpus_ = gpus;
}

void WorkerMetrics::Update(const TrainSummary& summary) {
  absl::MutexLock lock(&mu_);
  next_round_ = summary.next_round;
  v1::WorkerTelemetry next;
  FillTraining(summary, &next);
  next.set_dropped_values(training_.dropped_values());
  const int dropped = RepairTelemetry(training_, &next);
  next.set_dropped_values(next.dropped_values() + static_cast<uint64_t>(dropped));
  training_ = std::move(next);
}

std::vector<GpuReading> WorkerMetrics::ReadGpus() {
  const GpuReader* gpus = nullptr;
  {
    absl::MutexLock lock(&mu_);
    gpus = gpus_;
  }
  return gpus == nullptr ? std::vector<GpuReading>() : gpus->Read();
}

void WorkerMetrics::Read(const std::vector<GpuReading>& gpus) {
  if (read_transfers_) transfers_ = read_transfers_();
  v1::WorkerTelemetry now = training_;
  FillTime(phases_->Spent(), transfers_, &now);
  now.mutable_compute()->set_model_flops(rates_.flops_per_token *
                                         static_cast<double>(now.tokens()));
  if (rates_.peak_flops_per_second > 0)
    now.mutable_compute()->set_peak_flops_per_second(rates_.peak_flops_per_second);
  FillGpus(gpus, &now);
  // Clocks and counts are read one after the other: a difference may fall short by microseconds.
  RepairTelemetry(shown_, &now);
  shown_ = std::move(now);
}

v1::WorkerTelemetry WorkerMetrics::Telemetry() {
  const std::vector<GpuReading> gpus = ReadGpus();
  absl::MutexLock lock(&mu_);
  Read(gpus);
  return shown_;
}

std::vector<prometheus::MetricFamily> WorkerMetrics::Collect() {
  WorkerReadings readings;
  v1::WorkerTelemetry telemetry;
  const std::vector<GpuReading> gpus = ReadGpus();
  {
    absl::MutexLock lock(&mu_);
    Read(gpus);
    telemetry = shown_;
    readings.next_round = next_round_;
    if (transfers_.last_report != absl::InfinitePast())
      readings.last_report_seconds =
          absl::ToDoubleSeconds(transfers_.last_report - absl::UnixEpoch());
  }
  readings.telemetry = &telemetry;
  std::vector<prometheus::MetricFamily> families = WorkerFamilies({&readings, 1});
  AppendFamilies(ProcessMetrics(), &families);
  return families;
}

ReadyReport WorkerMetrics::Ready() const {
  const bool ready = ready_;
  return {.ready = ready,
          .checks = {{.name = "run", .ok = ready, .detail = ready ? "joined" : "not joined yet"}}};
}

}  // namespace distro::worker
