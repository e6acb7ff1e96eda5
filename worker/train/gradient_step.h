// The gradient of one step (docs/algorithm.md, "A worker's step"): micro-batches of a slot's samples at the parameters, or at
// the lookahead copy when steps overlap.
//
// Not thread-safe: the training thread owns it. What it borrows outlives it.
#pragma once

#include <functional>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/layout/tensor_buffer.h"
#include "distro/v1/run.pb.h"
#include "worker/model/model.h"
#include "worker/optimizer/optimizer.h"
#include "worker/train/phase_clock.h"
#include "worker/train/sample_reader.h"

namespace distro::worker {

// A gradient that no upload has used yet; the step's buffer holds it when it is finite.
struct Gradient {
  double loss = 0;  // mean over the samples, nats a token
  double norm = 0;  // before clipping
  bool finite = true;
};

class GradientStep {
 public:
  struct Parts {
    const Model* model;
    const SampleReader* samples;
    const Optimizer* optimizer;
    PhaseClock* phases;
    // Asked before every micro-batch: an error drops the gradient.
    std::function<absl::Status()> goes_on;
  };

  // `overlap`: keeps a lookahead copy. Requires a micro-batch that divides every slot.
  GradientStep(const Layout& layout, int micro_batch_samples, bool overlap, Parts parts);

  bool overlap() const { return lookahead_.has_value(); }

  // Over the slot's samples, at `parameters`.
  absl::StatusOr<Gradient> Compute(const v1::Slot& slot, const TensorBuffer& parameters);
  // The same at the lookahead copy, one step of `eta` ahead. Requires overlap().
  absl::StatusOr<Gradient> ComputeAhead(const v1::Slot& slot, float eta,
                                        const TensorBuffer& parameters);

  const TensorBuffer& buffer() const { return buffer_; }

 private:
  absl::Status Accumulate(const v1::Slot& slot, const TensorBuffer& parameters, double* loss);

  const int micro_batch_samples_;
  const Parts parts_;
  TensorBuffer buffer_;
  std::optional<TensorBuffer> lookahead_;
};

}  // namespace distro::worker
