// The largest micro-batch that fits a worker's memory (--micro_batch_samples auto): the plan says
// which may, and a gradient that is taken says whether it does.
//
//   FindLargestMicroBatch(MicroBatchCandidates(samples, ranks), make, TakeTrialGradient...)
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/log.h"
#include "worker/node/node.h"

namespace distro::worker {

// Divisors of `samples` that leave a micro-batch to each rank, descending; 1 alone where there are
// fewer samples than ranks. Requires both above 0.
std::vector<int> MicroBatchCandidates(int samples, int ranks);

struct NodeOfMicroBatch {
  std::unique_ptr<Node> node;
  int samples = 0;  // of a micro-batch
};

// The node of the first candidate that `make` can make and `try_step` is OK for. One that is
// ResourceExhausted makes room for the next, and its status is logged; that of the last is the
// answer when none fits. Other errors end it. Requires a candidate.
absl::StatusOr<NodeOfMicroBatch> FindLargestMicroBatch(
    absl::Span<const int> candidates,
    absl::FunctionRef<absl::StatusOr<std::unique_ptr<Node>>(int samples)> make,
    absl::FunctionRef<absl::Status(Node* node, int samples)> try_step, Log* log);

// Takes a gradient of `samples` at each rank, of some tokens, at the parameters as they are; the
// next one forgets it. ResourceExhausted: a device's memory did not do, or the process had more
// than `memory_bytes` resident while it was taken. Where the kernel does not forget an earlier peak
// of more than that, the plan alone decides.
absl::Status TakeTrialGradient(Node* node, int samples, int sequence_length, int64_t memory_bytes);

}  // namespace distro::worker
