#include "kernels/basis.h"

#include <cmath>
#include <numbers>

#include "gtest/gtest.h"

namespace distro {
namespace {

double Formula(int k, int n) {
  const double scale = k == 0 ? 0.125 : std::sqrt(2.0 / 64);
  return scale * std::cos(std::numbers::pi * (2 * n + 1) * k / 128);
}

TEST(BasisTest, FollowsTheFormula) {
  for (int k = 0; k < 64; ++k) {
    for (int n = 0; n < 64; ++n) {
      EXPECT_NEAR(kBasisF64.at[k][n], Formula(k, n),
                  1.2e-14);  // three roundings of arguments up to 196
      EXPECT_EQ(kBasis.at[k][n], static_cast<float>(kBasisF64.at[k][n]));
      EXPECT_EQ(kBasisQ13.at[k][n], std::lrint(8192 * kBasisF64.at[k][n]));
      EXPECT_EQ(kBasisQ13Wide.at[k][n], kBasisQ13.at[k][n]);
    }
  }
}

// The recursive split of the integer transform relies on this.
TEST(BasisTest, RowsAreExactlyEvenOrOddAtEveryLevel) {
  for (int length = 64, step = 1; length > 1; length /= 2, step *= 2) {
    for (int k = 0; k < 64; k += step) {
      const int sign = k / step % 2 == 0 ? 1 : -1;
      for (int n = 0; n < length; ++n) {
        EXPECT_EQ(kBasisQ13.at[k][length - 1 - n], sign * kBasisQ13.at[k][n]) << k << " " << n;
        EXPECT_EQ(kBasisF64.at[k][length - 1 - n], sign * kBasisF64.at[k][n]) << k << " " << n;
      }
    }
  }
}

TEST(BasisTest, RowsAreOrthonormal) {
  for (int k = 0; k < 64; ++k) {
    for (int j = 0; j < 64; ++j) {
      double dot = 0;
      for (int n = 0; n < 64; ++n) dot += kBasisF64.at[k][n] * kBasisF64.at[j][n];
      EXPECT_NEAR(dot, k == j, 1e-14);
    }
  }
}

}  // namespace
}  // namespace distro
