// The deltas method's error feedback on an emulated and a real GPU: elements have the bits of the
// CPU's function, frequencies differ by at most the transform's roundings.
#include <algorithm>
#include <cmath>

#include "kernels/cpu/deltas_transform.h"
#include "tests/kernels/gpu_deltas.h"

namespace distro {
namespace {

using testing::Bits;
using testing::CompressedDeltas;
using testing::CompressOnCpu;
using testing::Describe;
using testing::kBeta;
using testing::PartOf;
using testing::RandomFloats;
using testing::RandomRound;
using testing::ReturnedDeltas;
using testing::ShapeCase;
using testing::SomeOf;

class FeedbackDeltasTest : public testing::GpuDeltasTest {};
INSTANTIATE_TEST_SUITE_P(Gpus, FeedbackDeltasTest, ::testing::ValuesIn(testing::AllGpus()),
                         testing::GpuName);

DeltaRecordsView All(const DeltaUpdate& update) {
  return ViewOf(update, {.first = 0, .count = update.blocks()});
}

TEST_P(FeedbackDeltasTest, SubtractsReturnedElementsAsCpu) {
  for (const ShapeCase& shape : testing::Shapes()) {
    SCOPED_TRACE(Describe(shape));
    for (const int k : {1, 8, 32, 500, 4096}) {
      CompressedDeltas sent = CompressOnCpu(shape, RandomRound(shape, 3), kBeta, k, 255);
      for (int64_t b = 4; b < shape.blocks.count; b += 5) {  // empty records
        sent.update.codes[b] = 0;
        std::fill_n(sent.update.positions.begin() + b * k, k, 0);
        std::fill_n(sent.update.signs.begin() + b * k, k, 0);
      }
      const DeltaResult result = SomeOf(sent.update);
      std::vector<float> want = sent.error;
      const int64_t count = SubtractReturned(shape.matrix, shape.blocks, All(sent.update),
                                             OnHost(result).view, absl::MakeSpan(want));
      const ReturnedDeltas got = gpu_.Feedback(shape, false, sent.update, result, sent.error);
      EXPECT_EQ(Bits(got.error), Bits(want));
      EXPECT_EQ(got.count, count);
    }
  }
}

TEST_P(FeedbackDeltasTest, SubtractsReturnedFrequencies) {
  DeltaTransform transform;
  for (const ShapeCase& shape : testing::Shapes()) {
    SCOPED_TRACE(Describe(shape));
    for (const int k : {1, 8, 32, 4096}) {
      const std::vector<float> e = RandomFloats(4, shape.matrix.elements);
      DeltaUpdate update{.k = k, .positions = {}, .signs = {}, .codes = {}};
      transform.AppendLargest(shape.matrix, e, 255, &update);
      update = PartOf(update, shape.blocks);
      const DeltaResult result = SomeOf(update);
      std::vector<float> want = e;
      const int64_t count = transform.SubtractReturned(shape.matrix, shape.blocks, All(update),
                                                       OnHost(result).view, absl::MakeSpan(want));
      const ReturnedDeltas got = gpu_.Feedback(shape, true, update, result, e);
      EXPECT_EQ(got.count, count);
      // As of Feedback in compress_test.cc; |q| of a block is at most sqrt(k) * M(255), 30.
      for (size_t i = 0; i < e.size(); ++i)
        ASSERT_NEAR(got.error[i], want[i], (2 * 65 + 2) * 0x1p-24 * 32) << i;
    }
  }
}

TEST_P(FeedbackDeltasTest, PositionsOutsideTheirRulesTouchNothingOutside) {
  const ShapeCase shape = testing::Matrix(64, 70);
  const std::vector<float> e = RandomFloats(4, shape.matrix.elements);
  const DeltaUpdate update = {.k = 3,
                              .positions = {4095, 4096, 65535, 6, 64, 4095},
                              .signs = {1, 1, -1, 1, 1, 1},
                              .codes = {200, 200}};
  DeltaResult result;
  result.positions = {4095, 4096, 65535, 6, 64, 65535};
  result.offsets = {0, 3, 6};
  const ReturnedDeltas got = gpu_.Feedback(shape, false, update, result, e);
  std::vector<float> want = e;
  const float q = std::ldexp(static_cast<float>(ScaleOf(200)), -44);
  want[63 * 70 + 63] -= q;
  want[70 + 64] -= q;  // position 6 of the second block, which is 6 wide, is outside
  EXPECT_EQ(Bits(got.error), Bits(want));
  EXPECT_EQ(got.count, 2);
  gpu_.Feedback(shape, true, update, result, e);
}

}  // namespace
}  // namespace distro
