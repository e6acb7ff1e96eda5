// The deltas method's error buffer and records on an emulated and a real GPU: elements have the
// bits of the CPU's functions, frequencies differ by at most the transform's roundings.
#include <algorithm>
#include <bit>
#include <cmath>

#include "kernels/cpu/reference.h"
#include "tests/kernels/gpu_deltas.h"

namespace distro {
namespace {

using testing::Bits;
using testing::CompressedDeltas;
using testing::CompressOnCpu;
using testing::Describe;
using testing::kBeta;
using testing::RandomRound;
using testing::Round;
using testing::ShapeCase;

// A round without movement: a = e, bit for bit except -0.
Round RoundOf(const std::vector<float>& e) {
  return {.begin = std::vector<float>(e.size()), .x = std::vector<float>(e.size()), .error = e};
}

class CompressDeltasTest : public testing::GpuDeltasTest {};
INSTANTIATE_TEST_SUITE_P(Gpus, CompressDeltasTest, ::testing::ValuesIn(testing::AllGpus()),
                         testing::GpuName);

TEST_P(CompressDeltasTest, BufferAndRecordsOfElementsAreTheCpusToTheBit) {
  std::vector<ShapeCase> shapes = testing::Shapes();
  shapes.push_back(testing::Matrix(3, 5));
  for (const ShapeCase& shape : shapes) {
    SCOPED_TRACE(Describe(shape));
    const Round round = RandomRound(shape, 1);
    for (const int k : {1, 2, 8, 32, 63, 64, 65, 200, 4095, 4096}) {
      SCOPED_TRACE(k);
      ExpectSame(gpu_.Compress(shape, round, kBeta, k, 255, false),
                 CompressOnCpu(shape, round, kBeta, k, 255));
    }
  }
}

TEST_P(CompressDeltasTest, MatchesCpuForDecaysAndCaps) {
  const ShapeCase shape = testing::Matrix(130, 70);
  const Round round = RandomRound(shape, 11);
  for (const float beta : {0.0f, 0.95f, 1.0f}) {
    for (const int cap : {0, 100, 130, 255}) {
      ExpectSame(gpu_.Compress(shape, round, beta, 32, static_cast<uint8_t>(cap), false),
                 CompressOnCpu(shape, round, beta, 32, static_cast<uint8_t>(cap)));
    }
  }
}

TEST_P(CompressDeltasTest, CompressesRangeAsWhole) {
  const ShapeCase whole = testing::Matrix(200, 150);
  const BlockRange range = {.first = 5, .count = 4};
  const Round round = RandomRound(whole, 9);
  for (const bool as_dct : {false, true}) {
    const CompressedDeltas all = gpu_.Compress(whole, round, kBeta, 16, 255, as_dct);
    const CompressedDeltas part =
        gpu_.Compress({whole.matrix, range}, round, kBeta, 16, 255, as_dct);
    EXPECT_EQ(part.update, testing::PartOf(all.update, range));
  }
}

// Selection when few or no magnitudes differ: more candidates than the array holds, zeros inside
// the tensor next to padding, both signs of 0.
TEST_P(CompressDeltasTest, TiesGoToTheLowerPositionAndZerosBeforeWhatIsOutside) {
  const std::vector<std::function<float(int64_t)>> contents = {
      [](int64_t) { return 0.0f; },
      [](int64_t) { return -0.0f; },
      [](int64_t i) { return i % 2 == 0 ? 0.25f : -0.25f; },
      [](int64_t i) { return i % 3 == 0 ? 0.25f : -0.0f; },
      [](int64_t i) { return i == 17 ? -1e-3f : 0.0f; },
      [](int64_t i) { return static_cast<float>(i % 5) * 0x1p-20f; },
      [](int64_t i) { return (i % 2 == 0 ? 0x1p-149f : -0x1p-126f) * static_cast<float>(i % 4); },
      [](int64_t i) { return i % 100 == 99 ? -3.4e38f : 3e38f; }};
  for (const ShapeCase& shape :
       {testing::Matrix(64, 64), testing::Matrix(3, 5), testing::Matrix(70, 70),
        testing::Vector(131), testing::Vector(1)}) {
    SCOPED_TRACE(Describe(shape));
    for (size_t c = 0; c < contents.size(); ++c) {
      std::vector<float> e;
      for (int64_t i = 0; i < shape.matrix.elements; ++i) e.push_back(contents[c](i));
      for (const int k : {1, 8, 32, 64, 65, 4096}) {
        SCOPED_TRACE(std::to_string(c) + ", k " + std::to_string(k));
        ExpectSame(gpu_.Compress(shape, RoundOf(e), 1, k, 255, false),
                   CompressOnCpu(shape, RoundOf(e), 1, k, 255));
      }
    }
  }
}

// Magnitudes about those at which a record is empty and a code begins.
TEST_P(CompressDeltasTest, CodesAndEmptyRecordsAreTheCpusAtEveryScale) {
  const ShapeCase shape = testing::Matrix(64, 64 * 128);
  std::vector<float> e(shape.matrix.elements);
  for (int64_t i = 0; i < shape.matrix.elements; ++i) {
    const int64_t block = i % shape.matrix.cols / 64;
    e[i] = std::ldexp(testing::RandomFloat(3, i), -52 + static_cast<int>(block) / 2);
  }
  for (const int k : {1, 3, 32}) {
    const CompressedDeltas got = gpu_.Compress(shape, RoundOf(e), 1, k, 255, false);
    ExpectSame(got, CompressOnCpu(shape, RoundOf(e), 1, k, 255));
    EXPECT_TRUE(got.update.empty(0));
    EXPECT_EQ(got.update.codes.back(), 255);
  }
}

TEST_P(CompressDeltasTest, FindsNonFinite) {
  const ShapeCase shape = testing::Matrix(70, 70);
  for (const float bad : {testing::kNan, -testing::kNan, INFINITY, -INFINITY,
                          std::bit_cast<float>(0x7FFFFFFF), std::bit_cast<float>(0xFFFFFFFF)}) {
    for (const int64_t at : {int64_t{0}, int64_t{3000}, shape.matrix.elements - 1}) {
      Round round = RandomRound(shape, 5);
      EXPECT_TRUE(gpu_.IsFinite(round, kBeta));
      round.x[at] = bad;
      EXPECT_FALSE(gpu_.IsFinite(round, kBeta)) << bad << " at " << at;
      for (const bool as_dct : {false, true}) {
        const DeltaUpdate update = gpu_.Compress(shape, round, kBeta, 8, 200, as_dct).update;
        EXPECT_EQ(ValidateDeltaUpdate(update, std::vector<uint8_t>(shape.blocks.count, 200)),
                  absl::OkStatus());
      }
    }
  }
  Round round = RandomRound(shape, 5);
  round.begin[9] = 3e38f;
  round.x[9] = -3e38f;
  EXPECT_FALSE(gpu_.IsFinite(round, kBeta)) << "their difference is none";
  EXPECT_FALSE(DeltaIsFinite(kBeta, round.begin, round.x, round.error));
}

TEST_P(CompressDeltasTest, FrequenciesAreTheLargestOfTheTransform) {
  for (const ShapeCase& shape : testing::Shapes()) {
    SCOPED_TRACE(Describe(shape));
    const Round round = RandomRound(shape, 7);
    for (const int k : {1, 16, 65, 4096}) {
      const CompressedDeltas got = gpu_.Compress(shape, round, kBeta, k, 255, true);
      ASSERT_EQ(Bits(got.error), Bits(CompressOnCpu(shape, round, kBeta, k, 255).error));
      ASSERT_EQ(ValidateDeltaUpdate(got.update, std::vector<uint8_t>(shape.blocks.count, 255)),
                absl::OkStatus());
      for (int64_t b = 0; b < shape.blocks.count; ++b) {
        const BlockSite site = SiteOf(shape.matrix, shape.blocks.first + b);
        std::vector<float> block(kBlockElements), c(kBlockElements);
        for (int i = 0; i < kBlockElements; ++i) {
          if (ExtentOf(site).Contains(i))
            block[i] = got.error[site.offset + i / 64 * site.stride + i % 64];
        }
        reference::ForwardTransform(block.data(), c.data());
        std::vector<float> magnitudes;
        for (const float x : c) magnitudes.push_back(std::abs(x));
        std::ranges::nth_element(magnitudes, magnitudes.begin() + k - 1, std::greater<>());
        // An error of a coefficient as in compress_test.cc: 72 roundings of the block's norm.
        const float least = magnitudes[k - 1];
        const double near = 2 * 72 * 0x1p-24 * testing::Norm(block);
        int64_t sum = 0;
        for (int i = 0; i < k; ++i) {
          const float value = c[got.update.PositionsOf(b)[i]];
          ASSERT_GE(std::abs(value), least - near);
          if (std::abs(value) > near) {
            ASSERT_EQ(got.update.SignsOf(b)[i], value < 0 ? -1 : 1);
          }
          sum += ScaleUnits(value);
        }
        EXPECT_NEAR(got.update.codes[b], *ChooseScale(sum, k), 1);
      }
    }
  }
}

}  // namespace
}  // namespace distro
