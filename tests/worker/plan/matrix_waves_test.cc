#include "worker/plan/matrix_waves.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace distro::worker {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class MatrixWavesTest : public ::testing::Test {
 protected:
  std::vector<std::vector<int>> Waves(int ranks) const {
    std::vector<std::vector<int>> waves;
    for (const MatrixWave& wave : MatrixWaves(layout_, needs_whole_, ranks))
      waves.push_back(wave.matrices);
    return waves;
  }
  ShardPlan Shards(int ranks) const {
    return *ShardPlan::Create(layout_, {{0, 1}, {2, 3, 4}}, ranks);
  }

  const Layout layout_ = *Layout::Create(*Manifest::Create({{.name = "a", .shape = {200, 72}},
                                                            {.name = "b", .shape = {72, 72}},
                                                            {.name = "c", .shape = {72}},
                                                            {.name = "d", .shape = {100, 300}},
                                                            {.name = "e", .shape = {72, 200}}}),
                                         16);
  const std::vector<bool> needs_whole_ = {true, true, false, true, true};
};

// a and e cost the same; d most, b least.
TEST_F(MatrixWavesTest, OrdersByCost) {
  EXPECT_THAT(Waves(1),
              ElementsAre(ElementsAre(3), ElementsAre(0), ElementsAre(4), ElementsAre(1)));
  EXPECT_THAT(Waves(2), ElementsAre(ElementsAre(3, 0), ElementsAre(4, 1)));
  EXPECT_THAT(Waves(3), ElementsAre(ElementsAre(3, 0, 4), ElementsAre(1)));
  EXPECT_THAT(Waves(7), ElementsAre(ElementsAre(3, 0, 4, 1)));
}

TEST_F(MatrixWavesTest, WithoutMatricesThereIsNothingToDo) {
  EXPECT_THAT(MatrixWaves(layout_, {}, 2), IsEmpty());
  EXPECT_EQ(WaveScratchBytes(layout_, {}, nullptr, 0), 0);
}

TEST_F(MatrixWavesTest, SendsRowsToWorkingRank) {
  for (const int ranks : {1, 2, 3, 7}) {
    const ShardPlan shards = Shards(ranks);
    for (const MatrixWave& wave : MatrixWaves(layout_, needs_whole_, ranks)) {
      const std::vector<int64_t> counts = WaveCounts(shards, wave);
      ASSERT_EQ(counts.size(), size_t(ranks * ranks));
      for (int to = 0; to < ranks; ++to) {
        int64_t received = 0;
        for (int from = 0; from < ranks; ++from) received += counts[from * ranks + to];
        const bool works = to < static_cast<int>(wave.matrices.size());
        EXPECT_EQ(received, works ? layout_.tensors()[wave.matrices[to]].matrix.elements : 0);
      }
    }
  }
}

class MatrixBatchesTest : public ::testing::Test {
 protected:
  // The waves' numbers of matrices, batch by batch.
  std::vector<std::vector<size_t>> Batches(int ranks, int64_t elements) const {
    std::vector<std::vector<size_t>> batches;
    int last = -1;
    for (const MatrixWave& wave : MatrixWaves(layout_, needs_whole_, ranks, elements)) {
      if (wave.batch != last) batches.emplace_back();
      last = wave.batch;
      batches.back().push_back(wave.matrices.size());
    }
    return batches;
  }

  const Layout layout_ = *Layout::Create(*Manifest::Create({{.name = "a", .shape = {20, 30}},
                                                            {.name = "b", .shape = {30, 20}},
                                                            {.name = "c", .shape = {20, 20}},
                                                            {.name = "d", .shape = {20, 20}},
                                                            {.name = "e", .shape = {20, 20}},
                                                            {.name = "f", .shape = {20, 20}},
                                                            {.name = "g", .shape = {20, 20}},
                                                            {.name = "h", .shape = {20, 30}}}),
                                         16);
  const std::vector<bool> needs_whole_ = std::vector<bool>(8, true);
};

// a, b and h cost the same, but b has another shape.
TEST_F(MatrixBatchesTest, HaveOneShapeAndNoMoreElementsThanTheyMay) {
  EXPECT_THAT(Batches(1, 0), AllOf(SizeIs(8), Each(ElementsAre(1))));
  EXPECT_THAT(Batches(1, 1200), ElementsAre(ElementsAre(1), ElementsAre(1, 1), ElementsAre(1, 1, 1),
                                            ElementsAre(1, 1)));
  EXPECT_THAT(Batches(1, 1199), ElementsAre(ElementsAre(1), ElementsAre(1), ElementsAre(1),
                                            ElementsAre(1, 1), ElementsAre(1, 1), ElementsAre(1)));
}

// The last wave of three leaves a rank without a matrix.
TEST_F(MatrixBatchesTest, OfSeveralRanksHaveTheSameShapesAtEveryRank) {
  EXPECT_THAT(Batches(2, 10000), ElementsAre(ElementsAre(2), ElementsAre(2), ElementsAre(2, 2)));
  EXPECT_THAT(Batches(3, 10000), ElementsAre(ElementsAre(3), ElementsAre(3, 2)));
}

TEST_F(MatrixBatchesTest, NeedTheMemoryOfAllTheirWaves) {
  const int64_t of_c = 4 * 400 + NewtonSchulzBytes(layout_.tensors()[2].matrix);
  const auto scratch = [&](int64_t elements) {
    return WaveScratchBytes(layout_, MatrixWaves(layout_, needs_whole_, 1, elements), nullptr, 0);
  };
  EXPECT_EQ(scratch(0), 4 * 600 + NewtonSchulzBytes(layout_.tensors()[0].matrix));
  EXPECT_EQ(scratch(10000), 5 * of_c);
}

// Two ranks, first wave: rank 0 works on d, rank 1 on a. Then on e and b.
TEST_F(MatrixWavesTest, ScratchIsThePartsTheMatrixAndWhatNewtonSchulzTakes) {
  const std::vector<MatrixWave> waves = MatrixWaves(layout_, needs_whole_, 2);
  const int64_t of_d = 4 * (3 * 128 * 320 + 2 * 128 * 128);  // padded
  EXPECT_EQ(NewtonSchulzBytes(layout_.tensors()[3].matrix), of_d);
  EXPECT_EQ(WaveScratchBytes(layout_, waves, nullptr, 0), 4 * (30000 + 14400) + of_d)
      << "every rank has all directions of a wave";
  const ShardPlan shards = Shards(2);
  int64_t parts = 0;
  for (const ShardRun& run : shards.shard(0).runs)
    parts += run.tensor == 3 || run.tensor == 0 ? run.matrix.elements : 0;
  EXPECT_LT(parts, 30000 + 14400);
  EXPECT_EQ(WaveScratchBytes(layout_, waves, &shards, 0), 4 * (parts + 30000) + of_d);
  const ShardPlan alone = Shards(1);
  const std::vector<MatrixWave> in_turn = MatrixWaves(layout_, needs_whole_, 1);
  EXPECT_EQ(WaveScratchBytes(layout_, in_turn, &alone, 0), 4 * 30000 + of_d);
}

}  // namespace
}  // namespace distro::worker
