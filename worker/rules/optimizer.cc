#include "worker/rules/optimizer.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "common/base/parallel.h"

namespace distro::worker {

std::vector<Optimizer::Piece> Optimizer::PiecesOf(const Layout& layout,
                                                  const std::vector<RankRule>& ranks) {
  std::vector<Piece> pieces;
  for (const RankRule& rank : ranks) {
    int64_t pending = 0;
    for (const ShardRun& run : rank.runs) {
      pieces.push_back({.rule = rank.rule,
                        .first_block = layout.tensors()[run.tensor].first_block + run.first_block,
                        .blocks = run.matrix.Blocks(),
                        .first_pending = pending});
      pending += run.matrix.Blocks();
    }
  }
  std::sort(pieces.begin(), pieces.end(),
            [](const Piece& a, const Piece& b) { return a.first_block < b.first_block; });
  return pieces;
}

Optimizer::Optimizer(const Layout* layout, const UpdateRuleKind* kind,
                     const std::vector<RankRule>& ranks)
    : layout_(layout), kind_(kind), pieces_(PiecesOf(*layout, ranks)) {}

bool Optimizer::TakePending(RoundId round) {
  if (!pending_.has_value() || pending_->round != round) return false;
  pending_.reset();
  return true;
}

BlockPieces Optimizer::PendingPieces(SegmentId segment) const {
  const int64_t begin = layout_->SegmentFirstBlock(segment);
  const int64_t end = begin + layout_->SegmentBlocks(segment);
  auto piece = std::upper_bound(
      pieces_.begin(), pieces_.end(), begin,
      [](int64_t block, const Piece& p) { return block < p.first_block + p.blocks; });
  const std::vector<int64_t> block_bytes = kind_->block_bytes(pending_->k);
  BlockPieces pieces(block_bytes.size());
  for (; piece != pieces_.end() && piece->first_block < end; ++piece) {
    const int64_t first = std::max(begin, piece->first_block);
    const int64_t last = std::min(end, piece->first_block + piece->blocks);
    const int64_t offset = piece->first_pending + first - piece->first_block;
    const std::vector<absl::string_view> arrays = piece->rule->pending();
    for (size_t i = 0; i < pieces.size(); ++i) {
      pieces[i].push_back(
          arrays[i].substr(offset * block_bytes[i], (last - first) * block_bytes[i]));
    }
  }
  return pieces;
}

std::vector<SharedBytes> Optimizer::Encode(int threads) const {
  std::vector<SharedBytes> payloads(layout_->segments());
  RunParallel(threads, static_cast<int64_t>(payloads.size()), [&](int /*thread*/, int64_t i) {
    const SegmentId segment(static_cast<uint32_t>(i));
    const PayloadIdentity identity = IdentifyPayload(*layout_, pending_->round, segment);
    payloads[i] = std::make_shared<const std::string>(
        kind_->encode(identity, pending_->k, PendingPieces(segment)));
  });
  return payloads;
}

}  // namespace distro::worker
