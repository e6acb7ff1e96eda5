// Finds the largest micro-batch that fits a worker's memory (--micro_batch_samples auto): first by
// the memory plan, then by computing a trial gradient.
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

// Divisors of `samples` that give each rank a micro-batch, descending; only 1 if there are fewer
// samples than ranks. Requires both above 0.
std::vector<int> MicroBatchCandidates(int samples, int ranks);

struct NodeOfMicroBatch {
  std::unique_ptr<Node> node;
  int samples = 0;  // of a micro-batch
};

// Returns the node of the first candidate for which `make` and `try_step` succeed. After
// ResourceExhausted, logs the status, destroys the node and tries the next candidate; if none fits,
// returns the last status. Other errors end the search. Requires at least one candidate.
absl::StatusOr<NodeOfMicroBatch> FindLargestMicroBatch(
    absl::Span<const int> candidates,
    absl::FunctionRef<absl::StatusOr<std::unique_ptr<Node>>(int samples)> make,
    absl::FunctionRef<absl::Status(Node* node, int samples)> try_step, Log* log);

// Computes a trial gradient of `samples` arbitrary samples at each rank, at the current parameters;
// the next gradient overwrites it. ResourceExhausted: a device's memory was not enough, or the
// process had more than `memory_bytes` resident meanwhile. If the kernel cannot reset an earlier,
// higher peak, only the plan decides.
absl::Status TakeTrialGradient(Node* node, int samples, int sequence_length, int64_t memory_bytes);

}  // namespace distro::worker
