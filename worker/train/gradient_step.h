// The gradient of one step (docs/algorithm.md, "A worker's step"): micro-batches of a slot's
// samples at the parameters, or at the lookahead copy when steps overlap. Micro-batch j is computed
// by rank j mod R, a round of R at a time.
//
// Not thread-safe: the training thread owns it. What it borrows outlives it.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "distro/v1/round.pb.h"
#include "distro/v1/run.pb.h"
#include "worker/node/node.h"
#include "worker/train/phase_clock.h"
#include "worker/train/sample_reader.h"

namespace distro::worker {

// A gradient that no upload has used yet; the node holds it.
struct Gradient {
  double loss = 0;  // mean over the samples, nats a token
  double norm = 0;  // before clipping
  bool finite = true;
  int local_steps = 0;    // that were begun, and whose samples were read
  int skipped_steps = 0;  // of these, not finite
};

class GradientStep {
 public:
  struct Parts {
    Node* node;
    const SampleReader* samples;
    PhaseClock* phases;
    // Asked before every round of micro-batches: an error drops the gradient.
    std::function<absl::Status()> goes_on;
  };

  // Requires a micro-batch that divides every slot. Each gradient takes `hold_back` longer.
  GradientStep(int micro_batch_samples, absl::Duration hold_back, Parts parts);

  // Over the slot's samples, at the parameters.
  absl::StatusOr<Gradient> Compute(const v1::Slot& slot);
  // The same at the lookahead copy, one step of `eta` ahead. Requires a node with such a copy.
  absl::StatusOr<Gradient> ComputeAhead(const v1::Slot& slot, float eta);
  // The local steps of a round of deltas: on a copy of the parameters, each over an equal part of
  // the slot's samples, in order; the first, and those that are over before `window_ends` if they
  // take as long as those before them (monotonic, of the phase clock; infinite: all). One whose
  // loss or norm is not finite changes nothing. The mean loss and the last norm of those that were
  // taken; not finite when none was. Requires samples that the steps divide, and a node with a
  // copy. Once a step was taken it is finished, whatever goes_on says, for the inner optimizer
  // cannot go back: so are the others where all are wanted, and none more within a window.
  absl::StatusOr<Gradient> TakeLocalSteps(const v1::Slot& slot, const v1::StepParameters& step,
                                          absl::Duration window_ends);

 private:
  absl::StatusOr<Gradient> ComputeAt(const v1::Slot& slot, GradientAt at);
  absl::Status Accumulate(const v1::Slot& slot, GradientAt at, double* loss);
  // Micro-batches [first, first + count) of the slot.
  absl::StatusOr<std::vector<double>> AccumulateRound(const v1::Slot& slot, GradientAt at,
                                                      int first, int count);

  const int micro_batch_samples_;
  const absl::Duration hold_back_;
  const Parts parts_;
  bool must_go_on_ = false;
  std::vector<std::vector<int32_t>> tokens_;  // [ranks], of the round's micro-batches
};

}  // namespace distro::worker
