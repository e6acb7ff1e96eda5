// The forward transform of 64 samples: the orthonormal DCT-II. V is what one operation works on: a
// float, as in a thread of a GPU, or a vector of floats with one column of samples in each lane.
//
//   c[f] = sum over n of D[f][n] * x[n]
//
// A recursion of orthogonal steps (Plonka and Tasche, "Fast and numerically stable algorithms for
// discrete cosine transforms", Linear Algebra and its Applications 394, 2005). II(N) and IV(N) are
// the DCT-II and DCT-IV of N samples, orthonormal:
//
//   II(N)  sums and differences of x[n] and x[N-1-n]; II(N/2) of the sums are the even frequencies,
//          IV(N/2) of the differences the odd ones
//   IV(N)  rotations of each x[n] and x[N-1-n] by (2n+1)/4N of a half turn; II(N/2) of both halves;
//          sums and differences of their results, except for one of each half
//
// The factors 1/sqrt(2) of sums and differences are left out: a transform of N samples has the
// factor sqrt(N), which for N = 64 is divided out again where there are products anyway. 592
// operations instead of 4096 multiply-adds: 342 sums and differences, 57 rotations of 2 products
// and 2 multiply-adds, 22 products.
//
// Error. u = 2^-24; norms are Euclidean. Every step is an orthogonal matrix times one factor, so an
// error that is at most e*u times the norm of a step's result has the same ratio to the norm of the
// whole result, and the e of all steps add up. In a step,
//   * a sum or difference has one rounding: e = 1;
//   * a rotation (x, y) -> (a x + b y, a y - b x) has e = 3: one for its rounded constants, which
//     are a rotation by a scaled matrix of the same form; one for the products b*y and a*y, which
//     are rounded by at most u |b y| and u |a y|, together u |y|; and one for the two results;
//   * a product with sqrt(2) has e = 2, for constant and result.
// II(2): e = 1. IV(2), a rotation: e = 3. II(N) = 1 + max(II(N/2), IV(N/2)) and IV(N) = 3 + II(N/2)
// + 2, so II(N) = 3 log2(N) - 2. For N = 64 this is 16, and the second order is below 1:
//
//   norm of the error <= 17 u * norm of x       + 2^-140 where products are denormal
//
// Two axes of a block: 34 u * norm of the block. Without fused multiply-adds a rotation rounds a*x
// and b*x too, by at most u |x|; as |x| + |y| <= sqrt(2) * norm of (x, y), it has e = 2 + sqrt(2),
// and the bound is 19 u for one axis. Fusing more than Fma does only omits roundings.
#pragma once

#include <cmath>
#include <numbers>
#include <type_traits>

#include "kernels/basis_entry.h"
#include "kernels/unrolled.h"

namespace distro {

// Of the error of one axis, in units of 2^-24 times the norm of the samples.
inline constexpr double kForwardTransformRoundings = 17;
inline constexpr double kForwardTransformRoundingsUnfused = 19;

// a * b + c, fused. Of vectors it is what the compiler makes of it: fused where there is such an
// instruction, as their files are compiled with contraction.
template <typename V>
constexpr V Fma(float a, V b, V c) {
  if constexpr (std::is_same_v<V, float>) {
    return fmaf(a, b, c);
  } else {
    return a * b + c;
  }
}

// cos(pi * m / 128).
constexpr double CosineOf(int m) {
  constexpr double kRootOf32 = 4 * std::numbers::sqrt2;  // kQuarterWave has sqrt(2/64)
  return FoldedQuarterWave<double>(kQuarterWave, m) * kRootOf32;
}

// DctTwo and DctFour write the coefficients of x, times sqrt(kCount) / kDivisor, in natural order.
// kDivisor is a power of two.
template <int kDivisor, typename V, int kCount>
constexpr void DctTwo(V (&x)[kCount]);

template <int kDivisor, typename V, int kCount>
constexpr void DctFour(V (&x)[kCount]) {
  constexpr int kHalf = kCount / 2;
  constexpr double kScale = (kCount == 2 ? std::numbers::sqrt2 : 1.0) / kDivisor;
  V left[kHalf], right[kHalf];
  Unrolled<kHalf>([&](auto n) {
    constexpr int kAngle = (2 * n + 1) * 32 / kCount;
    constexpr float kCosine = static_cast<float>(kScale * CosineOf(kAngle));
    constexpr float kSine = static_cast<float>(kScale * CosineOf(64 - kAngle));
    const V first = x[n], last = x[kCount - 1 - n];
    left[n] = Fma(kCosine, first, kSine * last);
    // The right half is a DST-II: a DCT-II with every second sample negated, read backwards.
    right[n] = n % 2 == 0 ? Fma(-kSine, first, kCosine * last) : Fma(kSine, first, -kCosine * last);
  });
  if constexpr (kCount == 2) {
    x[0] = left[0];
    x[1] = -right[0];
  } else {
    constexpr float kRoot = std::numbers::sqrt2_v<float>;
    DctTwo<1>(left);
    DctTwo<1>(right);
    x[0] = kRoot * left[0];
    x[kCount - 1] = -kRoot * right[0];
    Unrolled<kHalf - 1>([&](auto i) {
      constexpr int kFrequency = i + 1;
      x[2 * kFrequency - 1] = left[kFrequency] - right[kHalf - kFrequency];
      x[2 * kFrequency] = left[kFrequency] + right[kHalf - kFrequency];
    });
  }
}

template <int kDivisor, typename V, int kCount>
constexpr void DctTwo(V (&x)[kCount]) {
  constexpr int kHalf = kCount / 2;
  V sums[kHalf], differences[kHalf];
  Unrolled<kHalf>([&](auto n) {
    sums[n] = x[n] + x[kCount - 1 - n];
    differences[n] = x[n] - x[kCount - 1 - n];
  });
  if constexpr (kCount == 2) {
    x[0] = sums[0] * (1.0f / kDivisor);
    x[1] = differences[0] * (1.0f / kDivisor);
  } else {
    DctTwo<kDivisor>(sums);
    DctFour<kDivisor>(differences);
    Unrolled<kHalf>([&](auto k) {
      x[2 * k] = sums[k];
      x[2 * k + 1] = differences[k];
    });
  }
}

}  // namespace distro
