#include "worker/train/evaluate.h"

#include <algorithm>
#include <vector>

#include "absl/status/status.h"
#include "common/base/status_macros.h"

namespace distro::worker {

absl::StatusOr<double> EvaluateHeldOut(const Model& model, const SampleReader& samples,
                                       const TensorBuffer& parameters, uint64_t max_samples,
                                       int batch_samples,
                                       absl::FunctionRef<absl::Status()> goes_on) {
  const uint64_t available = samples.held_out_samples();
  const uint64_t count = max_samples == 0 ? available : std::min(max_samples, available);
  if (count == 0) {
    return absl::InvalidArgumentError(
        "there is no held-out sample to evaluate: raise held_out_fraction or use a longer text");
  }
  double sum = 0;
  std::vector<int32_t> tokens;
  for (uint64_t first = 0; first < count; first += batch_samples) {
    DISTRO_RETURN_IF_ERROR(goes_on());
    const int batch = static_cast<int>(std::min<uint64_t>(batch_samples, count - first));
    samples.ReadHeldOut(first, batch, &tokens);
    DISTRO_ASSIGN_OR_RETURN(const double loss,
                            model.Loss({.tokens = tokens, .sequences = batch}, parameters));
    sum += loss * batch;
  }
  return sum / static_cast<double>(count);
}

}  // namespace distro::worker
