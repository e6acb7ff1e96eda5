// What a worker process writes besides its state and its checkpoints: lines, samples, the summary.
// All outputs are tried before the worker joins, so that none is found unwritable after the work.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/log.h"
#include "distro/v1/session.pb.h"
#include "worker/local_identity.h"
#include "worker/metrics/round_lines.h"
#include "worker/options.h"
#include "worker/train/node_workload.h"
#include "worker/train/sample_writer.h"
#include "worker/train/summary.h"

namespace distro::worker {

// The statuses of TryOutputFolder and TryOutputFile for --checkpoint_dir and --summary; the message
// begins with the flag. StateDir and OpenRoundLines try the others.
absl::Status TryOutputs(const WorkerOptions& options);

// nullptr: no lines are written. Statuses of RoundLines::Open, after "--metrics_file".
absl::StatusOr<std::unique_ptr<RoundLines>> OpenRoundLines(const WorkerOptions& options, Log* log);

// nullopt: no samples are requested. Statuses of SampleWriter::Create.
absl::StatusOr<std::optional<SampleWriter>> MakeSampleWriter(const WorkerOptions& options,
                                                             const LocalIdentity& identity,
                                                             const v1::JoinResponse& run,
                                                             NodeWorkload* workload, Log* log);

// Prints the summary, and writes it to --summary. Logs a failure and returns its status.
absl::Status Report(const WorkerOptions& options, const TrainSummary& summary, Log* log);

}  // namespace distro::worker
