#include "kernels/replica/round_update.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "common/method/deltas/step.h"

namespace distro {
namespace {

// Blocks [first, first + blocks) of a segment's result.
VotesView View(const SegmentVotes& votes, int64_t first, int64_t blocks) {
  const uint32_t begin = votes.offsets[first];
  const uint32_t entries = votes.offsets[first + blocks] - begin;
  return {.offsets = votes.view.offsets.subspan(first, blocks + 1),
          .positions = votes.view.positions.subspan(begin, entries),
          .values = votes.view.values.subspan(begin, entries)};
}

}  // namespace

absl::Status InvalidResult() {
  return absl::DataLossError("a result that was decoded breaks the rules of a block");
}

TileUpdater::TileUpdater(const Layout* layout, std::vector<TensorRows> parts, TileSize size)
    : layout_(layout), parts_(std::move(parts)), tiles_(MakeTiles(*layout, parts_, size)) {}

MatrixShape TileUpdater::MatrixOf(const Tile& tile) const {
  const TensorRows& rows = parts_[tile.part];
  return MatrixOfRows(layout_->tensors()[rows.tensor].matrix, rows.first_row, rows.rows);
}

SignApplyOptions TileUpdater::OptionsOf(const Tile& tile, const v1::StepParameters& step) const {
  const bool decays = layout_->tensors()[parts_[tile.part].tensor].decays;
  return {.eta = std::bit_cast<float>(step.eta_bits()),
          .eta_lambda = decays ? std::bit_cast<float>(step.eta_lambda_bits()) : 0.0f};
}

std::vector<TileUpdater::Range> TileUpdater::RangesOf(const Tile& tile) const {
  const TensorRows& rows = parts_[tile.part];
  const TensorLayout& tensor = layout_->tensors()[rows.tensor];
  const int64_t first_block =
      tensor.first_block + FirstBlock(tensor.matrix, rows.first_row) + tile.first_block;
  std::vector<Range> ranges;
  for (int64_t done = 0; done < tile.blocks;) {  // a segment may end inside the tile
    const int64_t block = first_block + done;
    const SegmentId segment(static_cast<uint32_t>(block / layout_->segment_blocks()));
    const int64_t first = block % layout_->segment_blocks();
    const int64_t blocks = std::min(tile.blocks - done, layout_->SegmentBlocks(segment) - first);
    ranges.push_back({.segment = segment,
                      .first = first,
                      .blocks = {.first = tile.first_block + done, .count = blocks}});
    done += blocks;
  }
  return ranges;
}

std::vector<SegmentId> TileUpdater::SegmentOrder() const {
  std::vector<SegmentId> order;
  for (const Tile& tile : tiles_) {
    for (const Range& range : RangesOf(tile)) {
      if (order.empty() || order.back() != range.segment) order.push_back(range.segment);
    }
  }
  return order;
}

void TileUpdater::Update(const Tile& tile, const v1::StepParameters& step, VotesOf votes_of,
                         Backend* backend, absl::Span<float> part, uint32_t* invalid) const {
  const MatrixShape matrix = MatrixOf(tile);
  const SignApplyOptions options = OptionsOf(tile, step);
  for (const Range& range : RangesOf(tile)) {
    backend->ApplyVotes(matrix, range.blocks, options,
                        View(votes_of(range.segment), range.first, range.blocks.count), part,
                        invalid);
  }
}

void TileUpdater::Update(const Tile& tile, const v1::StepParameters& step, DeltasOf deltas_of,
                         Backend* backend, absl::Span<float> part, uint32_t* invalid) const {
  const MatrixShape matrix = MatrixOf(tile);
  const int tensor = parts_[tile.part].tensor;
  const DeltaApplyOptions options = {.alpha = OuterRate(step.deltas()),
                                     .as_dct = IsAsDct(step.deltas(), tensor)};
  for (const Range& range : RangesOf(tile)) {
    backend->ApplyDeltas(matrix, range.blocks, options,
                         ViewOf(deltas_of(range.segment), {range.first, range.blocks.count}), part,
                         invalid);
  }
}

void TileUpdater::Hash(const Tile& tile, Backend* backend, absl::Span<const float> part,
                       uint64_t* sum) const {
  const int64_t offset = FirstElementOf(tile);
  for (int64_t i = 0; i < tile.pieces; ++i) {
    const int64_t first = tile.first_element + i * tile.stride;
    backend->StateHash(offset + first, part.subspan(first, tile.piece_elements), sum);
  }
}

int64_t TileUpdater::FirstElementOf(const Tile& tile) const {
  const TensorRows& rows = parts_[tile.part];
  return FirstElement(layout_->tensors()[rows.tensor].matrix, rows.first_row);
}

}  // namespace distro
