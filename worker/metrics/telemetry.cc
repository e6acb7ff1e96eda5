#include "worker/metrics/telemetry.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "common/base/version.h"
#include "common/net/wire/worker_readings.h"

namespace distro::worker {
namespace {

void FillUpdates(const TrainSummary& summary, v1::UpdateTelemetry* updates) {
  const auto excluded = [&summary](Exclusion why) {
    return summary.excluded[static_cast<int>(why)];
  };
  updates->set_sent(summary.updates_sent);
  updates->set_gradient_bytes(4 * summary.parameters * summary.updates_sent);
  updates->set_excluded_late(excluded(Exclusion::kLate));
  updates->set_excluded_probation(excluded(Exclusion::kProbation));
  updates->set_excluded_absent(excluded(Exclusion::kAbsent));
  updates->set_excluded_other_sender(excluded(Exclusion::kOtherSender));
}

void FillMemory(const MemoryByCategory& bytes, v1::MemoryBytes* memory) {
  const auto of = [&bytes](MemoryCategory category) {
    return static_cast<uint64_t>(bytes[static_cast<size_t>(category)]);
  };
  memory->set_parameters(of(MemoryCategory::kParameters));
  memory->set_gradients(of(MemoryCategory::kGradients));
  memory->set_momentum(of(MemoryCategory::kMomentum));
  memory->set_gathered(of(MemoryCategory::kGathered));
  memory->set_workspace(of(MemoryCategory::kWorkspace));
}

void FillCollectives(const TimeByCollective& spent, v1::CollectiveSeconds* collectives) {
  const auto seconds = [&spent](CollectiveOp op) {
    return absl::ToDoubleSeconds(spent[static_cast<size_t>(op)]);
  };
  collectives->set_all_gather(seconds(CollectiveOp::kAllGather));
  collectives->set_reduce_scatter(seconds(CollectiveOp::kReduceScatter));
  collectives->set_all_to_all(seconds(CollectiveOp::kAllToAll));
  collectives->set_barrier(seconds(CollectiveOp::kBarrier));
}

void FillRetries(const TransferStats& transfer, RetriedRpc rpc, v1::RetryCounts* counts) {
  const auto count = [&transfer, rpc](absl::StatusCode code) {
    return transfer.retries[static_cast<int>(rpc)][RetryCodeIndex(code)];
  };
  counts->set_unavailable(count(absl::StatusCode::kUnavailable));
  counts->set_deadline_exceeded(count(absl::StatusCode::kDeadlineExceeded));
  counts->set_resource_exhausted(count(absl::StatusCode::kResourceExhausted));
  counts->set_failed_precondition(count(absl::StatusCode::kFailedPrecondition));
  counts->set_cancelled(count(absl::StatusCode::kCancelled));
  counts->set_internal(count(absl::StatusCode::kInternal));
  counts->set_unknown(count(absl::StatusCode::kUnknown));
  counts->set_other(transfer.retries[static_cast<int>(rpc)][kRetryCodes - 1]);
}

void FillTransfer(const TransferStats& stats, v1::TransferTelemetry* transfer) {
  transfer->set_upload_seconds(absl::ToDoubleSeconds(stats.upload_time));
  transfer->set_download_seconds(absl::ToDoubleSeconds(stats.download_time));
  transfer->set_sent_control_bytes(stats.sent_control_bytes);
  transfer->set_received_control_bytes(stats.received_control_bytes);
  transfer->set_received_snapshot_bytes(stats.received_snapshot_bytes);
  *transfer->mutable_upload_durations() = stats.upload_durations;
  *transfer->mutable_download_durations() = stats.download_durations;
  if (stats.upload_bytes_per_second) transfer->set_upload_capacity(*stats.upload_bytes_per_second);
  if (stats.download_bytes_per_second)
    transfer->set_download_capacity(*stats.download_bytes_per_second);
  if (stats.round_trip) transfer->set_rtt_seconds(absl::ToDoubleSeconds(*stats.round_trip));
  transfer->set_mirror_bytes(stats.mirror_bytes);
  transfer->set_mirror_failures(stats.mirror_failures);
  transfer->set_reconnects(stats.reconnects);
  FillRetries(stats, RetriedRpc::kJoin, transfer->mutable_join_retries());
  FillRetries(stats, RetriedRpc::kHeartbeat, transfer->mutable_heartbeat_retries());
  FillRetries(stats, RetriedRpc::kUpload, transfer->mutable_upload_retries());
  FillRetries(stats, RetriedRpc::kSnapshot, transfer->mutable_snapshot_retries());
}

void FillDeltas(const DeltaReadings& readings, v1::DeltaTelemetry* deltas) {
  deltas->set_inner_steps(readings.inner_steps);
  if (readings.delta_norm) deltas->set_delta_norm(*readings.delta_norm);
  if (readings.energy_kept) deltas->set_energy_kept(*readings.energy_kept);
  if (readings.capped) deltas->set_capped(*readings.capped);
  if (readings.cancelled) deltas->set_cancelled(*readings.cancelled);
}

// Readings of the training thread after a round, except phases and transfers, which are read at any
// time.
void FillTraining(const TrainSummary& summary, v1::WorkerTelemetry* telemetry) {
  telemetry->set_version(std::string(Version()));
  telemetry->set_tokens(summary.tokens);
  telemetry->set_nonfinite_steps(summary.nonfinite_steps);
  telemetry->set_resyncs(summary.resyncs);
  FillUpdates(summary, telemetry->mutable_updates());
  if (summary.deltas) FillDeltas(*summary.deltas, telemetry->mutable_deltas());
  FillMemory(summary.memory, telemetry->mutable_compute()->mutable_memory());
  FillCollectives(summary.collectives, telemetry->mutable_compute()->mutable_collectives());
  if (summary.last_evaluation_loss) telemetry->set_evaluation_loss(*summary.last_evaluation_loss);
  if (summary.last_own_evaluation_loss)
    telemetry->set_own_evaluation_loss(*summary.last_own_evaluation_loss);
  if (summary.training_loss) telemetry->set_loss(*summary.training_loss);
  if (summary.gradient_norm) telemetry->set_gradient_norm(*summary.gradient_norm);
  if (summary.learning_rate) telemetry->set_learning_rate(*summary.learning_rate);
  if (summary.momentum_norm) telemetry->set_momentum_norm(*summary.momentum_norm);
}

void FillGpus(const std::vector<GpuReading>& gpus, v1::WorkerTelemetry* telemetry) {
  for (const GpuReading& gpu : gpus) {
    v1::GpuTelemetry* reading = telemetry->add_gpus();
    reading->set_index(gpu.index);
    if (gpu.memory_used_bytes) reading->set_memory_used_bytes(*gpu.memory_used_bytes);
    if (gpu.memory_total_bytes) reading->set_memory_total_bytes(*gpu.memory_total_bytes);
    if (gpu.utilization) reading->set_utilization(*gpu.utilization);
  }
}

// Phases and transfers of one moment. Waiting is split by the network's activity; the undecided
// part of a wait is in no phase yet.
void FillTime(const std::array<absl::Duration, kPhases>& spent, const TransferStats& transfer,
              v1::WorkerTelemetry* telemetry) {
  const auto seconds = [&spent](Phase phase) {
    return absl::ToDoubleSeconds(spent[static_cast<int>(phase)]);
  };
  const double upload = absl::ToDoubleSeconds(transfer.wait_in_upload);
  const double download = absl::ToDoubleSeconds(transfer.wait_in_download);
  const double others =
      seconds(Phase::kWait) - upload - download - absl::ToDoubleSeconds(transfer.wait_undecided);
  v1::PhaseSeconds* phases = telemetry->mutable_phases();
  phases->set_idle(seconds(Phase::kIdle));
  phases->set_data(seconds(Phase::kData));
  phases->set_forward_backward(seconds(Phase::kForwardBackward));
  phases->set_compress(seconds(Phase::kCompress));
  phases->set_upload(upload);
  phases->set_download(download);
  phases->set_wait(std::max(others, 0.0));
  phases->set_apply(seconds(Phase::kApply));
  phases->set_evaluate(seconds(Phase::kEvaluate));
  phases->set_checkpoint(seconds(Phase::kCheckpoint));
  telemetry->set_sent_bytes(transfer.sent_payload_bytes);
  telemetry->set_received_bytes(transfer.received_payload_bytes);
  FillTransfer(transfer, telemetry->mutable_transfer());
}

}  // namespace

WorkerTelemetry::WorkerTelemetry(const PhaseClock* phases) : phases_(phases) {
  training_.set_version(std::string(Version()));
}

void WorkerTelemetry::SetTransfers(std::function<TransferStats()> read) {
  absl::MutexLock lock(&mu_);
  read_transfers_ = std::move(read);
}

void WorkerTelemetry::SetCompute(const ComputeRates& rates) {
  absl::MutexLock lock(&mu_);
  rates_ = rates;
}

void WorkerTelemetry::SetGpus(const GpuReader* gpus) {
  absl::MutexLock lock(&mu_);
  gpus_ = gpus;
}

void WorkerTelemetry::Update(const TrainSummary& summary) {
  absl::MutexLock lock(&mu_);
  next_round_ = summary.next_round;
  uncounted_ = summary.uncounted;
  failed_checkpoints_ = summary.failed_checkpoints;
  failed_saves_ = summary.failed_saves;
  v1::WorkerTelemetry next;
  FillTraining(summary, &next);
  next.set_dropped_values(training_.dropped_values());
  const int dropped = RepairTelemetry(training_, &next);
  next.set_dropped_values(next.dropped_values() + static_cast<uint64_t>(dropped));
  training_ = std::move(next);
}

std::vector<GpuReading> WorkerTelemetry::ReadGpus() {
  const GpuReader* gpus = nullptr;
  {
    absl::MutexLock lock(&mu_);
    gpus = gpus_;
  }
  return gpus == nullptr ? std::vector<GpuReading>() : gpus->Read();
}

void WorkerTelemetry::Read(const std::vector<GpuReading>& gpus) {
  if (read_transfers_) transfers_ = read_transfers_();
  v1::WorkerTelemetry now = training_;
  FillTime(phases_->Spent(), transfers_, &now);
  now.mutable_compute()->set_model_flops(rates_.flops_per_token *
                                         static_cast<double>(now.tokens()));
  if (rates_.peak_flops_per_second > 0)
    now.mutable_compute()->set_peak_flops_per_second(rates_.peak_flops_per_second);
  FillGpus(gpus, &now);
  // Clocks and counters are not read atomically, so a difference may be too small by microseconds.
  RepairTelemetry(shown_, &now);
  shown_ = std::move(now);
}

v1::WorkerTelemetry WorkerTelemetry::Telemetry() {
  const std::vector<GpuReading> gpus = ReadGpus();
  absl::MutexLock lock(&mu_);
  Read(gpus);
  return shown_;
}

}  // namespace distro::worker
