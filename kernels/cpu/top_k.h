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
// The k-th largest maximum of parts of the block is a lower bound for the k-th largest coefficient.
// So for k <= 1024 only coefficients that reach it are examined: little more than k. For larger k
// all are.
void TopK(const TransformKernels& kernels, const float* coefficients, int k, TopKScratch* scratch,
          uint16_t* positions, float* values);

}  // namespace distro
