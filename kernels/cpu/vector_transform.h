// Bodies of TransformKernels for vectors of L floats. Included by the files that compile them for
// one instruction set, with multiply-adds contracted; see vector.h for the rule on allowed code.
//
// An axis of the forward transform: two even-odd splits, then three dense products (32 x 32 odd
// frequencies, 16 x 16 for 2 mod 4, 16 x 16 for 0 mod 4): 1536 multiply-adds a column instead of
// 4096.
#pragma once

#include "kernels/basis.h"
#include "kernels/cpu/vector.h"
#include "kernels/cpu/vector_inverse.h"
#include "kernels/cpu/vector_kernels.h"

namespace distro::vector {

template <int L>
inline void MomentumRow(const CompressOptions& options, const float* gradient, int cols,
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
void Momentum(const BlockSite& site, const CompressOptions& options, const float* gradient,
              float* momentum, float* x) {
  const bool whole = site.rows == 64 && site.cols == 64 && site.last_cols == 64;
  if (!whole) __builtin_memset(x, 0, 4096 * sizeof(float));
  for (int r = 0; r < site.rows; ++r) {
    const int64_t at = site.offset + r * site.stride;
    const int cols = whole ? 64 : (r + 1 == site.rows ? site.last_cols : site.cols);
    MomentumRow<L>(options, gradient + at, cols, momentum + at, x + r * 64);
  }
}

// d rows 0..31: odd part; 32..47: odd part of the even part; 48..63: its even part.
template <int L>
inline void SplitRows(const float* x, float* d) {
  for (int r = 0; r < 16; ++r) {
    for (int c = 0; c < 64; c += L) {
      const F32<L> a = Load<L>(x + r * 64 + c), b = Load<L>(x + (31 - r) * 64 + c);
      const F32<L> p = Load<L>(x + (32 + r) * 64 + c), q = Load<L>(x + (63 - r) * 64 + c);
      const F32<L> outer = a + q, inner = b + p;
      Store<L>(a - q, d + r * 64 + c);
      Store<L>(b - p, d + (31 - r) * 64 + c);
      Store<L>(outer - inner, d + (32 + r) * 64 + c);
      Store<L>(outer + inner, d + (48 + r) * 64 + c);
    }
  }
}

// The same along every row.
template <int L>
inline void SplitColumns(const float* x, float* d) {
  for (int r = 0; r < 64; ++r, x += 64, d += 64) {
    for (int c = 0; c < 16; c += L) {
      const F32<L> a = Load<L>(x + c), b = Reverse<L>(Load<L>(x + 32 - L - c));
      const F32<L> p = Load<L>(x + 32 + c), q = Reverse<L>(Load<L>(x + 64 - L - c));
      const F32<L> outer = a + q, inner = b + p;
      Store<L>(a - q, d + c);
      Store<L>(Reverse<L>(b - p), d + 32 - L - c);
      Store<L>(outer - inner, d + 32 + c);
      Store<L>(outer + inner, d + 48 + c);
    }
  }
}

template <int L>
void Forward(float* x, float* scratch, float* coefficients) {
  SplitRows<L>(x, scratch);
  Multiply<L, float, 64>(kBasis.at[1], {128, 1}, scratch, 32, 32, x + 64, 128);
  Multiply<L, float, 64>(kBasis.at[2], {256, 1}, scratch + 32 * 64, 16, 16, x + 128, 256);
  Multiply<L, float, 64>(kBasis.at[0], {256, 1}, scratch + 48 * 64, 16, 16, x, 256);
  SplitColumns<L>(x, scratch);
  const float* basis = kBasisColumns.at[0];
  Multiply<L, float, 32>(scratch, {64, 1}, basis, 32, 64, coefficients, 64);
  Multiply<L, float, 16>(scratch + 32, {64, 1}, basis + 32, 16, 64, coefficients + 32, 64);
  Multiply<L, float, 16>(scratch + 48, {64, 1}, basis + 48, 16, 64, coefficients + 48, 64);
}

template <int L>
[[gnu::always_inline]] inline I32<L> Magnitude(const float* coefficients) {
  I32<L> bits;
  __builtin_memcpy(&bits, coefficients, sizeof(bits));
  return bits & 0x7FFFFFFF;
}

template <int L>
void ColumnMaxima(const float* coefficients, uint32_t greatest[64]) {
  for (int s = 0; s < 64; s += L) {
    I32<L> most = {};
    for (int h = 0; h < 64; ++h) {
      const I32<L> magnitude = Magnitude<L>(coefficients + h * 64 + s);
      most = magnitude > most ? magnitude : most;
    }
    __builtin_memcpy(greatest + s, &most, sizeof(most));
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
void SlotsReaching(const float* coefficients, uint32_t threshold, uint64_t slots[64]) {
  I32<L> lane_bits;
  for (int i = 0; i < L; ++i) lane_bits[i] = 1 << i;
  const auto least = static_cast<int32_t>(threshold);
  for (int h = 0; h < 64; ++h) {
    const float* row = coefficients + h * 64;
    slots[h] = uint64_t{Reaching<L>(row + 32, lane_bits, least)} << 32 |
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
    const int row = kFirstOfGroup[group] + counts[group]++;
    for (int v = 0; v < 64 / L; ++v) Store<L>(sums[v], t + row * 64 + v * L);
    __builtin_memcpy(factors + row * 32, kBasis.at[h], 32 * sizeof(float));
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
  for (int group = 0; group < 3; ++group) {
    const int first = kFirstOfGroup[group];
    Multiply<L, float, 64>(factors + first * 32, {1, 32}, x + first * 64, counts[group],
                           kRowsOfGroup[group], parts + first * 64, 64);
  }
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
          .slots_reaching = SlotsReaching<L>,
          .subtract_inverse = SubtractInverse<L>};
}

}  // namespace distro::vector
