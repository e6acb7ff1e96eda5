// Bodies of TransformKernels for vectors of L floats. Included by the files that compile them for
// one instruction set, with multiply-adds contracted; see vector.h for the rule on allowed code.
#pragma once

#include <utility>

#include "kernels/basis.h"
#include "kernels/cpu/vector.h"
#include "kernels/cpu/vector_inverse.h"
#include "kernels/cpu/vector_kernels.h"
#include "kernels/forward_transform.h"

namespace distro::vector {

template <int L>
inline void MomentumRow(const SignCompressOptions& options, const float* gradient, int cols,
                        float* momentum, float* x) {
  int c = 0;
  for (; c + L <= cols; c += L) {
    const F32<L> m = options.beta * Load<L>(momentum + c) +
                     options.eta * (Load<L>(gradient + c) * options.gradient_scale);
    Store<L>(m, momentum + c);
    Store<L>(m, x + c);
  }
  for (; c < cols; ++c) {
    momentum[c] = options.beta * momentum[c] + options.eta * (gradient[c] * options.gradient_scale);
    x[c] = momentum[c];
  }
}

template <int L>
void Momentum(const BlockSite& site, const SignCompressOptions& options, const float* gradient,
              float* momentum, float* x) {
  const bool whole = site.rows == 64 && site.cols == 64 && site.last_cols == 64;
  if (!whole) __builtin_memset(x, 0, 4096 * sizeof(float));
  for (int r = 0; r < site.rows; ++r) {
    const int64_t at = site.offset + r * site.stride;
    const int cols = whole ? 64 : (r + 1 == site.rows ? site.last_cols : site.cols);
    MomentumRow<L>(options, gradient + at, cols, momentum + at, x + r * 64);
  }
}

// Lanes of the concatenation of a and b.
template <int L, typename V, int... kLanes>
[[gnu::always_inline]] inline F32<L> Pick(V a, V b, std::integer_sequence<int, kLanes...>) {
  return __builtin_shufflevector(a, b, kLanes...);
}

// Four floats of each of the rows 0, 4, 8, ... L - 4.
template <int L, int kLanes = L>
[[gnu::always_inline]] inline F32<kLanes> LoadQuads(const float* x) {
  if constexpr (kLanes == 4) {
    F32<4> quad;
    __builtin_memcpy(&quad, x, sizeof(quad));
    return quad;
  } else {
    constexpr int kHalf = kLanes / 2;
    return Pick<kLanes>(LoadQuads<L, kHalf>(x), LoadQuads<L, kHalf>(x + kHalf * 64),
                        std::make_integer_sequence<int, kLanes>());
  }
}

template <int L, int kFirst, int... kLanes>
[[gnu::always_inline]] inline F32<L> ZipOf(F32<L> a, F32<L> b,
                                           std::integer_sequence<int, kLanes...>) {
  return __builtin_shufflevector(a, b,
                                 (kLanes % 2 * L + kLanes / 4 * 4 + kLanes % 4 / 2 + kFirst)...);
}
// In every four lanes: a[kFirst], b[kFirst], a[kFirst + 1], b[kFirst + 1].
template <int L, int kFirst>
[[gnu::always_inline]] inline F32<L> Zip(F32<L> a, F32<L> b) {
  return ZipOf<L, kFirst>(a, b, std::make_integer_sequence<int, L>());
}

// Four columns of L rows: transposes of 4 x 4 elements, side by side.
template <int L>
[[gnu::always_inline]] inline void LoadColumns(const float* x, F32<L> columns[4]) {
  const F32<L> a = LoadQuads<L>(x), b = LoadQuads<L>(x + 64);
  const F32<L> c = LoadQuads<L>(x + 128), d = LoadQuads<L>(x + 192);
  const F32<L> ac_left = Zip<L, 0>(a, c), bd_left = Zip<L, 0>(b, d);
  const F32<L> ac_right = Zip<L, 2>(a, c), bd_right = Zip<L, 2>(b, d);
  columns[0] = Zip<L, 0>(ac_left, bd_left);
  columns[1] = Zip<L, 2>(ac_left, bd_left);
  columns[2] = Zip<L, 0>(ac_right, bd_right);
  columns[3] = Zip<L, 2>(ac_right, bd_right);
}

// The transforms of the rows of x are the columns of `out`. All in one function: the compiler
// spills fewer of the 64 vectors than calls of smaller transforms pass in memory.
template <int L>
[[gnu::flatten]] void TransformRows(const float* x, float* out) {
  for (int row = 0; row < 64; row += L) {
    F32<L> samples[64];
#pragma GCC unroll 16
    for (int n = 0; n < 64; n += 4) LoadColumns<L>(x + row * 64 + n, samples + n);
    DctTwo</*kDivisor=*/8>(samples);
#pragma GCC unroll 64
    for (int f = 0; f < 64; ++f) Store<L>(samples[f], out + f * 64 + row);
  }
}

template <int L>
void Forward(float* x, float* scratch) {
  TransformRows<L>(x, scratch);
  TransformRows<L>(scratch, x);
}

template <int L>
[[gnu::always_inline]] inline I32<L> Magnitude(const float* coefficients) {
  I32<L> bits;
  __builtin_memcpy(&bits, coefficients, sizeof(bits));
  return bits & 0x7FFFFFFF;
}

template <int L>
void ColumnMaxima(const float* coefficients, int rows, uint32_t greatest[64]) {
  for (int w = 0; w < 64; w += L) {
    I32<L> most = {};
    for (int h = 0; h < rows; ++h) {
      const I32<L> magnitude = Magnitude<L>(coefficients + h * 64 + w);
      most = magnitude > most ? magnitude : most;
    }
    __builtin_memcpy(greatest + w, &most, sizeof(most));
  }
}

// Bit i is set when coefficient i of 32 reaches the threshold. lane_bits[i] is 2^i.
template <int L>
[[gnu::always_inline]] inline uint32_t Reaching(const float* coefficients, I32<L> lane_bits,
                                                int32_t threshold) {
  I32<L> reached = {};
#pragma GCC unroll 8
  for (int v = 0; v < 32 / L; ++v) {
    reached |= (Magnitude<L>(coefficients + v * L) >= threshold) & (lane_bits << v * L);
  }
  uint32_t bits = 0;
  for (int i = 0; i < L; ++i) bits |= static_cast<uint32_t>(reached[i]);
  return bits;
}

template <int L>
void ColumnsReaching(const float* coefficients, uint32_t threshold, uint64_t columns[64]) {
  I32<L> lane_bits;
  for (int i = 0; i < L; ++i) lane_bits[i] = 1 << i;
  const auto least = static_cast<int32_t>(threshold);
  for (int h = 0; h < 64; ++h) {
    const float* row = coefficients + h * 64;
    columns[h] = uint64_t{Reaching<L>(row + 32, lane_bits, least)} << 32 |
                 Reaching<L>(row, lane_bits, least);
  }
}

// Fills one row of t for each vertical frequency that occurs, by group, and its basis row in
// factors; `counts`: rows of each group.
template <int L>
inline void InverseRows(int k, const uint16_t* positions, const float* values, float* t,
                        float* factors, int counts[3]) {
  for (int i = 0; i < k;) {
    const int h = positions[i] / 64;
    F32<L> sums[64 / L] = {};
    for (; i < k && positions[i] / 64 == h; ++i) {
      const float* basis = kBasis.at[positions[i] % 64];
      for (int v = 0; v < 64 / L; ++v) sums[v] += values[i] * Load<L>(basis + v * L);
    }
    const int group = GroupOf<L>(h);
    const int row = kFirstOfGroup<L>[group] + counts[group]++;
    for (int v = 0; v < 64 / L; ++v) Store<L>(sums[v], t + row * 64 + v * L);
    __builtin_memcpy(factors + row * 32, kBasis.at[h], 32 * sizeof(float));
  }
}

// A tile of factors^T * x.
template <int L>
[[gnu::always_inline]] inline void SumTile(const float* factors, const float* x, int depth,
                                           float* out) {
  Tile<L> sums = {};
  AddProducts<L>({.at = factors, .row = 1, .term = 32}, x, 64, depth, sums);
#pragma GCC unroll 8
  for (int r = 0; r < kTileRows<L>; ++r) {
    Store<L>(sums[r][0], out + r * 64);
    Store<L>(sums[r][1], out + r * 64 + L);
  }
}

// The sums of a group's `count` frequencies; factors [count, 32], x and parts [64, 64].
template <int L>
inline void VerticalSums(const float* factors, const float* x, int group, int count, float* parts) {
  const int first = kFirstOfGroup<L>[group];
  for (int r = 0; r < kRowsOfGroup<L>[group]; r += kTileRows<L>) {
    for (int c = 0; c < 64; c += 2 * L) {
      SumTile<L>(factors + first * 32 + r, x + first * 64 + c, count, parts + (first + r) * 64 + c);
    }
  }
}

template <int L>
inline void SubtractRow(const float* x, int cols, float* momentum) {
  int c = 0;
  for (; c + L <= cols; c += L) Store<L>(Load<L>(momentum + c) - Load<L>(x + c), momentum + c);
  for (; c < cols; ++c) momentum[c] -= x[c];
}

template <int L>
void SubtractInverse(const BlockSite& site, int k, const uint16_t* positions, const float* values,
                     float* scratch, float* x, float* momentum) {
  float* parts = scratch;
  float* factors = scratch + 4096;
  int counts[3] = {};
  InverseRows<L>(k, positions, values, x, factors, counts);
  for (int group = 0; group < 3; ++group) VerticalSums<L>(factors, x, group, counts[group], parts);
  JoinRows<L>(parts, x);
  for (int r = 0; r < site.rows; ++r) {
    const int cols = r + 1 == site.rows ? site.last_cols : site.cols;
    SubtractRow<L>(x + r * 64, cols, momentum + site.offset + r * site.stride);
  }
}

template <int L>
constexpr TransformKernels MakeTransformKernels() {
  return {.momentum = Momentum<L>,
          .forward = Forward<L>,
          .column_maxima = ColumnMaxima<L>,
          .columns_reaching = ColumnsReaching<L>,
          .subtract_inverse = SubtractInverse<L>};
}

}  // namespace distro::vector
