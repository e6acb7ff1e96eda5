// The transform has the error that its header derives, for whatever samples: the axis of a GPU, and
// both axes of each width of a CPU.
#include "kernels/forward_transform.h"

#include <array>
#include <cmath>
#include <functional>

#include "kernels/basis.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/reference.h"
#include "tests/kernels/backends.h"

namespace distro {
namespace {

using testing::RandomFloat;
using testing::RandomFloats;

using Samples = std::array<float, kBlockSide>;
using Content = std::function<float(int n)>;

constexpr double kDenormal = 0x1p-140;  // where products fall below the smallest float

Samples SamplesOf(const Content& content) {
  Samples x;
  for (int n = 0; n < kBlockSide; ++n) x[n] = content(n);
  return x;
}

// Relative to the norm of the samples.
void ExpectWithinTheBound(const Samples& x) {
  Samples c;
  testing::EmulatedForwardTransform(x.data(), c.data());
  double squares = 0;
  for (int f = 0; f < kBlockSide; ++f) {
    double exact = 0;
    for (int n = 0; n < kBlockSide; ++n) exact += kBasisF64.at[f][n] * double{x[n]};
    squares += (c[f] - exact) * (c[f] - exact);
  }
  EXPECT_LE(std::sqrt(squares),
            kForwardTransformRoundings * 0x1p-24 * testing::Norm(x) + kDenormal);
}

TEST(ForwardTransformTest, BoundsErrorOfImpulse) {
  for (int at = 0; at < kBlockSide; ++at)
    ExpectWithinTheBound(SamplesOf([at](int n) { return n == at ? 1.0f : 0.0f; }));
}

TEST(ForwardTransformTest, RandomSamplesOfEveryScale) {
  for (uint64_t seed = 0; seed < 500; ++seed) {
    const std::vector<float> x = RandomFloats(seed, kBlockSide);
    for (const int exponent : {-149, -130, -60, 0, 60, 120})
      ExpectWithinTheBound(SamplesOf([&](int n) { return std::ldexp(x[n], exponent); }));
  }
}

// Of a basis row nearly everything cancels; its signs make the largest sum of one frequency.
TEST(ForwardTransformTest, RowsOfTheBasisAndTheirSigns) {
  for (int f = 0; f < kBlockSide; ++f) {
    ExpectWithinTheBound(SamplesOf([f](int n) { return kBasis.at[f][n]; }));
    ExpectWithinTheBound(SamplesOf([f](int n) { return std::copysign(1.0f, kBasis.at[f][n]); }));
    ExpectWithinTheBound(
        SamplesOf([f](int n) { return 1.0f + 0x1p-20f * kBasis.at[f][n] + RandomFloat(f, n); }));
  }
}

// Sums round most when their terms differ in scale: small samples beside one or several large ones.
TEST(ForwardTransformTest, SamplesOfDifferentScales) {
  for (uint64_t seed = 0; seed < 500; ++seed) {
    ExpectWithinTheBound(SamplesOf([seed](int n) {
      return std::ldexp(RandomFloat(seed, n), static_cast<int>(SplitMix64(~seed, n) % 48) - 24);
    }));
    ExpectWithinTheBound(SamplesOf([seed](int n) {
      return n == static_cast<int>(seed % kBlockSide) ? 1.0f : 0x1p-12f * RandomFloat(seed, n);
    }));
    ExpectWithinTheBound(
        SamplesOf([seed](int n) { return std::copysign(1.0f, RandomFloat(seed, n)); }));
  }
}

// Differences of equal samples are 0, and a sum of 64 is divided by 8.
TEST(ForwardTransformTest, ConstantsHaveOneFrequencyExactly) {
  Samples c;
  const Samples x = SamplesOf([](int) { return 0.375f; });
  testing::EmulatedForwardTransform(x.data(), c.data());
  EXPECT_EQ(c[0], 3.0f);
  for (int f = 1; f < kBlockSide; ++f) EXPECT_EQ(c[f], 0.0f) << f;
}

class BlockTransformTest : public ::testing::TestWithParam<VectorKernels> {
 protected:
  void ExpectWithinTheBound(const std::function<float(int row, int column)>& content) {
    alignas(64) float x[kBlockElements], c[kBlockElements], scratch[kBlockElements];
    float want[kBlockElements];
    for (int i = 0; i < kBlockElements; ++i) x[i] = c[i] = content(i / kBlockSide, i % kBlockSide);
    GetParam().transform->forward(c, scratch);
    reference::ForwardTransform(x, want);
    double squares = 0;
    for (int i = 0; i < kBlockElements; ++i)
      squares += (double{c[i]} - want[i]) * (double{c[i]} - want[i]);
    const double roundings = 2 * kForwardTransformRoundingsUnfused + 1;  // the reference's one
    EXPECT_LE(std::sqrt(squares), roundings * 0x1p-24 * testing::Norm(x) + 64 * kDenormal);
  }
};
INSTANTIATE_TEST_SUITE_P(All, BlockTransformTest, ::testing::ValuesIn(SupportedVectorKernels()),
                         [](const auto& c) { return std::string(c.param.name); });

TEST_P(BlockTransformTest, BoundsErrorOfImpulse) {
  for (int at = 0; at < kBlockElements; at += 61)
    ExpectWithinTheBound([at](int r, int c) { return r * kBlockSide + c == at ? 1.0f : 0.0f; });
}

TEST_P(BlockTransformTest, RandomSamplesOfEveryScale) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const std::vector<float> x = RandomFloats(seed, kBlockElements);
    for (const int exponent : {-149, -130, -60, 0, 60, 110})
      ExpectWithinTheBound(
          [&](int r, int c) { return std::ldexp(x[r * kBlockSide + c], exponent); });
  }
}

// Every row of the basis along each axis.
TEST_P(BlockTransformTest, ProductsOfRowsOfTheBasis) {
  for (int f = 0; f < kBlockSide; ++f) {
    const int g = (f * 27 + 5) % kBlockSide;
    ExpectWithinTheBound([&](int r, int c) { return kBasis.at[f][r] * kBasis.at[g][c]; });
    ExpectWithinTheBound(
        [&](int r, int c) { return std::copysign(1.0f, kBasis.at[f][r] * kBasis.at[g][c]); });
  }
}

TEST_P(BlockTransformTest, SamplesOfDifferentScales) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    ExpectWithinTheBound([seed](int r, int c) {
      const int at = r * kBlockSide + c;
      return std::ldexp(RandomFloat(seed, at), static_cast<int>(SplitMix64(~seed, at) % 48) - 24);
    });
  }
}

}  // namespace
}  // namespace distro
