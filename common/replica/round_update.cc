#include "common/replica/round_update.h"

#include <algorithm>
#include <bit>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/bytes.h"
#include "common/base/checksum.h"
#include "common/base/reason.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"
#include "common/codec/payload.h"

namespace distro {
namespace {

// Blocks [first, first + blocks) of a segment's votes.
VotesView View(const Votes& votes, int64_t first, int64_t blocks) {
  const uint32_t begin = votes.offsets[first];
  const uint32_t end = votes.offsets[first + blocks];
  return {.offsets = absl::MakeConstSpan(votes.offsets).subspan(first, blocks + 1),
          .positions = absl::MakeConstSpan(votes.positions).subspan(begin, end - begin),
          .values = absl::MakeConstSpan(votes.values).subspan(begin, end - begin)};
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

absl::StatusOr<Votes> DecodeSegment(const Layout& layout, const CommittedRound& round,
                                    SegmentId segment) {
  const PayloadExpectation expected = {
      .layout_hash = layout.manifest().short_hash(),
      .round = round.round(),
      .segment = segment,
      .blocks = static_cast<uint32_t>(layout.SegmentBlocks(segment)),
      .k = static_cast<int>(round.header->step().kept_per_block())};
  absl::StatusOr<Votes> votes = DecodeVotes(*round.payloads[segment.value()], expected);
  if (!votes.ok()) return Annotate(votes.status(), absl::StrCat("segment ", segment.value()));
  return votes;
}

TileUpdater::TileUpdater(const Layout* layout, std::vector<TensorRows> parts)
    : layout_(layout), parts_(std::move(parts)), tiles_(MakeTiles(*layout, parts_)) {}

absl::Status TileUpdater::Update(const Tile& tile, const v1::StepParameters& step,
                                 absl::Span<const Votes> votes, Backend* backend,
                                 absl::Span<float> part) const {
  const TensorRows& rows = parts_[tile.part];
  const TensorLayout& tensor = layout_->tensors()[rows.tensor];
  const MatrixShape matrix = MatrixOfRows(tensor.matrix, rows.first_row, rows.rows);
  const int64_t first_block = tensor.first_block + FirstBlock(tensor.matrix, rows.first_row);
  const UpdateOptions options = {
      .eta = std::bit_cast<float>(step.eta_bits()),
      .eta_lambda = tensor.decays ? std::bit_cast<float>(step.eta_lambda_bits()) : 0.0f};
  for (int64_t done = 0; done < tile.blocks;) {  // a segment may end inside the tile
    const int64_t block = first_block + tile.first_block + done;
    const Votes& segment = votes[block / layout_->segment_blocks()];
    const int64_t first = block % layout_->segment_blocks();
    const int64_t blocks = std::min(tile.blocks - done, segment.blocks() - first);
    DISTRO_RETURN_IF_ERROR(backend->Apply(matrix,
                                          {.first = tile.first_block + done, .count = blocks},
                                          options, View(segment, first, blocks), part));
    done += blocks;
  }
  return absl::OkStatus();
}

uint64_t TileUpdater::Hash(const Tile& tile, Backend* backend, absl::Span<const float> part) const {
  const TensorRows& rows = parts_[tile.part];
  const int64_t offset = FirstElement(layout_->tensors()[rows.tensor].matrix, rows.first_row);
  uint64_t sum = 0;
  for (int64_t i = 0; i < tile.pieces; ++i) {
    const int64_t first = tile.first_element + i * tile.stride;
    sum += backend->StateHash(offset + first, part.subspan(first, tile.piece_elements));
  }
  return sum;
}

uint64_t CombineTensorHashes(absl::Span<const uint64_t> tensor_hashes) {
  std::string sums;
  for (const uint64_t hash : tensor_hashes) AppendLittleEndian(&sums, hash);
  return Xxh3(sums);
}

}  // namespace distro
