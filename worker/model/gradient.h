// The trainer's own loop over the units: forward in order, backward in reverse with one autograd
// call a unit. Between units the graph is cut, so nothing but the units' outputs joins them; a
// unit's graph (and what it saved) is freed as soon as its backward is done. No state; thread-safe.
// Throws Torch's exceptions.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "worker/model/unit.h"

namespace distro::worker {

using Units = absl::Span<const std::unique_ptr<Unit>>;

// A complete gradient: index into the manifest, and d loss / d tensor.
using TensorGradient = std::pair<int, at::Tensor>;

// Where the loop gets parameters and leaves gradients. An error ends the loop with it. Called with
// autograd switched off, in a fixed order: that of UnitUses for Acquire and Release.
class UnitHooks {
 public:
  virtual ~UnitHooks() = default;

  // The tensors of units[unit].tensors(), in that order. Their memory is used until Release(unit);
  // tensors that alias it stay in graphs beyond that, so when it is acquired again it has to hold
  // the same values at the same offsets of the same storage.
  virtual absl::StatusOr<std::vector<at::Tensor>> Acquire(int unit) = 0;
  virtual absl::Status Release(int unit) = 0;

  // After backward through a unit and its Release: the gradients that are complete now. A tensor
  // that several units share is complete at the first that uses it: its parts are summed in the
  // order in which backward makes them, the head's first.
  virtual absl::Status TakeGradients(int unit, std::vector<TensorGradient> gradients) = 0;
};

// Which units are acquired, one after another: 0..n-1 forward, and with backward n-2..0 after it;
// the last unit is kept between the two.
std::vector<int> UnitUses(int units, bool backward);

// Forward without gradients: the last unit's output.
absl::StatusOr<at::Tensor> Forward(Units units, const Batch& batch, UnitHooks& hooks);

// Whether forward keeps only the unit's input, and backward computes the unit again: every n-th
// from the first on, never the last, whose backward follows at once. 0: none.
inline bool IsCheckpointed(int unit, int units, int checkpoint_every) {
  return checkpoint_every > 0 && unit % checkpoint_every == 0 && unit + 1 < units;
}

// The loss of a batch with labels; gradients go to the hooks. With one Torch thread the same input
// gives the same bits, for every checkpoint_every.
absl::StatusOr<double> LossAndGradient(Units units, const Batch& batch, int checkpoint_every,
                                       UnitHooks& hooks);

}  // namespace distro::worker
