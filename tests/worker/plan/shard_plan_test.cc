#include "worker/plan/shard_plan.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace distro::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using UnitTensors = std::vector<std::vector<int>>;

// In manifest order: a matrix with uneven edges, one of fewer than 64 rows, a vector, a vector of
// several block rows, a large matrix, one of three dimensions.
Layout OddLayout() {
  return Layout::Create(Manifest::Create({{"a", {200, 70}},
                                          {"b", {3, 1000}},
                                          {"c", {33}},
                                          {"d", {9000}},
                                          {"e", {1000, 65}},
                                          {"f", {130, 5, 7}}})
                            .value(),
                        /*segment_blocks=*/4)
      .value();
}

UnitTensors OddUnits() {
  return {{4}, {3, 0, 2}, {1, 5, 4}};
}  // the last shares "e" with the first

ShardPlan OddPlan(int ranks) { return ShardPlan::Create(OddLayout(), OddUnits(), ranks).value(); }

TEST(ShardPlanTest, GivesTensorToFirstUnit) {
  const ShardPlan plan = OddPlan(2);
  const auto tensors = [&](int unit) {
    std::vector<int> of;
    for (const FlatTensor& tensor : plan.units()[unit].tensors) of.push_back(tensor.tensor);
    return of;
  };
  EXPECT_THAT(tensors(0), ElementsAre(4));
  EXPECT_THAT(tensors(1), ElementsAre(0, 2, 3));
  EXPECT_THAT(tensors(2), ElementsAre(1, 5));
  EXPECT_EQ(plan.place(4).unit, 0);
  EXPECT_EQ(plan.place(5).unit, 2);
  EXPECT_EQ(plan.place(5).index, 1);
}

class ShardPlanRanksTest : public ::testing::TestWithParam<int> {};

// Every element of every tensor is in exactly one run, in whole block rows, ranks ascending.
TEST_P(ShardPlanRanksTest, RunsCoverEveryTensorOnce) {
  const Layout layout = OddLayout();
  const ShardPlan plan = OddPlan(GetParam());
  std::vector<int64_t> next_row(layout.tensors().size(), 0);
  std::vector<int64_t> next_element(layout.tensors().size(), 0);
  for (int rank = 0; rank < plan.ranks(); ++rank) {
    for (const ShardRun& run : plan.shard(rank).runs) {
      const MatrixShape& matrix = layout.tensors()[run.tensor].matrix;
      EXPECT_GE(run.block_rows, 1);
      EXPECT_EQ(run.first_block_row, next_row[run.tensor]);
      EXPECT_EQ(run.first_element, next_element[run.tensor]);
      EXPECT_EQ(run.first_block, run.first_block_row * matrix.BlocksAcross());
      EXPECT_EQ(run.matrix.BlocksDown(), run.block_rows);
      EXPECT_EQ(run.matrix.cols, matrix.cols);
      EXPECT_EQ(run.first_element, run.first_block_row * kBlockSide * matrix.cols);
      next_row[run.tensor] += run.block_rows;
      next_element[run.tensor] += run.matrix.elements;
    }
  }
  for (size_t tensor = 0; tensor < next_row.size(); ++tensor) {
    const MatrixShape& matrix = layout.tensors()[tensor].matrix;
    EXPECT_EQ(next_row[tensor], matrix.BlocksDown());
    EXPECT_EQ(next_element[tensor], matrix.elements);
  }
}

// A run lies in the shard where the rank's range of the flat puts it, aligned.
TEST_P(ShardPlanRanksTest, ShardsAreTheRangesOfTheFlats) {
  const ShardPlan plan = OddPlan(GetParam());
  for (int rank = 0; rank < plan.ranks(); ++rank) {
    const RankShard& shard = plan.shard(rank);
    for (size_t unit = 0; unit < plan.units().size(); ++unit) {
      const UnitFlat& flat = plan.units()[unit];
      EXPECT_EQ(shard.unit_offsets[unit + 1] - shard.unit_offsets[unit],
                flat.cuts[rank + 1] - flat.cuts[rank]);
    }
    for (const ShardRun& run : shard.runs) {
      const ShardPlan::Place place = plan.place(run.tensor);
      const UnitFlat& flat = plan.units()[place.unit];
      const int64_t in_flat = flat.tensors[place.index].offset + run.first_element;
      EXPECT_EQ(run.shard_offset, shard.unit_offsets[place.unit] + in_flat - flat.cuts[rank]);
      EXPECT_EQ(run.shard_offset % kFlatAlignment, 0);
      EXPECT_LE(run.shard_offset + run.matrix.elements, shard.unit_offsets[place.unit + 1]);
    }
  }
}

TEST_P(ShardPlanRanksTest, RunsAreInManifestOrderAndDoNotOverlap) {
  const ShardPlan plan = OddPlan(GetParam());
  for (int rank = 0; rank < plan.ranks(); ++rank) {
    std::vector<std::pair<int64_t, int64_t>> ranges;
    int last = -1;
    for (const ShardRun& run : plan.shard(rank).runs) {
      EXPECT_GT(run.tensor, last);
      last = run.tensor;
      ranges.emplace_back(run.shard_offset, run.shard_offset + run.matrix.elements);
    }
    std::sort(ranges.begin(), ranges.end());
    for (size_t i = 1; i < ranges.size(); ++i) EXPECT_GE(ranges[i].first, ranges[i - 1].second);
  }
}

// No cut is further from the even share than half the largest block row, so a rank has at most one
// block row more.
TEST_P(ShardPlanRanksTest, UnitsAreBalancedToABlockRow) {
  const Layout layout = OddLayout();
  const ShardPlan plan = OddPlan(GetParam());
  for (const UnitFlat& flat : plan.units()) {
    int64_t largest = 0;
    for (const FlatTensor& tensor : flat.tensors) {
      largest = std::max(largest, kBlockSide * layout.tensors()[tensor.tensor].matrix.cols);
    }
    ASSERT_EQ(flat.cuts.size(), static_cast<size_t>(plan.ranks()) + 1);
    EXPECT_EQ(flat.cuts.front(), 0);
    EXPECT_EQ(flat.cuts.back(), flat.elements);
    for (int rank = 0; rank < plan.ranks(); ++rank) {
      EXPECT_LE(flat.cuts[rank], flat.cuts[rank + 1]);
      EXPECT_LE(2 * std::abs(flat.cuts[rank] - flat.elements * rank / plan.ranks()), largest + 1);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, ShardPlanRanksTest, ::testing::Values(1, 2, 3, 4, 7, 64));

TEST_P(ShardPlanRanksTest, WholeOffsetsAreThoseOfOneRank) {
  const ShardPlan plan = OddPlan(GetParam());
  const ShardPlan whole = OddPlan(1);
  for (int rank = 0; rank < plan.ranks(); ++rank) {
    for (const ShardRun& run : plan.shard(rank).runs) {
      const ShardRun& all = whole.shard(0).runs[run.tensor];
      EXPECT_EQ(run.whole_offset, all.shard_offset + run.first_element);
    }
  }
}

TEST(ShardPlanTest, GivesLoneRankEverything) {
  const ShardPlan plan = OddPlan(1);
  int64_t elements = 0;
  for (const UnitFlat& flat : plan.units()) elements += flat.elements;
  EXPECT_EQ(plan.shard(0).elements(), elements);
  EXPECT_EQ(plan.shard(0).runs.size(), OddLayout().tensors().size());
}

TEST(ShardPlanTest, WithMoreRanksThanBlockRowsSomeHaveNothing) {
  const Layout layout =
      Layout::Create(Manifest::Create({{"norm", {40}}, {"tiny", {65, 8}}}).value(), 4).value();
  const ShardPlan plan = ShardPlan::Create(layout, {{0, 1}}, 8).value();
  int64_t elements = 0;
  int empty = 0;
  for (int rank = 0; rank < 8; ++rank) {
    empty += plan.shard(rank).runs.empty();
    EXPECT_EQ(plan.shard(rank).runs.empty(), plan.shard(rank).elements() == 0);
    for (const ShardRun& run : plan.shard(rank).runs) elements += run.matrix.elements;
  }
  EXPECT_EQ(elements, 40 + 65 * 8);
  EXPECT_GE(empty, 5);  // there are three block rows
}

TEST(ShardPlanTest, MakesEmptyFlatWithoutTensors) {
  const Layout layout = Layout::Create(Manifest::Create({{"e", {100, 64}}}).value(), 4).value();
  const ShardPlan plan = ShardPlan::Create(layout, {{0}, {0}}, 3).value();
  EXPECT_EQ(plan.units()[1].elements, 0);
  EXPECT_THAT(plan.units()[1].cuts, ElementsAre(0, 0, 0, 0));
}

TEST(ShardPlanTest, RefusesWhatItCannotCut) {
  const auto error = [](const UnitTensors& units, int ranks) {
    return ShardPlan::Create(OddLayout(), units, ranks).status();
  };
  EXPECT_EQ(error(OddUnits(), 0).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(error(OddUnits(), 1025).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(error({{0, 1, 2, 3, 4}}, 2).message(), HasSubstr("no unit uses tensor f"));
  EXPECT_THAT(error({{0, 6}}, 2).message(), HasSubstr("unit 0 uses tensor 6"));
}

}  // namespace
}  // namespace distro::worker
