// Bodies of ExactKernels for vectors of L 32-bit lanes. Included by the files that compile them for
// one instruction set with -ffp-contract=off; see vector.h for the rule on allowed code.
//
// The integer inverse transform: the horizontal axis from the non-zero votes only, then the
// vertical axis by three dense products over the rows that have votes, one for each even-odd half
// or quarter. Integer sums that cannot overflow are the same in any order, so the splits change no
// bit.
#pragma once

#include "kernels/basis.h"
#include "kernels/cpu/vector.h"
#include "kernels/cpu/vector_kernels.h"

namespace distro::vector {

// The frequency's group: 0 for odd, 1 for 2 mod 4, 2 for 0 mod 4.
template <int L>
constexpr int GroupOf(int frequency) {
  return frequency % 2 == 1 ? 0 : (frequency % 4 == 2 ? 1 : 2);
}

// t[c] = (sum V*Q[b][c] + 32) >> 6 of one vertical frequency; entries begin .. end-1.
template <int L>
inline void HorizontalRow(const BlockVotes& votes, int begin, int end, int32_t* t) {
  I32<L> parts[2][32 / L] = {};  // even and odd horizontal frequencies, left half
  for (int i = begin; i < end; ++i) {
    const int b = votes.positions[i] % 64;
    const int32_t vote = votes.values[i] * (1 << votes.shift);
    for (int v = 0; v < 32 / L; ++v) parts[b % 2][v] += vote * Load<L>(kBasisQ13Wide.at[b] + v * L);
  }
  for (int v = 0; v < 32 / L; ++v) {
    const I32<L> even = parts[0][v], odd = parts[1][v];
    Store<L>((even + odd + 32) >> 6, t + v * L);
    Store<L>(Reverse<L>((even - odd + 32) >> 6), t + 64 - L - v * L);
  }
}

// t and factors hold, from rows 0, 32 and 48 on, the vertical frequencies with votes of the three
// groups.
template <int L>
inline void HorizontalRows(const BlockVotes& votes, int32_t* t, int32_t* factors, int counts[3]) {
  constexpr int kFirst[3] = {0, 32, 48};
  for (int begin = 0; begin < votes.count;) {
    const int a = votes.positions[begin] / 64;
    int end = begin + 1;
    while (end < votes.count && votes.positions[end] / 64 == a) ++end;
    const int group = GroupOf<L>(a);
    const int row = kFirst[group] + counts[group]++;
    HorizontalRow<L>(votes, begin, end, t + row * 64);
    __builtin_memcpy(factors + row * 32, kBasisQ13Wide.at[a], 32 * sizeof(int32_t));
    begin = end;
  }
}

// Undoes the two splits: parts rows 0..31 odd, 32..47 two mod four, 48..63 zero mod four.
template <int L>
inline void JoinRows(const int32_t* parts, int32_t* u) {
  for (int r = 0; r < 16; ++r) {
    for (int c = 0; c < 64; c += L) {
      const I32<L> quarter = Load<L>(parts + (48 + r) * 64 + c),
                   other = Load<L>(parts + (32 + r) * 64 + c);
      const I32<L> outer = quarter + other, inner = quarter - other;
      const I32<L> odd_outer = Load<L>(parts + r * 64 + c),
                   odd_inner = Load<L>(parts + (31 - r) * 64 + c);
      Store<L>(outer + odd_outer, u + r * 64 + c);
      Store<L>(inner + odd_inner, u + (31 - r) * 64 + c);
      Store<L>(inner - odd_inner, u + (32 + r) * 64 + c);
      Store<L>(outer - odd_outer, u + (63 - r) * 64 + c);
    }
  }
}

template <int L>
void InverseInteger(const BlockVotes& votes, int32_t* scratch, int32_t* u) {
  int32_t* t = u;
  int32_t* parts = scratch;
  int32_t* factors = scratch + 4096;
  int counts[3] = {};
  HorizontalRows<L>(votes, t, factors, counts);
  Multiply<L, int32_t, 64>(factors, {1, 32}, t, counts[0], 32, parts, 64);
  Multiply<L, int32_t, 64>(factors + 32 * 32, {1, 32}, t + 32 * 64, counts[1], 16, parts + 32 * 64,
                           64);
  Multiply<L, int32_t, 64>(factors + 48 * 32, {1, 32}, t + 48 * 64, counts[2], 16, parts + 48 * 64,
                           64);
  JoinRows<L>(parts, u);
}

// The new value of parameters p for the transform's sums u.
template <int L>
struct SignStep {
  UpdateOptions options;
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
void Update(const BlockSite& site, const UpdateOptions& options, const int32_t* u,
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
