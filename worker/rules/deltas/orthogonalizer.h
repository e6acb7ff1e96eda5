// Orthogonalizes whole matrices for Muon on one device, by Newton-Schulz
// (kernels/cpu/newton_schulz.h), and allocates their memory. WholeMatrices decides which rank
// handles which matrix.
//
//   DISTRO_ASSIGN_OR_RETURN(SharedFloats u, orthogonalizer->Allocate(rows * cols));
//   orthogonalizer->NewtonSchulz(rows, cols, /*iterations=*/5, {u.floats()});
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace distro::worker {

// Floats with shared ownership: another rank may still read them after their rank has ended. Copies
// share the floats.
class SharedFloats {
 public:
  // `owner` keeps the memory.
  SharedFloats(absl::Span<float> floats, std::shared_ptr<const void> owner)
      : floats_(floats), owner_(std::move(owner)) {}

  absl::Span<float> floats() const { return floats_; }
  const std::shared_ptr<const void>& owner() const { return owner_; }

 private:
  absl::Span<float> floats_;
  std::shared_ptr<const void> owner_;
};

class Orthogonalizer {
 public:
  virtual ~Orthogonalizer() = default;

  // Allocates uninitialised memory where the rule's state is. ResourceExhausted: no memory.
  virtual absl::StatusOr<SharedFloats> Allocate(int64_t elements) = 0;
  // Each u <- a matrix of its singular vectors, with singular values near 1; zeros stay zeros.
  // Enqueued.
  //
  //   us  each f32 [rows, cols], row-major, of Allocate's memory  in, out
  virtual absl::Status NewtonSchulz(int64_t rows, int64_t cols, int iterations,
                                    absl::Span<const absl::Span<float>> us) = 0;
  // Elements of several matrices that are better taken at once, at most (MatrixWaves).
  virtual int64_t batch_elements() const = 0;
};

// In the host's memory, by the fastest kernels of this CPU.
std::unique_ptr<Orthogonalizer> MakeCpuOrthogonalizer();

}  // namespace distro::worker
