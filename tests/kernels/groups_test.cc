// A group that does many tasks one after another gives the bits of many groups that do one each.
// Results of the elementwise kernels are compared with the reference's.
//
// A device of one multiprocessor gets 16 groups (launch.h), so shapes have more tasks than that. In
// preset tsan, as in every test of emulated kernels, two threads of a group that use a word without
// a barrier between them are a failure.
#include <cmath>
#include <thread>
#include <vector>

#include "tests/kernels/backends.h"
#include "tests/kernels/emulation/group.h"
#include "tests/kernels/gpu_deltas.h"

namespace distro {
namespace {

using testing::RandomFloats;
using testing::ShapeCase;

constexpr int kFew = 1, kMany = 1000;  // multiprocessors

class GroupsTest : public ::testing::Test {
 protected:
  const std::unique_ptr<testing::WaitingBackend> few_ = testing::MakeEmulatedCudaBackend(kFew);
  const std::unique_ptr<testing::WaitingBackend> many_ = testing::MakeEmulatedCudaBackend(kMany);
};

// More than 16 blocks, and more than 16 pieces of a sum of squares, with edges.
ShapeCase SomeShape() { return testing::Matrix(390, 300); }
std::vector<ShapeCase> SomeShapes() { return {SomeShape(), testing::Vector(17 * 4096 + 5)}; }

// Half of the elements are 0: blocks with more candidates than fit are selected bit by bit.
std::vector<float> WithZeros(std::vector<float> x) {
  for (size_t i = 0; i < x.size() / 2; ++i) x[i] = 0;
  return x;
}

TEST_F(GroupsTest, CompressAndFeedback) {
  for (const ShapeCase& shape : SomeShapes()) {
    const int64_t elements = shape.matrix.elements;
    const std::vector<float> gradient = WithZeros(RandomFloats(1, elements));
    for (const int k : {6, 65}) {
      SCOPED_TRACE(testing::Describe(shape) + ", k " + std::to_string(k));
      const SignCompressOptions options = {.beta = 0.5f, .eta = 0.25f, .gradient_scale = 1, .k = k};
      std::vector<std::vector<float>> momenta, values;
      for (testing::WaitingBackend* const backend : {few_.get(), many_.get()}) {
        std::vector<float>& momentum = momenta.emplace_back(elements);
        std::vector<float>& kept = values.emplace_back(shape.blocks.count * k);
        std::vector<uint16_t> positions(kept.size());
        backend->CompressSigns(shape.matrix, shape.blocks, options, gradient,
                               absl::MakeSpan(momentum), absl::MakeSpan(positions),
                               absl::MakeSpan(kept));
        backend->FeedbackSigns(shape.matrix, shape.blocks, k, positions, kept,
                               absl::MakeSpan(momentum));
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

TEST_F(GroupsTest, Apply) {
  for (const ShapeCase& shape : SomeShapes()) {
    for (const bool broken : {false, true}) {
      const SomeVotes votes(shape.blocks.count, broken);
      std::vector<std::vector<float>> parameters;
      for (testing::WaitingBackend* const backend : {few_.get(), many_.get()}) {
        std::vector<float>& p = parameters.emplace_back(RandomFloats(2, shape.matrix.elements));
        EXPECT_EQ(
            backend
                ->ApplyVotes(shape.matrix, shape.blocks, {.eta = 0.5f, .eta_lambda = 0.25f},
                             {votes.offsets, votes.positions, votes.values}, absl::MakeSpan(p))
                .ok(),
            !broken);
      }
      EXPECT_EQ(testing::Bits(parameters[0]), testing::Bits(parameters[1]));
      EXPECT_NE(parameters[0], RandomFloats(2, shape.matrix.elements));
    }
  }
}

TEST_F(GroupsTest, ApplyDeltas) {
  const ShapeCase shape = testing::Matrix(320, 256);  // every position is inside
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
      for (testing::WaitingBackend* const backend : {few_.get(), many_.get()}) {
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

TEST_F(GroupsTest, CompressDeltasAndFeedbackDeltas) {
  testing::GpuDeltas few(testing::MakeEmulatedGpu(kFew));
  testing::GpuDeltas many(testing::MakeEmulatedGpu(kMany));
  for (const ShapeCase& shape : SomeShapes()) {
    testing::Round round = testing::RandomRound(shape, 1);
    for (auto* const array : {&round.begin, &round.x, &round.error}) *array = WithZeros(*array);
    for (const bool as_dct : {false, true}) {
      for (const int k : {32, 65}) testing::ExpectSameRound(few, many, shape, round, as_dct, k);
    }
  }
}

TEST_F(GroupsTest, FindNotFinite) {
  const ShapeCase shape = SomeShape();
  const int64_t n = shape.matrix.elements;
  for (const int multiprocessors : {kFew, kMany}) {
    testing::GpuDeltas gpu(testing::MakeEmulatedGpu(multiprocessors));
    testing::Round round = testing::RandomRound(shape, 1);
    EXPECT_TRUE(gpu.IsFinite(round, 1));
    for (const int64_t i : {int64_t{0}, int64_t{20000}, n - 1}) {
      testing::Round broken = round;
      broken.x[i] = testing::kNan;
      EXPECT_FALSE(gpu.IsFinite(broken, 1)) << i;
    }
    std::fill(round.x.begin(), round.x.end(), testing::kNan);  // every thread finds one
    EXPECT_FALSE(gpu.IsFinite(round, 1));
  }
}

TEST_F(GroupsTest, DeltaSquares) {
  const testing::Round round = testing::RandomRound(testing::Vector(17 * kPiece + 5), 1);
  const auto elements = static_cast<int64_t>(round.error.size());
  std::vector<std::vector<double>> squares;
  for (const int multiprocessors : {kFew, kMany}) {
    const std::unique_ptr<cuda::Gpu> gpu = testing::MakeEmulatedGpu(multiprocessors);
    std::vector<TwinArray<float>> arrays;
    for (const auto* content : {&round.begin, &round.x, &round.error}) {
      arrays.push_back(testing::TwinOf(gpu.get(), *content));
      arrays.back().CopyIn();
    }
    TwinArray<double> sums = testing::TwinOf(gpu.get(), std::vector<double>(2 * 18));
    gpu->DeltaSquares(arrays[0].device().data(), arrays[1].device().data(),
                      arrays[2].device().data(), elements, sums.device().data(),
                      sums.device().data() + 18);
    sums.CopyOut();
    ASSERT_TRUE(gpu->Finish().ok());
    squares.emplace_back(sums.host().begin(), sums.host().end());
  }
  EXPECT_EQ(squares[0], squares[1]);
}

TEST_F(GroupsTest, LookaheadAndStateHash) {
  const int64_t n = SomeShape().matrix.elements;
  const std::vector<float> p = RandomFloats(4, n), m = RandomFloats(5, n);
  std::vector<float> want(n);
  const auto reference = testing::WaitingReference();
  reference->Lookahead(4e-4f, p, m, absl::MakeSpan(want));
  for (testing::WaitingBackend* const backend : {few_.get(), many_.get()}) {
    std::vector<float> out(n);
    backend->Lookahead(4e-4f, p, m, absl::MakeSpan(out));
    EXPECT_EQ(testing::Bits(out), testing::Bits(want));
    EXPECT_EQ(backend->StateHash(7, p), reference->StateHash(7, p));
  }
}

// All groups add to one word: an addition for each warp would make them wait for each other.
TEST_F(GroupsTest, AddsHashOnce) {
  const std::vector<float> p = RandomFloats(4, SomeShape().matrix.elements);
  const int64_t before = testing::atomic_additions;
  few_->StateHash(0, p);
  EXPECT_EQ(testing::atomic_additions - before, 16);
}

TEST_F(GroupsTest, RowSums) {
  const ShapeCase shape = SomeShape();
  const std::vector<float> gradient = RandomFloats(4, shape.matrix.elements);
  EXPECT_EQ(few_->RowSums(shape.matrix, gradient), many_->RowSums(shape.matrix, gradient));
}

// As ranks of a node do.
TEST_F(GroupsTest, SeveralThreadsLaunchAtOnce) {
  const ShapeCase shape = testing::Matrix(130, 300);
  const std::vector<float> gradient = RandomFloats(4, shape.matrix.elements);
  const std::vector<double> want = few_->RowSums(shape.matrix, gradient);
  std::vector<std::vector<double>> got(4);
  std::vector<std::thread> threads;
  for (std::vector<double>& sums : got) {
    threads.emplace_back(
        [&] { sums = testing::MakeEmulatedCudaBackend(kFew)->RowSums(shape.matrix, gradient); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::vector<double>& sums : got) EXPECT_EQ(sums, want);
}

// Sums of small integers are exact in any order.
TEST_F(GroupsTest, AddsElementsToBlockRowsSum) {
  for (const ShapeCase& shape : SomeShapes()) {
    std::vector<float> gradient = RandomFloats(4, shape.matrix.elements);
    for (float& g : gradient) g = std::round(g * 10);
    for (testing::WaitingBackend* const backend : {few_.get(), many_.get()})
      EXPECT_EQ(backend->RowSums(shape.matrix, gradient),
                testing::WaitingReference()->RowSums(shape.matrix, gradient));
  }
}

}  // namespace
}  // namespace distro
