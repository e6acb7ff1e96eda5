// The GPU's kernels on real threads have the bits of one thread after another. In preset tsan, two
// threads that use a word without a barrier between them are a failure.
#include <vector>

#include "tests/kernels/backends.h"
#include "tests/kernels/gpu_deltas.h"

namespace distro {
namespace {

using testing::EmulatedOrder;
using testing::EmulatedThreads;
using testing::RandomFloats;
using testing::ShapeCase;

class PhasesTest : public ::testing::Test {
 protected:
  const std::unique_ptr<testing::WaitingBackend> real_ =
      testing::MakeEmulatedCudaBackend(EmulatedThreads::kReal);
  const std::unique_ptr<testing::WaitingBackend> in_turn_ = testing::MakeEmulatedCudaBackend();
};

// Several blocks one after another, with edges.
std::vector<ShapeCase> SomeShapes() { return {testing::Matrix(70, 130), testing::Vector(4100)}; }

// Half of the elements are 0: blocks with more candidates than fit are selected bit by bit.
std::vector<float> WithZeros(std::vector<float> x) {
  for (size_t i = 0; i < x.size() / 2; ++i) x[i] = 0;
  return x;
}

TEST_F(PhasesTest, CompressAndFeedback) {
  for (const ShapeCase& shape : SomeShapes()) {
    const int64_t elements = shape.matrix.elements;
    const std::vector<float> gradient = WithZeros(RandomFloats(1, elements));
    for (const int k : {6, 65}) {
      SCOPED_TRACE(testing::Describe(shape) + ", k " + std::to_string(k));
      const CompressOptions options = {.beta = 0.5f, .eta = 0.25f, .gradient_scale = 1, .k = k};
      std::vector<std::vector<float>> momenta, values;
      for (testing::WaitingBackend* const backend : {real_.get(), in_turn_.get()}) {
        std::vector<float>& momentum = momenta.emplace_back(elements);
        std::vector<float>& kept = values.emplace_back(shape.blocks.count * k);
        std::vector<uint16_t> positions(kept.size());
        backend->Compress(shape.matrix, shape.blocks, options, gradient, absl::MakeSpan(momentum),
                          absl::MakeSpan(positions), absl::MakeSpan(kept));
        backend->Feedback(shape.matrix, shape.blocks, k, positions, kept, absl::MakeSpan(momentum));
      }
      EXPECT_EQ(testing::Bits(momenta[0]), testing::Bits(momenta[1]));
      EXPECT_EQ(testing::Bits(values[0]), testing::Bits(values[1]));
    }
  }
}

// Every seventh position has a vote; the last block's are not in order when `broken`.
struct SomeVotes {
  SomeVotes(int64_t blocks, bool broken) {
    for (int64_t b = 0; b < blocks; ++b) {
      for (int position = static_cast<int>(b); position < kBlockElements; position += 7) {
        positions.push_back(static_cast<uint16_t>(position));
        values.push_back(static_cast<int16_t>(position % 5 - 2));
      }
      offsets.push_back(static_cast<uint32_t>(positions.size()));
    }
    if (broken) positions.back() = 0;
  }
  std::vector<uint32_t> offsets = {0};
  std::vector<uint16_t> positions;
  std::vector<int16_t> values;
};

TEST_F(PhasesTest, Apply) {
  for (const ShapeCase& shape : SomeShapes()) {
    for (const bool broken : {false, true}) {
      const SomeVotes votes(shape.blocks.count, broken);
      std::vector<std::vector<float>> parameters;
      for (testing::WaitingBackend* const backend : {real_.get(), in_turn_.get()}) {
        std::vector<float>& p = parameters.emplace_back(RandomFloats(2, shape.matrix.elements));
        EXPECT_EQ(backend
                      ->Apply(shape.matrix, shape.blocks, {.eta = 0.5f, .eta_lambda = 0.25f},
                              {votes.offsets, votes.positions, votes.values}, absl::MakeSpan(p))
                      .ok(),
                  !broken);
      }
      EXPECT_EQ(testing::Bits(parameters[0]), testing::Bits(parameters[1]));
      EXPECT_NE(parameters[0], RandomFloats(2, shape.matrix.elements));
    }
  }
}

TEST_F(PhasesTest, ApplyDeltas) {
  const ShapeCase shape = testing::Matrix(128, 128);
  for (const bool broken : {false, true}) {
    const SomeVotes entries(shape.blocks.count, broken);
    std::vector<int8_t> signs;
    std::vector<uint8_t> levels;
    for (const int16_t value : entries.values) {
      signs.push_back(value < 0 ? -1 : 1);
      levels.push_back(static_cast<uint8_t>(value + 2));
    }
    const std::vector<uint8_t> codes(shape.blocks.count, 100);
    for (const bool as_dct : {false, true}) {
      std::vector<std::vector<float>> parameters;
      for (testing::WaitingBackend* const backend : {real_.get(), in_turn_.get()}) {
        std::vector<float>& p = parameters.emplace_back(RandomFloats(3, shape.matrix.elements));
        EXPECT_EQ(backend
                      ->ApplyDeltas(shape.matrix, shape.blocks, {.alpha = 1, .as_dct = as_dct},
                                    {entries.offsets, entries.positions, signs, levels, codes},
                                    absl::MakeSpan(p))
                      .ok(),
                  !broken);
      }
      EXPECT_EQ(testing::Bits(parameters[0]), testing::Bits(parameters[1]));
      EXPECT_NE(parameters[0], RandomFloats(3, shape.matrix.elements));
    }
  }
}

TEST_F(PhasesTest, CompressDeltasAndFeedbackDeltas) {
  testing::GpuDeltas real(testing::MakeEmulatedGpu(EmulatedOrder::kAtOnce, EmulatedThreads::kReal));
  testing::GpuDeltas in_turn(testing::MakeEmulatedGpu(EmulatedOrder::kAtOnce));
  for (const ShapeCase& shape : SomeShapes()) {
    testing::Round round = testing::RandomRound(shape, 1);
    for (auto* const array : {&round.begin, &round.x, &round.error}) *array = WithZeros(*array);
    for (const bool as_dct : {false, true}) {
      for (const int k : {32, 65}) testing::ExpectSameRound(real, in_turn, shape, round, as_dct, k);
    }
  }
}

TEST_F(PhasesTest, RowSums) {
  const ShapeCase shape = testing::Matrix(70, 130);
  const std::vector<float> gradient = RandomFloats(4, shape.matrix.elements);
  EXPECT_EQ(real_->RowSums(shape.matrix, gradient), in_turn_->RowSums(shape.matrix, gradient));
}

}  // namespace
}  // namespace distro
