// What a worker reports of itself, put together from its parts (docs/metrics.md, "Worker"). Pure.
#pragma once

#include <array>
#include <vector>

#include "absl/time/time.h"
#include "common/exchange/transfer_stats.h"
#include "distro/v1/telemetry.pb.h"
#include "worker/gpu_readings.h"
#include "worker/train/phase_clock.h"
#include "worker/train/summary.h"

namespace distro::worker {

// What the training thread knows after a round: not its phases and transfers, which go on.
void FillTraining(const TrainSummary& summary, v1::WorkerTelemetry* telemetry);

// Phases and transfers of one moment: waiting is split by what the network did meanwhile. What is not decided of a wait is in
// no phase yet.
void FillTime(const std::array<absl::Duration, kPhases>& spent, const TransferStats& transfer,
              v1::WorkerTelemetry* telemetry);

void FillGpus(const std::vector<GpuReading>& gpus, v1::WorkerTelemetry* telemetry);

}  // namespace distro::worker
