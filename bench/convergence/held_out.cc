#include "bench/convergence/held_out.h"

#include <algorithm>

#include "common/base/status_macros.h"

namespace distro::worker {

absl::StatusOr<double> HeldOut::Loss(const TensorBuffer& parameters) {
  const uint64_t available = samples_.held_out_samples();
  const uint64_t limit = config_.evaluation_samples();
  const uint64_t count = limit == 0 ? available : std::min(limit, available);
  const uint64_t batch = config_.samples_per_worker();
  double sum = 0;
  for (uint64_t first = 0; first < count; first += batch) {
    const int sequences = static_cast<int>(std::min(batch, count - first));
    DISTRO_RETURN_IF_ERROR(samples_.ReadHeldOut(first, sequences, &tokens_));
    DISTRO_ASSIGN_OR_RETURN(const double loss,
                            model_.Loss({.tokens = tokens_, .sequences = sequences}, parameters));
    sum += loss * sequences;
  }
  return sum / static_cast<double>(count);
}

}  // namespace distro::worker
