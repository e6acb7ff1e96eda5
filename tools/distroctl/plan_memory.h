// Plans the memory of a worker, with each way to shard the model over the GPUs of its node, by the
// worker's own code: worker/plan/memory_plan.h. Pure.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "common/model/architecture.h"
#include "common/model/layout/layout.h"
#include "distro/v1/run.pb.h"
#include "tools/distroctl/plan.h"
#include "tools/distroctl/plan_report.h"

namespace distro::tools {

// One entry for each way to shard: the GPU that needs most, and whether it is enough. `config` is
// complete, `options` are valid. InvalidArgument: as worker::PlanMemory.
absl::StatusOr<std::vector<PlanMemory>> PlanMemories(const v1::RunConfig& config,
                                                     const Architecture& model,
                                                     const Layout& layout,
                                                     const PlanOptions& options);

}  // namespace distro::tools
