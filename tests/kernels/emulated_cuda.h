// The code of kernels/cuda's blocks run on the CPU, thread after thread, phase after phase, over shared memory that starts
// as NaN. It gives the bits that a GPU gives: nothing is contracted on either side (kernels/cuda/block.h). It shows the
// arithmetic, bounds and phases; not launches, barriers in the wrong place within a phase, or speed.
#pragma once

#include <cstdint>
#include <memory>

#include "kernels/backend.h"
#include "kernels/cpu/block.h"

namespace distro::testing {

std::unique_ptr<Backend> MakeEmulatedCudaBackend();

// u of one block, as reference::InverseInteger.
void EmulatedInverseInteger(const BlockVotes& votes, int32_t* u);

// reference::TopK: k positions, ascending, of coefficients in natural order, and the values there.
void EmulatedSelectLargest(const float* coefficients, int k, uint16_t* positions, float* values);

// The fused pass: Feedback of `used` and Compress. The spans of `used` cover the range with used_k entries a block.
void EmulatedFeedbackCompress(const MatrixShape& matrix, BlockRange blocks,
                              const CompressOptions& options, int used_k,
                              absl::Span<const uint16_t> used_positions,
                              absl::Span<const float> used_values, absl::Span<const float> gradient,
                              absl::Span<float> momentum, absl::Span<uint16_t> positions,
                              absl::Span<float> values);

}  // namespace distro::testing
