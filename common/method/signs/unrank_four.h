// The subsets of four ranks at once, K = 2, 3 or 4: TakeElement of binomial.h in lanes of SSE2,
// which every x86-64 has.
//
// Doubles are exact here: k! * rank and every product c * (c-1) * ... are below 4096^4 = 2^48, and
// the division by k has no remainder. The estimate, which one comparison corrects, is computed in
// floats: at most 4096, with an error below 2^-10.
#pragma once

#include <emmintrin.h>

#include <cstdint>

#include "common/method/signs/binomial.h"

namespace distro {

// Lanes 0, 1 and 2, 3.
struct FourDoubles {
  __m128d low;
  __m128d high;
};

// y^(1/3) for y >= 1 within 2e-5: Root<3> of floats.
inline __m128 CubeRoots(__m128 y) {
  constexpr int32_t kOne = 0x3f800000;
  constexpr int32_t kCentre = 9 << 15;
  const __m128 third = _mm_cvtepi32_ps(_mm_castps_si128(y)) * (1.0f / 3);
  const __m128 x = _mm_castsi128_ps(
      _mm_add_epi32(_mm_cvttps_epi32(third), _mm_set1_epi32(kOne - kOne / 3 - kCentre)));
  const __m128 power = x * x * x;
  return x * (power + 2 * y) / (2 * power + y);
}

// As EstimateElement, of scaled = k! * rank.
template <int k>
__m128i EstimateElements(FourDoubles scaled) {
  static_assert(2 <= k && k <= 4);
  constexpr float kAbove = k == 3 ? 0.3f : 1e-3f;
  const __m128 y = _mm_movelh_ps(_mm_cvtpd_ps(scaled.low), _mm_cvtpd_ps(scaled.high));
  __m128 x;
  if constexpr (k == 2) {
    x = _mm_sqrt_ps(y + 0.25f);
  } else if constexpr (k == 3) {
    x = CubeRoots(_mm_max_ps(y, _mm_set1_ps(1)));
  } else {
    x = _mm_sqrt_ps(1.25f + _mm_sqrt_ps(y + 1));
  }
  return _mm_cvttps_epi32(_mm_max_ps(x + (kAbove + (k - 1) * 0.5f), _mm_set1_ps(k - 1)));
}

// For two lanes: returns all bits set where the estimate c is too large by one. Changes k! * rank
// to (k-1)! * (rank - C(element, k)).
template <int k>
__m128d TakeTwo(__m128d c, __m128d* scaled) {
  __m128d common = c - 1;
  for (int i = 2; i < k; ++i) common *= c - i;
  const __m128d above = c * common;
  const __m128d below = common * (c - k);
  const __m128d too_large = _mm_cmpgt_pd(above, *scaled);
  const __m128d taken = _mm_or_pd(_mm_and_pd(too_large, below), _mm_andnot_pd(too_large, above));
  *scaled = (*scaled - taken) / k;
  return too_large;
}

// As TakeElement, of k! * rank; leaves (k-1)! * rank.
template <int k>
__m128i TakeElements(FourDoubles* scaled) {
  const __m128i estimate = EstimateElements<k>(*scaled);
  const __m128d low = TakeTwo<k>(_mm_cvtepi32_pd(estimate), &scaled->low);
  const __m128d high =
      TakeTwo<k>(_mm_cvtepi32_pd(_mm_unpackhi_epi64(estimate, estimate)), &scaled->high);
  const __m128 too_large = _mm_shuffle_ps(_mm_castpd_ps(low), _mm_castpd_ps(high), 0x88);
  return _mm_add_epi32(estimate, _mm_castps_si128(too_large));
}

// The k smallest elements of four subsets of `size`: positions[lane * size + i], i < k.
template <int k>
void TakeSubsets(FourDoubles scaled, int size, uint16_t* positions) {
  __m128i elements;
  if constexpr (k == 1) {
    elements = _mm_unpacklo_epi64(_mm_cvttpd_epi32(scaled.low), _mm_cvttpd_epi32(scaled.high));
  } else {
    elements = TakeElements<k>(&scaled);
  }
  positions[k - 1] = static_cast<uint16_t>(_mm_extract_epi16(elements, 0));
  positions[size + k - 1] = static_cast<uint16_t>(_mm_extract_epi16(elements, 2));
  positions[2 * size + k - 1] = static_cast<uint16_t>(_mm_extract_epi16(elements, 4));
  positions[3 * size + k - 1] = static_cast<uint16_t>(_mm_extract_epi16(elements, 6));
  if constexpr (k > 1) TakeSubsets<k - 1>(scaled, size, positions);
}

// positions u16 [4, k]: the subsets, ascending. Requires ranks below C(4096, k).
template <int k>
void UnrankFour(const uint64_t* ranks, uint16_t* positions) {
  constexpr auto kScale = static_cast<double>(FactorialOf<k>::kValue);
  TakeSubsets<k>({.low = _mm_set_pd(ToDouble(ranks[1]), ToDouble(ranks[0])) * kScale,
                  .high = _mm_set_pd(ToDouble(ranks[3]), ToDouble(ranks[2])) * kScale},
                 k, positions);
}

}  // namespace distro
