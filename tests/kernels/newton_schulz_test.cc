#include "kernels/cpu/newton_schulz.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "common/base/random.h"
#include "gtest/gtest.h"
#include "kernels/cpu/cpu_backend.h"

namespace distro {
namespace {

using Doubles = std::vector<double>;

Doubles Product(const Doubles& a, const Doubles& b, int64_t rows, int64_t depth, int64_t cols) {
  Doubles c(rows * cols);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t k = 0; k < depth; ++k) {
      for (int64_t j = 0; j < cols; ++j) c[i * cols + j] += a[i * depth + k] * b[k * cols + j];
    }
  }
  return c;
}

Doubles Transposed(const Doubles& a, int64_t rows, int64_t cols) {
  Doubles t(a.size());
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < cols; ++j) t[j * rows + i] = a[i * cols + j];
  }
  return t;
}

// The definition in f64.
Doubles Slow(Doubles x, int64_t rows, int64_t cols, int steps) {
  if (rows > cols)
    return Transposed(Slow(Transposed(x, rows, cols), cols, rows, steps), cols, rows);
  double squares = 0;
  for (const double v : x) squares += v * v;
  for (double& v : x) v /= std::sqrt(squares);
  for (int step = 0; step < steps; ++step) {
    const Doubles a = Product(x, Transposed(x, rows, cols), rows, cols, rows);
    const Doubles aa = Product(a, a, rows, rows, rows);
    Doubles factor(a.size());
    for (size_t i = 0; i < a.size(); ++i) factor[i] = -4.7750 * a[i] + 2.0315 * aa[i];
    const Doubles moved = Product(factor, x, rows, rows, cols);
    for (size_t i = 0; i < x.size(); ++i) x[i] = 3.4445 * x[i] + moved[i];
  }
  return x;
}

std::vector<float> Random(uint64_t seed, int64_t count) {
  std::vector<float> u(count);
  for (int64_t i = 0; i < count; ++i)
    u[i] = static_cast<float>(static_cast<double>(SplitMix64(seed, i) >> 11) * 0x1p-53 - 0.5);
  return u;
}

struct Shape {
  int64_t rows;
  int64_t cols;
};
class NewtonSchulzTest : public ::testing::TestWithParam<Shape> {};

TEST_P(NewtonSchulzTest, MatchesDefinition) {
  const auto [rows, cols] = GetParam();
  const std::vector<float> u = Random(rows * 1000 + cols, rows * cols);
  const Doubles want = Slow(Doubles(u.begin(), u.end()), rows, cols, 5);
  for (const VectorKernels& kernels : SupportedVectorKernels()) {
    std::vector<float> got = u;
    NewtonSchulz(*kernels.matrix, rows, cols, 5, absl::MakeSpan(got));
    for (size_t i = 0; i < got.size(); ++i)
      ASSERT_NEAR(got[i], want[i], 2e-4) << kernels.name << ", element " << i;
  }
}

TEST_P(NewtonSchulzTest, SingularValuesComeNearOne) {
  const auto [rows, cols] = GetParam();
  std::vector<float> u = Random(3, rows * cols);
  NewtonSchulz(*SupportedVectorKernels().back().matrix, rows, cols, 5, absl::MakeSpan(u));
  double squares = 0;  // the sum of the squared singular values
  for (const float x : u) squares += double{x} * double{x};
  const double mean = squares / static_cast<double>(std::min(rows, cols));
  EXPECT_GT(mean, 0.4);
  EXPECT_LT(mean, 1.4);
}

INSTANTIATE_TEST_SUITE_P(Shapes, NewtonSchulzTest,
                         ::testing::Values(Shape{64, 64}, Shape{32, 96}, Shape{96, 40},
                                           Shape{17, 33}, Shape{1, 5}, Shape{70, 7},
                                           Shape{3, 600}));

TEST(NewtonSchulzTest, ZerosStayZerosAndScaleDoesNotMatter) {
  std::vector<float> zeros(12, 0);
  const MatrixKernels& kernels = *SupportedVectorKernels().back().matrix;
  NewtonSchulz(kernels, 3, 4, 5, absl::MakeSpan(zeros));
  EXPECT_EQ(zeros, std::vector<float>(12, 0));
  std::vector<float> u = Random(8, 12), scaled = u;
  for (float& x : scaled) x *= 0x1p-60f;  // a power of two changes no rounding
  NewtonSchulz(kernels, 3, 4, 5, absl::MakeSpan(u));
  NewtonSchulz(kernels, 3, 4, 5, absl::MakeSpan(scaled));
  EXPECT_EQ(u, scaled);
}

}  // namespace
}  // namespace distro
