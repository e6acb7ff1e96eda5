// Binomial coefficients and their inverse in closed form, for colexicographic ranks of K-subsets of
// 0..4095, K <= 8. The inverse uses no tables and no search: it estimates a root with an error of
// at most one, and corrects it by one exact comparison.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "common/model/layout/matrix.h"

namespace distro {

__extension__ typedef unsigned __int128 uint128;

inline constexpr int kMaxRecordK = 8;

// Holds c * (c-1) * ... * (c-k+1) for c <= 4096.
template <int k>
using WideInt = std::conditional_t<(k <= 5), uint64_t, uint128>;
// Holds C(4096, k).
template <int k>
using RankInt = std::conditional_t<(k <= 6), uint64_t, uint128>;

template <int k>
struct FactorialOf {
  static constexpr uint64_t kValue = k * FactorialOf<k - 1>::kValue;
  static constexpr int kTwos = std::countr_zero(kValue);
  // The inverse of the odd part modulo 2^64 or 2^128 (Newton: each step doubles the right bits).
  static constexpr WideInt<k> Inverse() {
    const WideInt<k> odd = kValue >> kTwos;
    WideInt<k> inverse = odd;
    for (int i = 0; i < 6; ++i) inverse *= 2 - odd * inverse;
    return inverse;
  }
};
template <>
struct FactorialOf<0> {
  static constexpr uint64_t kValue = 1;
};

// C(c, k) for c <= 4096, exactly. The division has no remainder, so it is a shift and a product
// with the inverse.
template <int k>
constexpr RankInt<k> Binomial(uint32_t c) {
  WideInt<k> falling = c;
  for (uint32_t i = 1; i < k; ++i) falling *= WideInt<k>{c} - i;
  constexpr WideInt<k> kInverse = FactorialOf<k>::Inverse();
  return static_cast<RankInt<k>>((falling >> FactorialOf<k>::kTwos) * kInverse);
}

inline double ToDouble(uint64_t value) { return static_cast<double>(static_cast<int64_t>(value)); }
inline double ToDouble(uint128 value) {
  return static_cast<double>(static_cast<int64_t>(value >> 64)) * 0x1p64 +
         static_cast<double>(static_cast<uint64_t>(value));
}

// y^(1/k) for y >= 1 within 2e-5 (k = 3) or 1e-10: the exponent divided by k, then Halley's step,
// which turns a relative error e into (k^2-1)/12 * e^3.
template <int k>
double Root(double y) {
  constexpr uint64_t kOne = uint64_t{1023} << 52;
  constexpr uint64_t kCentre = uint64_t{9}
                               << 44;  // halves the error of the piecewise linear logarithm
  double x = std::bit_cast<double>((std::bit_cast<uint64_t>(y) - kOne) / k + kOne - kCentre);
  for (int step = 0; step < (k == 3 ? 1 : 2); ++step) {
    double power = x;
    for (int i = 1; i < k; ++i) power *= x;
    x *= ((k - 1) * power + (k + 1) * y) / ((k + 1) * power + (k - 1) * y);
  }
  return x;
}

// The largest c with C(c, k) <= rank, or that plus one. With x = c - (k-1)/2, k! * C(c, k) is an
// even or odd polynomial x^k - a * x^(k-2) + ...: k = 2 and 4 are solved exactly; else the root of
// x^k lies below x, by the most at rank 1, and `kAbove` lifts it over x but not over x + 1.
template <int k>
uint32_t EstimateElement(RankInt<k> rank) {
  const double y = ToDouble(rank) * static_cast<double>(FactorialOf<k>::kValue);
  constexpr double kAbove = k == 3 ? 0.3 : k == 5 ? 0.5 : k == 6 ? 0.6 : k == 7 ? 0.7 : 0.8;
  double x;
  if constexpr (k == 2) {
    x = std::sqrt(y + 0.25) + 1e-6;
  } else if constexpr (k == 4) {
    x = std::sqrt(1.25 + std::sqrt(y + 1)) + 1e-6;
  } else {
    x = Root<k>(std::max(y, 1.0)) + kAbove;
  }
  return std::max(static_cast<uint32_t>(static_cast<int32_t>(x + (k - 1) * 0.5)), uint32_t{k - 1});
}

// The largest c with C(c, k) <= rank; subtracts C(c, k) from `rank`. Requires rank < C(4096, k).
template <int k>
uint32_t TakeElement(RankInt<k>* rank) {
  if constexpr (k == 1) {
    const auto c = static_cast<uint32_t>(*rank);
    *rank = 0;
    return c;
  } else {
    const uint32_t estimate = EstimateElement<k>(*rank);
    const RankInt<k> above = Binomial<k>(estimate);
    const RankInt<k> below = Binomial<k>(estimate - 1);
    const bool too_large = above > *rank;
    *rank -= too_large ? below : above;
    return estimate - too_large;
  }
}

}  // namespace distro
