// The worker's half of the optimizer (docs/algorithm.md, "A worker's step"): momentum, what is pending, and the three things
// that happen to them. Parameters belong to the Replica.
//
// Not thread-safe: the training thread owns it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/base/ids.h"
#include "common/layout/layout.h"
#include "common/layout/tensor_buffer.h"
#include "common/replica/committed_round.h"
#include "distro/v1/round.pb.h"
#include "kernels/backend.h"
#include "worker/optimizer/pending_update.h"

namespace distro::worker {

class Optimizer {
 public:
  // Momentum starts at 0. `layout` and `backend` are borrowed and outlive the optimizer.
  Optimizer(const Layout* layout, Backend* backend);

  // ||g|| over the whole model, f64 (docs/algorithm.md). Not finite when an element is not.
  double GradientNorm(const TensorBuffer& gradient) const;

  // m <- beta*m + eta * g * min(1, clip / norm); keeps the K strongest coefficients of every block as pending of `round` and encodes
  // them; returns the payloads [segments]. What was pending before counts as not included. `norm` is GradientNorm(gradient), finite.
  std::vector<SharedBytes> Compress(RoundId round, const v1::StepParameters& step,
                                    const TensorBuffer& gradient, double norm);

  // What is pending, or nullptr.
  const PendingUpdate* pending() const { return has_pending_ ? &pending_ : nullptr; }
  // Its payloads [segments], the bytes that Compress returned. Requires pending().
  std::vector<SharedBytes> EncodePending() const;
  // What is pending counts as not included: it stays in the momentum.
  void ForgetPending() { has_pending_ = false; }

  // Goes on where an earlier optimizer of this layout was. Requires a buffer, positions and values of the layout's shapes.
  void Restore(TensorBuffer momentum, std::optional<PendingUpdate> pending);

  // Error feedback: subtracts what was pending of this round from the momentum, in the segments whose bitmap includes
  // `member` (index into the header's members). Does nothing when another round, or nothing, is pending.
  void Feedback(const CommittedRound& round, int member);

  // out <- parameters - eta * sign(m) (docs/algorithm.md, overlap = 1).
  void Lookahead(float eta, const TensorBuffer& parameters, TensorBuffer* out) const;

  const TensorBuffer& momentum() const { return momentum_; }

 private:
  void CompressSegment(SegmentId segment, const CompressOptions& options,
                       const TensorBuffer& gradient);
  SharedBytes EncodeSegment(SegmentId segment) const;

  const Layout* const layout_;
  Backend* const backend_;
  TensorBuffer momentum_;
  PendingUpdate pending_;  // its memory is used again for the next update
  bool has_pending_ = false;
};

}  // namespace distro::worker
