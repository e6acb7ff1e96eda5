// The forward transform of 64 samples that one thread holds in registers.
//
//   c[f] = sum over n of D[f][n] * x[n]
//
// N samples are folded about their middle into sums and differences. Odd frequencies are products
// with the differences (N/2 x N/2); even ones are the same task on the N/2 sums. Six folds leave
// 1366 multiply-adds instead of 4096, all with entries of the basis as immediate operands, and no
// more roundings in a chain than the CPU's two folds.
#pragma once

#include <utility>

#include "kernels/basis_entry.h"
#include "kernels/cuda/block.h"

namespace distro::cuda {

template <int kFrequency, int kSample>
inline constexpr float kEntry = BasisEntry(kFrequency, kSample);

// sum over n of D[kFrequency][n] * differences[kLast - n]
template <int kFrequency, int kLast, int... kSamples>
constexpr float Product(const float (&x)[64], std::integer_sequence<int, kSamples...>) {
  float sum = 0;
  ((sum = Fma(kEntry<kFrequency, kSamples>, x[kLast - kSamples], sum)), ...);
  return sum;
}

template <int kStep, typename Emit, int... kOdd>
constexpr void OddFrequencies(const float (&x)[64], const Emit& emit,
                              std::integer_sequence<int, kOdd...>) {
  constexpr int kCount = 64 / kStep;
  (emit(kStep * (2 * kOdd + 1), Product<kStep*(2 * kOdd + 1), kCount - 1>(
                                    x, std::make_integer_sequence<int, kCount / 2>())),
   ...);
}

// Calls emit(frequency, coefficient) for all multiples of kStep. x[0 .. 64/kStep) holds the folded
// samples; destroyed.
template <int kStep = 1, typename Emit>
constexpr void ForwardTransform(float (&x)[64], const Emit& emit) {
  constexpr int kCount = 64 / kStep;
  if constexpr (kCount == 1) {
    emit(0, kEntry<0, 0> * x[0]);
  } else {
    for (int n = 0; n < kCount / 2; ++n) {
      const float left = x[n], right = x[kCount - 1 - n];
      x[n] = left + right;
      x[kCount - 1 - n] = left - right;
    }
    OddFrequencies<kStep>(x, emit, std::make_integer_sequence<int, kCount / 2>());
    ForwardTransform<2 * kStep>(x, emit);
  }
}

// A column of a tile, in place.
constexpr void VerticalColumn(int column, Tile<float>& tile) {
  float x[64] = {};
  for (int n = 0; n < 64; ++n) x[n] = tile.at[n * kTileRow + column];
  ForwardTransform(x, [&](int f, float value) { tile.at[f * kTileRow + column] = value; });
}

// A row of a tile, in place; returns the bits of the row's largest magnitude.
constexpr uint32_t HorizontalRow(int row, Tile<float>& tile) {
  float* const at = tile.at + row * kTileRow;
  float x[64] = {};
  for (int n = 0; n < 64; ++n) x[n] = at[n];
  uint32_t largest = 0;
  ForwardTransform(x, [&](int f, float value) {
    at[f] = value;
    const uint32_t magnitude = Magnitude(value);
    if (magnitude > largest) largest = magnitude;
  });
  return largest;
}

}  // namespace distro::cuda
