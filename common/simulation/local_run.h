// A run for a LocalAggregator, made from files as `distroctl run create` would. Blocking.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "common/simulation/local_aggregator.h"
#include "distro/v1/run.pb.h"

namespace distro {

// Writes the initial snapshot of the checkpoint folder to `snapshot_path`, which must outlive the
// LocalAggregator. Statuses as PrepareInitialSnapshot; InvalidArgument: the configuration does not
// fit the model's layout.
absl::StatusOr<LocalRun> MakeLocalRun(const v1::RunConfig& config,
                                      const std::string& checkpoint_dir,
                                      const std::string& snapshot_path);

}  // namespace distro
