// Arithmetic of the deltas method's inner optimizer on float arrays of one device
// (docs/algorithm.md, "Deltas"): the steps of AdamW and Muon, except Muon's operation on whole
// matrices (orthogonalizer.h); the total movement, and its clipping (delta_clip). Local to a
// worker: ordinary float arithmetic, backends differ in the last bits.
//
//   inner->AdamW(step, gradient, first, second, x);
//   inner->MakeDirection(mu, scale, gradient, buffer, direction);  // Muon; orthogonalize; then
//   inner->MoveAlong(move, direction, x);
//
// Arrays of a call have the same size and are in device memory. Operations are enqueued, as those
// of kernels/backend.h; a status is the device's, for example when it has no memory.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace distro::worker {

struct AdamWStep {
  uint64_t count = 1;  // of the step, from 1: for the correction of the moments
  float rate = 0;
  float gradient_scale = 1;
  float beta1 = 0;
  float beta2 = 0;
  float epsilon = 0;
  float weight_decay = 0;
};

struct MuonMove {
  float rate = 0;
  float scale = 1;  // of the direction
  float weight_decay = 0;
};

class InnerBackend {
 public:
  virtual ~InnerBackend() = default;

  // Decoupled weight decay, Loshchilov and Hutter, arXiv 1711.05101, algorithm 2, with g =
  // gradient_scale * gradient. The gradient's content is lost.
  virtual absl::Status AdamW(const AdamWStep& step, absl::Span<float> gradient,
                             absl::Span<float> first, absl::Span<float> second,
                             absl::Span<float> x) = 0;
  // buffer <- mu * buffer + g; direction <- g + mu * buffer, with g = gradient_scale * gradient.
  virtual absl::Status MakeDirection(float mu, float gradient_scale,
                                     absl::Span<const float> gradient, absl::Span<float> buffer,
                                     absl::Span<float> direction) = 0;
  // x <- x - rate * (scale * direction + weight_decay * x).
  virtual absl::Status MoveAlong(const MuonMove& move, absl::Span<const float> direction,
                                 absl::Span<float> x) = 0;

  // out <- a - b.
  virtual absl::Status Subtract(absl::Span<const float> a, absl::Span<const float> b,
                                absl::Span<float> out) = 0;
  // to <- from + scale * (to - from).
  virtual absl::Status ScaleFrom(float scale, absl::Span<const float> from,
                                 absl::Span<float> to) = 0;
};

// In the host's memory. An element's result does not depend on where it is in its array.
std::unique_ptr<InnerBackend> MakeCpuInnerBackend();

}  // namespace distro::worker
