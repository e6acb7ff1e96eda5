// The forward transform (kernels/forward_transform.h) of 64 samples that one thread holds in
// registers.
#pragma once

#include "kernels/cuda/block.h"
#include "kernels/forward_transform.h"

namespace distro::cuda {

// Calls emit(frequency, coefficient) for all frequencies. Destroys x.
template <typename Emit>
constexpr void ForwardTransform(float (&x)[64], const Emit& emit) {
  DctTwo</*kDivisor=*/8>(x);
  Unrolled<64>([&](auto f) { emit(static_cast<int>(f), x[f]); });
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
