// A run for a LocalAggregator, made from files as `distroctl run create` would. Blocking.
#pragma once

#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "common/layout/layout.h"
#include "common/layout/tensor_buffer.h"
#include "common/simulation/local_aggregator.h"
#include "distro/v1/run.pb.h"

namespace distro {

// Writes the initial snapshot of the checkpoint folder to `snapshot_path`, which must outlive the
// LocalAggregator. `state_hash` gives that of the model's parameters: StateHashOnCpu of
// kernels/replica, which common does not know. Statuses as PrepareInitialSnapshot; InvalidArgument:
// the configuration does not fit the model's layout.
using StateHashOf =
    absl::FunctionRef<uint64_t(const Layout& layout, const TensorBuffer& parameters)>;
absl::StatusOr<LocalRun> MakeLocalRun(const v1::RunConfig& config,
                                      const std::string& checkpoint_dir,
                                      const std::string& snapshot_path, StateHashOf state_hash);

}  // namespace distro
