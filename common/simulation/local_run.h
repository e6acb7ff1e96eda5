// Creates a run for a LocalAggregator from files, as `distroctl run create` does. Blocking.
#pragma once

#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "common/model/layout/layout.h"
#include "common/model/layout/tensor_buffer.h"
#include "common/simulation/local_aggregator.h"
#include "distro/v1/run.pb.h"

namespace distro {

// Writes the initial snapshot of the checkpoint folder to `snapshot_path`, a file that must outlive
// the LocalAggregator. `state_hash` computes the hash of the model's parameters: pass
// StateHashOnCpu of kernels/replica, on which common may not depend. Statuses as
// PrepareInitialSnapshot; InvalidArgument: the configuration does not fit the model's layout.
using StateHashOf =
    absl::FunctionRef<uint64_t(const Layout& layout, const TensorBuffer& parameters)>;
absl::StatusOr<LocalRun> MakeLocalRun(const v1::RunConfig& config,
                                      const std::string& checkpoint_dir,
                                      const std::string& snapshot_path, StateHashOf state_hash);

}  // namespace distro
