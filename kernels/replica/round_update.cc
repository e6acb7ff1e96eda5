#include "kernels/replica/round_update.h"

#include <algorithm>
#include <bit>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/bytes.h"
#include "common/base/parallel.h"
#include "common/base/reason.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"
#include "common/codec/payload.h"

namespace distro {
namespace {

// Blocks [first, first + blocks) of a segment's votes.
VotesView View(const SegmentVotes& votes, int64_t first, int64_t blocks) {
  const uint32_t begin = votes.offsets[first];
  const uint32_t entries = votes.offsets[first + blocks] - begin;
  return {.offsets = votes.view.offsets.subspan(first, blocks + 1),
          .positions = votes.view.positions.subspan(begin, entries),
          .values = votes.view.values.subspan(begin, entries)};
}

}  // namespace

absl::Status CheckContinues(const CommittedRound& round, RoundId next_round, uint64_t log_hash) {
  const std::string where = absl::StrCat("round ", round.round().value());
  if (round.round() != next_round) {
    return absl::FailedPreconditionError(
        absl::StrCat(where, ": the replica expects round ", next_round.value()));
  }
  const bool at_start = next_round == RoundId(0) && log_hash == 0;
  if (at_start || round.header->predecessor_hash() == log_hash) return absl::OkStatus();
  return ErrorWithReason(
      absl::StatusCode::kFailedPrecondition, "diverged",
      absl::StrCat(where, ": diverged: the predecessor's hash is ",
                   ToHex(round.header->predecessor_hash()), ", the replica's is ", ToHex(log_hash),
                   ": start again from a snapshot"));
}

// Segments side by side; where there are fewer than threads, several share one.
absl::StatusOr<std::vector<Votes>> DecodeRound(const Layout& layout, const CommittedRound& round,
                                               int threads) {
  const auto segments = static_cast<int>(layout.segments());
  const int threads_each = std::max(1, threads / std::max(1, segments));
  const auto k = static_cast<int>(round.header->step().kept_per_block());
  std::vector<absl::StatusOr<Votes>> decoded(segments);
  RunParallel(threads, segments, [&](int /*thread*/, int64_t i) {
    const SegmentId segment(static_cast<uint32_t>(i));
    decoded[i] = DecodeVotes(*round.payloads[i], ExpectPayload(layout, round.round(), segment, k),
                             threads_each);
  });
  std::vector<Votes> votes;
  for (int i = 0; i < segments; ++i) {
    DISTRO_RETURN_IF_ERROR(Annotate(decoded[i].status(), absl::StrCat("segment ", i)));
    votes.push_back(*std::move(decoded[i]));
  }
  return votes;
}

TileUpdater::TileUpdater(const Layout* layout, std::vector<TensorRows> parts, TileSize size)
    : layout_(layout), parts_(std::move(parts)), tiles_(MakeTiles(*layout, parts_, size)) {}

MatrixShape TileUpdater::MatrixOf(const Tile& tile) const {
  const TensorRows& rows = parts_[tile.part];
  return MatrixOfRows(layout_->tensors()[rows.tensor].matrix, rows.first_row, rows.rows);
}

UpdateOptions TileUpdater::OptionsOf(const Tile& tile, const v1::StepParameters& step) const {
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

absl::Status TileUpdater::Update(const Tile& tile, const v1::StepParameters& step,
                                 absl::Span<const Votes> votes, Backend* backend,
                                 absl::Span<float> part) const {
  const MatrixShape matrix = MatrixOf(tile);
  const UpdateOptions options = OptionsOf(tile, step);
  for (const Range& range : RangesOf(tile)) {
    const VotesView view =
        View(OnHost(votes[range.segment.value()]), range.first, range.blocks.count);
    DISTRO_RETURN_IF_ERROR(backend->Apply(matrix, range.blocks, options, view, part));
  }
  return absl::OkStatus();
}

absl::Status TileUpdater::EnqueueUpdate(const Tile& tile, const v1::StepParameters& step,
                                        VotesOf votes_of, Backend* backend, absl::Span<float> part,
                                        uint32_t* invalid) const {
  const MatrixShape matrix = MatrixOf(tile);
  const UpdateOptions options = OptionsOf(tile, step);
  for (const Range& range : RangesOf(tile)) {
    DISTRO_ASSIGN_OR_RETURN(const SegmentVotes votes, votes_of(range.segment));
    backend->EnqueueApply(matrix, range.blocks, options,
                          View(votes, range.first, range.blocks.count), part, invalid);
  }
  return absl::OkStatus();
}

uint64_t TileUpdater::Hash(const Tile& tile, Backend* backend, absl::Span<const float> part) const {
  uint64_t sum = 0;
  const int64_t offset = FirstElementOf(tile);
  for (int64_t i = 0; i < tile.pieces; ++i) {
    const int64_t first = tile.first_element + i * tile.stride;
    sum += backend->StateHash(offset + first, part.subspan(first, tile.piece_elements));
  }
  return sum;
}

void TileUpdater::EnqueueHash(const Tile& tile, Backend* backend, absl::Span<const float> part,
                              uint64_t* sum) const {
  const int64_t offset = FirstElementOf(tile);
  for (int64_t i = 0; i < tile.pieces; ++i) {
    const int64_t first = tile.first_element + i * tile.stride;
    backend->EnqueueStateHash(offset + first, part.subspan(first, tile.piece_elements), sum);
  }
}

int64_t TileUpdater::FirstElementOf(const Tile& tile) const {
  const TensorRows& rows = parts_[tile.part];
  return FirstElement(layout_->tensors()[rows.tensor].matrix, rows.first_row);
}

}  // namespace distro
