// Loss on the samples that are never trained on. Stateless.
#pragma once

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/node/node.h"
#include "worker/train/sample_reader.h"

namespace distro::worker {

// Mean loss, nats a token, of the first `max_samples` held-out samples (0: of all) at the node's
// parameters, `batch_samples` at a time on each rank; how many ranks there are changes no bit of
// it. InvalidArgument: there is no held-out sample. The status of `goes_on`, which is asked before
// every round of batches, when it is not OK. Other errors: as Node.
absl::StatusOr<double> EvaluateHeldOut(Node* node, const SampleReader& samples,
                                       uint64_t max_samples, int batch_samples,
                                       absl::FunctionRef<absl::Status()> goes_on);

}  // namespace distro::worker
