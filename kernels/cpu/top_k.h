// Exact selection of the k largest coefficients of a block.
#pragma once

#include <cstdint>

#include "common/model/layout/matrix.h"
#include "kernels/cpu/vector_kernels.h"

namespace distro {

// Scratch memory for one block.
struct TopKScratch {
  uint64_t keys[kBlockElements];
};

// Writes the k positions (ascending) of largest magnitude and the coefficients there. Ties go to
// the lower position; a NaN counts as larger than any number.
//
// For k <= kMaxParts (largest.h) little more than k coefficients are examined, for larger k all.
void TopK(const TransformKernels& kernels, const float* coefficients, int k, TopKScratch* scratch,
          uint16_t* positions, float* values);

}  // namespace distro
