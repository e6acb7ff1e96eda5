#include "worker/optimizer/optimizer.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "absl/base/casts.h"
#include "common/codec/payload.h"
#include "worker/optimizer/signs.h"

namespace distro::worker {
namespace {

std::vector<ShardPiece> PiecesOf(const Layout& layout,
                                 const std::vector<const OptimizerShard*>& shards) {
  std::vector<ShardPiece> pieces;
  for (const OptimizerShard* shard : shards) {
    for (size_t i = 0; i < shard->runs().size(); ++i) {
      const ShardRun& run = shard->runs()[i];
      pieces.push_back({.shard = shard,
                        .first_block = layout.tensors()[run.tensor].first_block + run.first_block,
                        .blocks = run.matrix.Blocks(),
                        .first_pending = shard->FirstPending(i)});
    }
  }
  std::sort(pieces.begin(), pieces.end(),
            [](const ShardPiece& a, const ShardPiece& b) { return a.first_block < b.first_block; });
  return pieces;
}

}  // namespace

absl::Span<const uint16_t> ShardPiece::positions() const {
  return shard->positions().subspan(first_pending * shard->kept(), blocks * shard->kept());
}

absl::Span<const float> ShardPiece::values() const {
  return shard->values().subspan(first_pending * shard->kept(), blocks * shard->kept());
}

Optimizer::Optimizer(const Layout* layout, std::vector<const OptimizerShard*> shards)
    : layout_(layout), shards_(std::move(shards)), pieces_(PiecesOf(*layout, shards_)) {}

double Optimizer::Norm(absl::Span<const double> row_sums) const {
  double sum = 0;
  auto row = row_sums.begin();
  for (const TensorLayout& tensor : layout_->tensors()) {
    double of_tensor = 0;
    for (int64_t i = 0; i < tensor.matrix.BlocksDown(); ++i) of_tensor += *row++;
    sum += of_tensor;
  }
  return std::sqrt(sum);
}

CompressOptions Optimizer::CompressionOf(const v1::StepParameters& step, double norm) {
  return {.beta = step.beta(),
          .eta = absl::bit_cast<float>(step.eta_bits()),
          .gradient_scale =
              norm > step.clip_norm() ? static_cast<float>(step.clip_norm() / norm) : 1.0f,
          .k = static_cast<int>(step.kept_per_block())};
}

std::vector<ShardPiece> Optimizer::SegmentPieces(SegmentId segment) const {
  const int64_t begin = layout_->SegmentFirstBlock(segment);
  const int64_t end = begin + layout_->SegmentBlocks(segment);
  auto piece = std::upper_bound(
      pieces_.begin(), pieces_.end(), begin,
      [](int64_t block, const ShardPiece& p) { return block < p.first_block + p.blocks; });
  std::vector<ShardPiece> pieces;
  for (; piece != pieces_.end() && piece->first_block < end; ++piece) {
    const int64_t first = std::max(begin, piece->first_block);
    const int64_t last = std::min(end, piece->first_block + piece->blocks);
    pieces.push_back({.shard = piece->shard,
                      .first_block = first,
                      .blocks = last - first,
                      .first_pending = piece->first_pending + first - piece->first_block});
  }
  return pieces;
}

SharedBytes Optimizer::EncodeSegment(SegmentId segment) const {
  SparseUpdate update{.k = pending_->k, .positions = {}, .signs = {}};
  for (const ShardPiece& piece : SegmentPieces(segment))
    AppendSigns(piece.positions(), piece.values(), &update);
  return std::make_shared<const std::string>(
      EncodeUpdate({.layout_hash = layout_->manifest().short_hash(),
                    .round = pending_->round,
                    .segment = segment},
                   update));
}

std::vector<bool> Optimizer::TakeFeedback(const CommittedRound& round, int member) {
  if (!pending_.has_value() || pending_->round != round.round()) return {};
  pending_.reset();
  std::vector<bool> included;
  for (SegmentId segment(0); segment.value() < layout_->segments(); segment = segment.Next())
    included.push_back(round.Included(member, segment));
  return included;
}

TensorPieces Optimizer::momentum() const {
  TensorPieces pieces(layout_->tensors().size());
  for (const OptimizerShard* shard : shards_) {
    for (size_t i = 0; i < shard->runs().size(); ++i)
      pieces[shard->runs()[i].tensor].push_back(shard->momentum()[i]);
  }
  return pieces;
}

}  // namespace distro::worker
