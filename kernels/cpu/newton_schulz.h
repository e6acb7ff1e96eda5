// Muon's step direction on the CPU (K. Jordan and others, "Muon", 2024): a polynomial iteration to
// a matrix with the singular vectors of u and singular values near 1. Local to a worker: ordinary
// f32 arithmetic, so the last bits differ between instruction sets.
//
//   NewtonSchulz(*SupportedVectorKernels().back().matrix, rows, cols, 5, absl::MakeSpan(u));
#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "kernels/cpu/vector_kernels.h"

namespace distro {

inline constexpr float kNewtonSchulzLinear = 3.4445f;
inline constexpr float kNewtonSchulzCubic = -4.7750f;
inline constexpr float kNewtonSchulzQuintic = 2.0315f;

// X <- 3.4445 X + (-4.7750 A + 2.0315 A A) X with A = X X^T, `steps` times from X = u / ||u||, the
// shorter side as rows. Zeros stay zeros.
//
//   u  f32 [rows, cols], row-major  in, out
void NewtonSchulz(const MatrixKernels& kernels, int64_t rows, int64_t cols, int steps,
                  absl::Span<float> u);

}  // namespace distro
