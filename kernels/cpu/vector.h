// Vectors of L lanes through the compiler's vector extension, and products with them.
//
// Everything here is a template over L, and each L is used for one instruction set only. Symbols
// emitted by a file compiled for AVX2 therefore differ from the baseline's, and the linker cannot
// use AVX2 code on a CPU without it. Keep this rule: no inline function without L, in its arguments
// or in their types, in these files, and only types from the standard library. Intrinsics have no
// symbol: they are always inlined.
#pragma once

#ifdef __SSE2__
#include <immintrin.h>
#endif

#include <cstdint>

namespace distro::vector {

template <int L, typename T>
struct Of {
  typedef T Type __attribute__((vector_size(L * sizeof(T))));
};
template <int L>
using F32 = typename Of<L, float>::Type;
template <int L>
using I32 = typename Of<L, int32_t>::Type;

template <int L, typename T>
[[gnu::always_inline]] inline typename Of<L, T>::Type Load(const T* from) {
  typename Of<L, T>::Type v;
  __builtin_memcpy(&v, from, sizeof(v));
  return v;
}

template <int L, typename T>
[[gnu::always_inline]] inline void Store(typename Of<L, T>::Type v, T* to) {
  __builtin_memcpy(to, &v, sizeof(v));
}

// The lanes in reverse order.
template <int L, typename V>
[[gnu::always_inline]] inline V Reverse(V v) {
  static_assert(L == 4 || L == 8 || L == 16);
  if constexpr (L == 4) {
    return __builtin_shufflevector(v, v, 3, 2, 1, 0);
  } else if constexpr (L == 8) {
    return __builtin_shufflevector(v, v, 7, 6, 5, 4, 3, 2, 1, 0);
  } else {
    return __builtin_shufflevector(v, v, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
  }
}

// In every lane, of the two signed halves of 16 bits: the sum of their products. The sum must not
// overflow.
template <int L>
[[gnu::always_inline]] inline I32<L> PairProducts(I32<L> a, I32<L> b) {
#ifdef __SSE2__
  if constexpr (L == 4) {
    return (I32<L>)_mm_madd_epi16((__m128i)a, (__m128i)b);
  } else if constexpr (L == 8) {
    return (I32<L>)_mm256_madd_epi16((__m256i)a, (__m256i)b);
  } else {
    return (I32<L>)_mm512_madd_epi16((__m512i)a, (__m512i)b);
  }
#else
  return (a << 16 >> 16) * (b << 16 >> 16) + (a >> 16) * (b >> 16);
#endif
}

// Rows of a tile of sums that stays in registers, with two vectors of sums a row, factors and the
// vectors that they multiply: 32 registers with AVX-512, else 16.
template <int L>
inline constexpr int kTileRows = L == 16 ? 8 : 4;

template <int L>
using Tile = F32<L>[kTileRows<L>][2];

// Of row r, term k: at[r * row + k * term].
template <int L>
struct Factors {
  const float* at;
  int64_t row;
  int64_t term;
};

// tile[r] += sum over terms k of the factor of (r, k) times 2L elements from b + k * b_row.
template <int L>
[[gnu::always_inline]] inline void AddProducts(const Factors<L>& factors, const float* b,
                                               int64_t b_row, int64_t depth, Tile<L>& tile) {
  for (int64_t k = 0; k < depth; ++k) {
    const F32<L> left = Load<L>(b + k * b_row), right = Load<L>(b + k * b_row + L);
#pragma GCC unroll 8
    for (int r = 0; r < kTileRows<L>; ++r) {
      const float factor = factors.at[r * factors.row + k * factors.term];
      tile[r][0] += factor * left;
      tile[r][1] += factor * right;
    }
  }
}

}  // namespace distro::vector
