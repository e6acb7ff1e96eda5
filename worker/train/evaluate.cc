#include "worker/train/evaluate.h"

#include <algorithm>
#include <vector>

#include "absl/status/status.h"
#include "common/base/status_macros.h"

namespace distro::worker {

absl::StatusOr<double> EvaluateHeldOut(Node* node, const SampleReader& samples,
                                       uint64_t max_samples, int batch_samples,
                                       absl::FunctionRef<absl::Status()> goes_on) {
  const uint64_t available = samples.held_out_samples();
  const uint64_t count = max_samples == 0 ? available : std::min(max_samples, available);
  if (count == 0) {
    return absl::InvalidArgumentError(
        "there is no held-out sample to evaluate: raise held_out_fraction or use a longer text");
  }
  double sum = 0;
  std::vector<std::vector<int32_t>> tokens(node->ranks());
  for (uint64_t first = 0; first < count;) {
    DISTRO_RETURN_IF_ERROR(goes_on());
    std::vector<TokenBatch> batches;
    for (; batches.size() < tokens.size() && first < count; first += batch_samples) {
      const int batch = static_cast<int>(std::min<uint64_t>(batch_samples, count - first));
      std::vector<int32_t>& own = tokens[batches.size()];
      DISTRO_RETURN_IF_ERROR(samples.ReadHeldOut(first, batch, &own));
      batches.push_back({.tokens = own, .sequences = batch});
    }
    DISTRO_ASSIGN_OR_RETURN(const std::vector<double> losses, node->Losses(batches));
    for (size_t i = 0; i < losses.size(); ++i) sum += losses[i] * batches[i].sequences;
  }
  return sum / static_cast<double>(count);
}

}  // namespace distro::worker
