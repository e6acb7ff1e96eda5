#include "worker/plan/shard_plan.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace distro::worker {
namespace {

constexpr int kMaxRanks = 1024;

int64_t Aligned(int64_t elements) {
  return (elements + kFlatAlignment - 1) / kFlatAlignment * kFlatAlignment;
}

int64_t BlockRowElements(const MatrixShape& matrix) { return kBlockSide * matrix.cols; }

// All possible cuts of a unit's flat: the starts of its block rows, ascending, and its end.
std::vector<int64_t> PossibleCuts(const Layout& layout, const UnitFlat& unit) {
  std::vector<int64_t> cuts;
  for (const FlatTensor& tensor : unit.tensors) {
    const MatrixShape& matrix = layout.tensors()[tensor.tensor].matrix;
    for (int64_t row = 0; row < matrix.BlocksDown(); ++row) {
      cuts.push_back(tensor.offset + row * BlockRowElements(matrix));
    }
  }
  cuts.push_back(unit.elements);
  return cuts;
}

// Rank r ends at the possible cut nearest to its even share, the lower of two.
std::vector<int64_t> Cut(const std::vector<int64_t>& possible, int ranks) {
  const int64_t total = possible.back();
  std::vector<int64_t> cuts = {0};
  for (int64_t rank = 1; rank < ranks; ++rank) {
    const int64_t ideal = total * rank / ranks;
    auto above = std::lower_bound(possible.begin(), possible.end(), ideal);
    if (above != possible.begin() && ideal - *(above - 1) <= *above - ideal) --above;
    cuts.push_back(*above);
  }
  cuts.push_back(total);
  return cuts;
}

// The block rows of a tensor that lie in [begin, end) of its unit's flat; none: block_rows is 0.
ShardRun RunWithin(const MatrixShape& matrix, const FlatTensor& tensor, int64_t begin,
                   int64_t end) {
  const int64_t row_elements = BlockRowElements(matrix);
  const auto row_at = [&](int64_t position) {
    const int64_t inside = std::max<int64_t>(position - tensor.offset, 0);
    return std::min((inside + row_elements - 1) / row_elements, matrix.BlocksDown());
  };
  ShardRun run;
  run.tensor = tensor.tensor;
  run.first_block_row = row_at(begin);
  run.block_rows = row_at(end) - run.first_block_row;
  run.first_block = run.first_block_row * matrix.BlocksAcross();
  run.first_element = run.first_block_row * row_elements;
  run.matrix = {
      .rows = std::min(run.block_rows * kBlockSide, matrix.rows - run.first_block_row * kBlockSide),
      .cols = matrix.cols,
      .elements = std::min(run.block_rows * row_elements, matrix.elements - run.first_element)};
  return run;
}

RankShard ShardOf(const Layout& layout, absl::Span<const UnitFlat> units, int rank) {
  RankShard shard{.runs = {}, .unit_offsets = {0}};
  int64_t whole = 0;
  for (const UnitFlat& unit : units) {
    const int64_t begin = unit.cuts[rank], end = unit.cuts[rank + 1];
    for (const FlatTensor& tensor : unit.tensors) {
      ShardRun run = RunWithin(layout.tensors()[tensor.tensor].matrix, tensor, begin, end);
      if (run.block_rows == 0) continue;
      run.whole_offset = whole + tensor.offset + run.first_element;
      run.shard_offset = shard.unit_offsets.back() + tensor.offset + run.first_element - begin;
      shard.runs.push_back(run);
    }
    whole += unit.elements;
    shard.unit_offsets.push_back(shard.unit_offsets.back() + end - begin);
  }
  std::sort(shard.runs.begin(), shard.runs.end(),
            [](const ShardRun& a, const ShardRun& b) { return a.tensor < b.tensor; });
  return shard;
}

}  // namespace

int64_t LongestRange(absl::Span<const int64_t> cuts) {
  int64_t longest = 0;
  for (size_t rank = 1; rank < cuts.size(); ++rank)
    longest = std::max(longest, cuts[rank] - cuts[rank - 1]);
  return longest;
}

std::vector<ShardRun> WholeRuns(const Layout& layout) {
  std::vector<ShardRun> runs;
  for (const TensorLayout& tensor : layout.tensors()) {
    runs.push_back({.tensor = static_cast<int>(runs.size()),
                    .block_rows = tensor.matrix.BlocksDown(),
                    .matrix = tensor.matrix});
  }
  return runs;
}

absl::StatusOr<ShardPlan> ShardPlan::Create(const Layout& layout,
                                            const std::vector<std::vector<int>>& units, int ranks) {
  if (ranks < 1 || ranks > kMaxRanks) {
    return absl::InvalidArgumentError(absl::StrCat(ranks, " ranks; a node has 1 to ", kMaxRanks));
  }
  const int tensors = static_cast<int>(layout.tensors().size());
  ShardPlan plan;
  plan.places_.assign(tensors, Place{.unit = -1, .index = 0});
  for (size_t u = 0; u < units.size(); ++u) {
    std::vector<int> owned;
    for (const int tensor : units[u]) {
      if (tensor < 0 || tensor >= tensors) {
        return absl::InvalidArgumentError(
            absl::StrCat("unit ", u, " uses tensor ", tensor, "; the manifest has ", tensors));
      }
      if (plan.places_[tensor].unit >= 0) continue;
      plan.places_[tensor].unit = static_cast<int>(u);
      owned.push_back(tensor);
    }
    std::sort(owned.begin(), owned.end());
    UnitFlat flat;
    for (const int tensor : owned) {
      plan.places_[tensor].index = static_cast<int>(flat.tensors.size());
      flat.tensors.push_back({.tensor = tensor,
                              .offset = flat.elements,
                              .elements = layout.tensors()[tensor].matrix.elements});
      flat.elements += Aligned(flat.tensors.back().elements);
    }
    flat.cuts = Cut(PossibleCuts(layout, flat), ranks);
    plan.units_.push_back(std::move(flat));
  }
  for (int tensor = 0; tensor < tensors; ++tensor) {
    if (plan.places_[tensor].unit < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("no unit uses tensor ", layout.manifest().tensors()[tensor].name));
    }
  }
  for (int rank = 0; rank < ranks; ++rank) {
    plan.shards_.push_back(ShardOf(layout, plan.units_, rank));
  }
  return plan;
}

}  // namespace distro::worker
