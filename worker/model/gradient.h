// The loop over a model's units: forward in order, backward in reverse with one autograd call per
// unit. Units have separate graphs, connected only by their outputs, so a unit's graph and saved
// tensors are freed as soon as its backward is done. Stateless; thread-safe. Throws Torch's
// exceptions.
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

// Provides parameters to the loop and receives gradients. An error ends the loop. Called with
// autograd switched off, in a fixed order: that of UnitUses for Acquire and Release.
class UnitHooks {
 public:
  virtual ~UnitHooks() = default;

  // The tensors of units[unit].tensors(), in that order. Their memory is used until Release(unit).
  // Graphs keep aliases of it, so the next Acquire must provide the same values at the same offsets
  // of the same storage.
  virtual absl::StatusOr<std::vector<at::Tensor>> Acquire(int unit) = 0;
  virtual absl::Status Release(int unit) = 0;

  // Called after a unit's backward and Release with the gradients that are now complete. A tensor
  // shared by several units is complete at the first unit that uses it: its parts are summed in the
  // order of backward, the head's first.
  virtual absl::Status ReceiveGradients(int unit, std::vector<TensorGradient> gradients) = 0;
};

// The units in the order of their acquisition: 0..n-1 for forward, then n-2..0 for backward; the
// last unit is kept between the two.
std::vector<int> UnitUses(int units, bool backward);

// Forward without gradients: the last unit's output.
absl::StatusOr<at::Tensor> Forward(Units units, const Batch& batch, UnitHooks& hooks);

// Whether the unit is checkpointed: forward keeps only its input, and backward recomputes it. Every
// n-th unit from the first is, but never the last, whose backward follows at once. 0: none.
inline bool IsCheckpointed(int unit, int units, int checkpoint_every) {
  return checkpoint_every > 0 && unit % checkpoint_every == 0 && unit + 1 < units;
}

// The loss of a batch with labels; passes gradients to the hooks. The loss is read, which waits for
// the device, when all of the backward pass is enqueued. With one Torch thread the same
// input gives the same bits, for every checkpoint_every.
absl::StatusOr<double> LossAndGradient(Units units, const Batch& batch, int checkpoint_every,
                                       UnitHooks& hooks);

}  // namespace distro::worker
