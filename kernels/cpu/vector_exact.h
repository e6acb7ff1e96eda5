// Bodies of ExactKernels for vectors of L 32-bit lanes. Included by the files that compile them for
// one instruction set with -ffp-contract=off; see vector.h for the rule on allowed code.
//
// The integer inverse transform: the horizontal axis from the non-zero votes only, then the
// vertical axis by dense products over the rows that have votes, one for each group of frequencies.
// Integer sums that cannot overflow are the same in any order, so the groups change no bit.
#pragma once

#include "kernels/basis.h"
#include "kernels/cpu/vector.h"
#include "kernels/cpu/vector_inverse.h"
#include "kernels/cpu/vector_kernels.h"

namespace distro::vector {

// The sums of the vertical axis have 32 bits. Products of 32 bits are slow on many CPUs, while one
// instruction multiplies pairs of 16 bits and adds each pair. So t (|t| < 2^20, as sum |V| <=
// 32767) is split into t = high * 2^16 + low, both of 16 bits, and each is summed in pairs. A sum
// of `low` stays below 32 * 1448 * 2^15 < 2^31.
//
// Rows of pairs: element c holds the two halves of rows 2i and 2i + 1, the first in its low bits; 0
// where there is no row 2i + 1.
struct PairRows {
  int32_t* high;     // [32, 64]
  int32_t* low;      // [32, 64]
  int32_t* factors;  // [32, 32]: basis entries of the rows
};

template <int L>
[[gnu::always_inline]] inline void StoreHalf(I32<L> value, bool second, int32_t* pairs) {
  Store<L>(second ? Load<L>(pairs) | value << 16 : value & 0xFFFF, pairs);
}

template <int L>
[[gnu::always_inline]] inline void StoreSplit(I32<L> t, bool second, int32_t* high, int32_t* low) {
  StoreHalf<L>(t, second, low);
  StoreHalf<L>((t + 0x8000) >> 16, second, high);
}

// t[c] = (sum V*Q[b][c] + 32) >> 6 of one vertical frequency; entries begin .. end-1.
template <int L>
inline void HorizontalRow(const BlockVotes& votes, int begin, int end, bool second, int32_t* high,
                          int32_t* low) {
  I32<L> parts[2][32 / L];  // even and odd horizontal frequencies, left half
#pragma GCC unroll 8
  for (int v = 0; v < 32 / L; ++v) parts[0][v] = parts[1][v] = I32<L>{};
  for (int i = begin; i < end; ++i) {
    const int b = votes.positions[i] % 64;
    const int32_t vote = votes.values[i] * (1 << votes.shift);
    for (int v = 0; v < 32 / L; ++v) parts[b % 2][v] += vote * Load<L>(kBasisQ13Wide.at[b] + v * L);
  }
  for (int v = 0; v < 32 / L; ++v) {
    const I32<L> even = parts[0][v], odd = parts[1][v];
    const int left = v * L, right = 64 - L - v * L;
    StoreSplit<L>((even + odd + 32) >> 6, second, high + left, low + left);
    StoreSplit<L>(Reverse<L>((even - odd + 32) >> 6), second, high + right, low + right);
  }
}

// The vertical frequencies with votes, in rows of pairs by group; `counts`: frequencies of each.
template <int L>
inline void HorizontalRows(const BlockVotes& votes, const PairRows& rows, int counts[3]) {
  for (int begin = 0; begin < votes.count;) {
    const int a = votes.positions[begin] / 64;
    int end = begin + 1;
    while (end < votes.count && votes.positions[end] / 64 == a) ++end;
    const int group = GroupOf<L>(a);
    const bool second = counts[group] % 2 == 1;
    const int pair = (kFirstOfGroup<L>[group] + counts[group]++) / 2;
    HorizontalRow<L>(votes, begin, end, second, rows.high + pair * 64, rows.low + pair * 64);
    for (int r = 0; r < 32; r += L)
      StoreHalf<L>(Load<L>(kBasisQ13Wide.at[a] + r), second, rows.factors + pair * 32 + r);
    begin = end;
  }
}

// Of a tile's rows and L columns of a group's sums: out[r][c] = sum factors[i][r] * t[i][c].
template <int L>
[[gnu::always_inline]] inline void VerticalTile(const PairRows& rows, int pairs, int32_t* out) {
  constexpr int kRows = kTileRows<L>;
  I32<L> high[kRows] = {}, low[kRows] = {};
  for (int i = 0; i < pairs; ++i) {
    const I32<L> t_high = Load<L>(rows.high + i * 64), t_low = Load<L>(rows.low + i * 64);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const I32<L> factor = rows.factors[i * 32 + r] + I32<L>{};
      high[r] += PairProducts<L>(factor, t_high);
      low[r] += PairProducts<L>(factor, t_low);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    using Words = typename Of<L, uint32_t>::Type;  // of the sum, but not of high * 2^16, 32 bits do
    Store<L>((I32<L>)(((Words)high[r] << 16) + (Words)low[r]), out + r * 64);
  }
}

template <int L>
inline void VerticalSums(const PairRows& rows, int group, int count, int32_t* parts) {
  const int first = kFirstOfGroup<L>[group], pair = first / 2;
  for (int r = 0; r < kRowsOfGroup<L>[group]; r += kTileRows<L>) {
    for (int c = 0; c < 64; c += L) {
      VerticalTile<L>({.high = rows.high + pair * 64 + c,
                       .low = rows.low + pair * 64 + c,
                       .factors = rows.factors + pair * 32 + r},
                      (count + 1) / 2, parts + (first + r) * 64 + c);
    }
  }
}

template <int L>
void InverseInteger(const BlockVotes& votes, int32_t* scratch, int32_t* u) {
  int32_t* parts = scratch;
  const PairRows rows = {.high = u, .low = u + 2048, .factors = scratch + 4096};
  int counts[3] = {};
  HorizontalRows<L>(votes, rows, counts);
  for (int group = 0; group < 3; ++group) VerticalSums<L>(rows, group, counts[group], parts);
  JoinRows<L>(parts, u);
}

// The new value of parameters p for the transform's sums u.
template <int L>
struct SignStep {
  SignApplyOptions options;
  [[gnu::always_inline]] F32<L> operator()(F32<L> p, I32<L> u) const {
    const I32<L> sign = (u < 0) - (u > 0);  // comparisons give -1
    const F32<L> decay = p * options.eta_lambda;
    const F32<L> decayed = p - decay;
    return decayed - options.eta * __builtin_convertvector(sign, F32<L>);
  }
};
template <int L>
struct ScaledStep {
  float step;
  [[gnu::always_inline]] F32<L> operator()(F32<L> p, I32<L> u) const {
    const F32<L> move = __builtin_convertvector(u, F32<L>) * step;
    return p - move;
  }
};

// Lanes [0, lanes) of a vector of parameters, which are all that is read and written of them.
template <int L, typename Step>
inline void MoveLanes(const Step& step, const int32_t* u, int lanes, float* parameters) {
  F32<L> p = {};
  __builtin_memcpy(&p, parameters, lanes * sizeof(float));
  p = step(p, Load<L>(u));
  __builtin_memcpy(parameters, &p, lanes * sizeof(float));
}

template <int L, typename Step>
inline void Move(const BlockSite& site, const Step& step, const int32_t* u, float* parameters) {
  for (int r = 0; r < site.rows; ++r, u += 64) {
    const int cols = r + 1 == site.rows ? site.last_cols : site.cols;
    float* row = parameters + site.offset + r * site.stride;
    int c = 0;
    for (; c + L <= cols; c += L) Store<L>(step(Load<L>(row + c), Load<L>(u + c)), row + c);
    if (c < cols) MoveLanes<L>(step, u + c, cols - c, row + c);
  }
}

template <int L>
void Update(const BlockSite& site, const SignApplyOptions& options, const int32_t* u,
            float* parameters) {
  Move<L>(site, SignStep<L>{options}, u, parameters);
}

template <int L>
void Subtract(const BlockSite& site, float step, const int32_t* u, float* parameters) {
  Move<L>(site, ScaledStep<L>{step}, u, parameters);
}

template <int L>
[[gnu::always_inline]] inline F32<L> Ahead(float eta, F32<L> p, F32<L> m) {
  const I32<L> sign = (m < 0.0f) - (m > 0.0f);
  const F32<L> step = eta * __builtin_convertvector(sign, F32<L>);
  return p - step;
}

template <int L>
void Lookahead(float eta, const float* parameters, const float* momentum, float* out,
               int64_t elements) {
  int64_t i = 0;
  for (; i + L <= elements; i += L)
    Store<L>(Ahead<L>(eta, Load<L>(parameters + i), Load<L>(momentum + i)), out + i);
  F32<L> p = {}, m = {};
  __builtin_memcpy(&p, parameters + i, (elements - i) * sizeof(float));
  __builtin_memcpy(&m, momentum + i, (elements - i) * sizeof(float));
  p = Ahead<L>(eta, p, m);
  __builtin_memcpy(out + i, &p, (elements - i) * sizeof(float));
}

// Words is uint64_t or a vector of them.
template <int L, typename Words>
[[gnu::always_inline]] inline Words MixWords(Words z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

template <int L>
[[gnu::always_inline]] inline uint64_t WordOf(uint64_t index, const float* parameter) {
  uint32_t bits;
  __builtin_memcpy(&bits, parameter, sizeof(bits));
  return (index << 32) + bits + 0x9E3779B97F4A7C15;
}

// 64-bit vector products are faster only with AVX-512, which has an instruction for them; otherwise
// scalar products are.
template <int L>
uint64_t StateHash(uint64_t first_index, const float* parameters, int64_t elements) {
  uint64_t sum = 0;
  int64_t i = 0;
  if constexpr (L == 16) {
    using Words = typename Of<L, uint64_t>::Type;
    using Bits = typename Of<L, uint32_t>::Type;
    Words base = {}, sums = {};
    for (int j = 0; j < L; ++j) base[j] = ((first_index + j) << 32) + 0x9E3779B97F4A7C15;
    for (; i + L <= elements; i += L) {
      Bits bits;
      __builtin_memcpy(&bits, parameters + i, sizeof(bits));
      sums += MixWords<L>(base + __builtin_convertvector(bits, Words));
      base += uint64_t{L} << 32;
    }
    for (int j = 0; j < L; ++j) sum += sums[j];
  }
  for (; i < elements; ++i) sum += MixWords<L>(WordOf<L>(first_index + i, parameters + i));
  return sum;
}

template <int L>
constexpr ExactKernels MakeExactKernels() {
  return {.inverse_integer = InverseInteger<L>,
          .update = Update<L>,
          .subtract = Subtract<L>,
          .lookahead = Lookahead<L>,
          .state_hash = StateHash<L>};
}

}  // namespace distro::vector
