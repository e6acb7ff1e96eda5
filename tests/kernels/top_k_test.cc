#include "kernels/cpu/top_k.h"

#include <cmath>

#include "kernels/cpu/reference.h"
#include "tests/kernels/backends.h"

namespace distro {
namespace {

struct Selection {
  std::string name;
  std::function<void(const float* c, int k, uint16_t* positions, float* values)> top_k;
};

std::vector<Selection> Selections() {
  std::vector<Selection> all = {{"cuda_emulated", testing::EmulatedSelectLargest}};
  for (const VectorKernels& kernels : SupportedVectorKernels()) {
    all.push_back(
        {kernels.name, [kernels](const float* c, int k, uint16_t* positions, float* values) {
           TopKScratch scratch;
           TopK(*kernels.transform, c, k, &scratch, positions, values);
         }});
  }
  return all;
}

class TopKTest : public ::testing::TestWithParam<Selection> {
 protected:
  // Compares with the reference for many k.
  void ExpectAsReference(const std::vector<float>& c) {
    for (int k :
         {1, 2, 3, 4, 5, 16, 32, 33, 63, 64, 65, 100, 128, 512, 1000, 1024, 1025, 4095, 4096}) {
      std::vector<uint16_t> got(k), want(k);
      std::vector<float> got_values(k), want_values(k);
      GetParam().top_k(c.data(), k, got.data(), got_values.data());
      reference::TopK(c.data(), k, want.data(), want_values.data());
      ASSERT_EQ(got, want) << "k " << k;
      ASSERT_EQ(testing::Bits(got_values), testing::Bits(want_values)) << "k " << k;
    }
  }
};
INSTANTIATE_TEST_SUITE_P(All, TopKTest, ::testing::ValuesIn(Selections()),
                         [](const auto& c) { return c.param.name; });

TEST_P(TopKTest, RandomCoefficients) {
  for (uint64_t seed = 0; seed < 20; ++seed) ExpectAsReference(testing::RandomFloats(seed, 4096));
}

TEST_P(TopKTest, TiesGoToTheLowerPosition) {
  for (int levels : {1, 2, 3, 7, 50, 1000}) {
    std::vector<float> c(4096);
    for (int i = 0; i < 4096; ++i) c[i] = std::round(testing::RandomFloat(levels, i) * levels);
    ExpectAsReference(c);
  }
}

TEST_P(TopKTest, ZerosOfBothSignsAreEqual) {
  std::vector<float> c(4096, 0.0f);
  for (int i = 0; i < 4096; i += 3) c[i] = -0.0f;
  ExpectAsReference(c);
  c[4000] = 0x1p-149f;
  ExpectAsReference(c);
}

TEST_P(TopKTest, EnergyInOneRowOneColumnOrOneCorner) {
  std::vector<float> row(4096, 0.0f), column(4096, 0.0f), corner(4096);
  for (int i = 0; i < 64; ++i) {
    row[17 * 64 + i] = testing::RandomFloat(1, i);
    column[i * 64 + 17] = testing::RandomFloat(2, i);
  }
  for (int i = 0; i < 4096; ++i) corner[i] = testing::RandomFloat(3, i) / (1.0f + i / 64 + i % 64);
  ExpectAsReference(row);
  ExpectAsReference(column);
  ExpectAsReference(corner);
}

TEST_P(TopKTest, DenormalsInfinitiesAndNanHaveAnOrder) {
  std::vector<float> c = testing::RandomFloats(4, 4096);
  for (float& x : c) x *= 0x1p-135f;
  ExpectAsReference(c);
  c[100] = -std::numeric_limits<float>::infinity();
  c[50] = testing::kNan;
  c[3000] = 1.0f;
  ExpectAsReference(c);
}

}  // namespace
}  // namespace distro
