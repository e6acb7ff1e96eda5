// The trainer's own loop over the units: forward in order, backward in reverse with one autograd
// call a unit. Between units the graph is cut, so nothing but the units' outputs joins them; a
// unit's graph (and what it saved) is freed as soon as its backward is done. No state; thread-safe.
// Throws Torch's exceptions.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "worker/model/unit.h"

namespace distro::worker {

using Units = absl::Span<const std::unique_ptr<Unit>>;

// Forward without gradients: the last unit's output.
//
//   parameters  one a tensor of the manifest
at::Tensor Forward(Units units, absl::Span<const at::Tensor> parameters, const Batch& batch);

// Called once for each tensor that a unit uses, as soon as its gradient is complete, with autograd
// switched off.
using GradientSink = std::function<void(int tensor, const at::Tensor& gradient)>;

// The loss of a batch with labels, and d loss / d parameter into `sink`.
//
// A tensor that several units share (tied embeddings) is complete at the first unit that uses it:
// its parts are summed in the order in which backward makes them, the head's first. With one Torch
// thread the same input gives the same bits.
double LossAndGradient(Units units, absl::Span<const at::Tensor> parameters, const Batch& batch,
                       const GradientSink& sink);

}  // namespace distro::worker
