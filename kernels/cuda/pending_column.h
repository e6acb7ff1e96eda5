// The inverse transform of a block's pending coefficients along one column, which one thread holds in registers.
//
//   x[r] = sum over h of D[h][r] * (sum over entries of row h of value * D[w][column])
//
// Even frequencies are equal and odd ones opposite in the two halves of the column, so 32 multiply-adds a row do.
#pragma once

#include "kernels/cuda/block.h"

namespace distro::cuda {

// Entries of a range of blocks, on the device: what Compress gave.
struct PendingEntries {
  int k = 0;
  const uint16_t* positions = nullptr;  // [count, k], ascending within a block
  const float* values = nullptr;        // [count, k]
};

// All threads of a block walk through the same entries.
constexpr void PendingColumn(const PendingEntries& pending, int64_t block, int column,
                             const HalfBasis<float>& basis, float (&x)[64]) {
  float even[32] = {}, odd[32] = {};
  const uint16_t* positions = pending.positions + block * pending.k;
  const float* values = pending.values + block * pending.k;
  const int sample = column < 32 ? column : 63 - column;
  float sum = 0;
  for (int i = 0; i < pending.k; ++i) {
    const int row = positions[i] >> 6 & 63;
    const int frequency = positions[i] & 63;
    const float value = values[i];
    const bool opposite = column >= 32 && frequency % 2 == 1;
    sum = Fma(opposite ? -value : value, basis.at[frequency * 32 + sample], sum);
    if (i + 1 < pending.k && (positions[i + 1] >> 6 & 63) == row) continue;
    const float* factors = basis.at + row * 32;
    if (row % 2 == 0) {
      for (int r = 0; r < 32; ++r) even[r] = Fma(factors[r], sum, even[r]);
    } else {
      for (int r = 0; r < 32; ++r) odd[r] = Fma(factors[r], sum, odd[r]);
    }
    sum = 0;
  }
  for (int r = 0; r < 32; ++r) {
    x[r] = even[r] + odd[r];
    x[63 - r] = even[r] - odd[r];
  }
}

}  // namespace distro::cuda
