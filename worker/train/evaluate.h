// Evaluates the loss on held-out samples. Stateless.
#pragma once

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/node/node.h"
#include "worker/train/sample_reader.h"

namespace distro::worker {

// Mean loss in nats per token of the first `max_samples` held-out samples (0: all) at the node's
// parameters, `batch_samples` at a time on each rank. The bits do not depend on the number of
// ranks. InvalidArgument: there is no held-out sample. Returns an error of `goes_on`, which is
// called before every round of batches. Other errors: as Node and SampleReader.
absl::StatusOr<double> EvaluateHeldOut(Node* node, const SampleReader& samples,
                                       uint64_t max_samples, int batch_samples,
                                       absl::FunctionRef<absl::Status()> goes_on);

}  // namespace distro::worker
