#include "worker/train/micro_batch.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/process/host_memory.h"
#include "common/base/status_macros.h"

namespace distro::worker {

std::vector<int> MicroBatchCandidates(int samples, int ranks) {
  std::vector<int> candidates;
  for (int size = samples; size >= 1; --size) {
    if (samples % size == 0 && (samples / size >= ranks || size == 1)) candidates.push_back(size);
  }
  return candidates;
}

absl::StatusOr<NodeOfMicroBatch> FindLargestMicroBatch(
    absl::Span<const int> candidates,
    absl::FunctionRef<absl::StatusOr<std::unique_ptr<Node>>(int samples)> make,
    absl::FunctionRef<absl::Status(Node* node, int samples)> try_step, Log* log) {
  absl::Status status;
  for (const int samples : candidates) {
    absl::StatusOr<std::unique_ptr<Node>> node = make(samples);
    status = node.ok() ? try_step(node->get(), samples) : node.status();
    if (status.ok()) {
      log->Info("micro-batch chosen", {{"micro_batch_samples", samples}});
      return NodeOfMicroBatch{*std::move(node), samples};
    }
    if (!absl::IsResourceExhausted(status)) return status;
    log->Info("micro-batch does not fit", {{"micro_batch_samples", samples}, {"reason", status}});
  }
  return status;
}

absl::Status TakeTrialGradient(Node* node, int samples, int sequence_length, int64_t memory_bytes) {
  const std::vector<int32_t> tokens(static_cast<size_t>(samples) * (sequence_length + 1));
  const std::vector<TokenBatch> batches(node->ranks(), {.tokens = tokens, .sequences = samples});
  ForgetPeakResidentBytes();
  const bool measures = PeakResidentBytes() <= memory_bytes;
  DISTRO_RETURN_IF_ERROR(
      node->GradientRound(batches, GradientAt::kParameters, /*first=*/true).status());
  const int64_t peak = PeakResidentBytes();
  if (!measures || peak <= memory_bytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "a gradient of ", samples, " samples a rank had ", peak, " bytes resident, of ", memory_bytes,
      " that the worker may use: take a smaller --micro_batch_samples, or raise "
      "--memory_limit_bytes"));
}

}  // namespace distro::worker
