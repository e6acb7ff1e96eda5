#include "common/replica/replica.h"

#include <algorithm>
#include <bit>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/bytes.h"
#include "common/base/checksum.h"
#include "common/base/reason.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"
#include "common/codec/payload.h"
#include "common/replica/parallel.h"

namespace distro {
namespace {

absl::StatusOr<Votes> DecodeSegment(const Layout& layout, const CommittedRound& round,
                                    SegmentId segment) {
  const PayloadExpectation expected = {
      .layout_hash = layout.manifest().short_hash(),
      .round = round.round(),
      .segment = segment,
      .blocks = static_cast<uint32_t>(layout.SegmentBlocks(segment)),
      .k = static_cast<int>(round.header->step().kept_per_block())};
  return DecodeVotes(*round.payloads[segment.value()], expected);
}

// Blocks [first, first + blocks) of a segment's votes.
VotesView View(const Votes& votes, int64_t first, int64_t blocks) {
  const uint32_t begin = votes.offsets[first];
  const uint32_t end = votes.offsets[first + blocks];
  return {.offsets = absl::MakeConstSpan(votes.offsets).subspan(first, blocks + 1),
          .positions = absl::MakeConstSpan(votes.positions).subspan(begin, end - begin),
          .values = absl::MakeConstSpan(votes.values).subspan(begin, end - begin)};
}

}  // namespace

Replica::Replica(const Layout* layout, Backend* backend, TensorBuffer parameters,
                 RoundId next_round, uint64_t log_hash)
    : Replica(layout, std::vector<Backend*>{backend}, std::move(parameters), next_round, log_hash) {
}

Replica::Replica(const Layout* layout, std::vector<Backend*> backends, TensorBuffer parameters,
                 RoundId next_round, uint64_t log_hash)
    : layout_(layout),
      backends_(std::move(backends)),
      tiles_(MakeTiles(*layout)),
      parameters_(std::move(parameters)),
      tensor_hashes_(parameters_.tensors()),
      next_round_(next_round),
      log_hash_(log_hash) {
  std::vector<uint64_t> hashes(tiles_.size());
  RunParallel(static_cast<int>(backends_.size()), static_cast<int64_t>(tiles_.size()),
              [&](int thread, int64_t i) { hashes[i] = HashTile(tiles_[i], backends_[thread]); });
  for (size_t i = 0; i < tiles_.size(); ++i) tensor_hashes_[tiles_[i].tensor] += hashes[i];
}

template <typename Work>
absl::Status Replica::ForEach(size_t items, const Work& work) {
  std::vector<absl::Status> results(items);
  RunParallel(static_cast<int>(backends_.size()), static_cast<int64_t>(items),
              [&](int thread, int64_t i) { results[i] = work(i, backends_[thread]); });
  const auto failed = std::find_if(results.begin(), results.end(),
                                   [](const absl::Status& status) { return !status.ok(); });
  return failed == results.end() ? absl::OkStatus() : *failed;
}

absl::Status Replica::Apply(const CommittedRound& round) {
  const std::string where = absl::StrCat("round ", round.round().value());
  if (round.round() != next_round_) {
    return absl::FailedPreconditionError(
        absl::StrCat(where, ": the replica expects round ", next_round_.value()));
  }
  const bool at_start = next_round_ == RoundId(0) && log_hash_ == 0;
  if (!at_start && round.header->predecessor_hash() != log_hash_) {
    return ErrorWithReason(
        absl::StatusCode::kFailedPrecondition, "diverged",
        absl::StrCat(where, ": diverged: the predecessor's hash is ",
                     ToHex(round.header->predecessor_hash()), ", the replica's is ",
                     ToHex(log_hash_), ": start again from a snapshot"));
  }
  std::vector<Votes> votes(layout_->segments());
  DISTRO_RETURN_IF_ERROR(Annotate(Decode(round, &votes), where));
  DISTRO_RETURN_IF_ERROR(Annotate(Update(round.header->step(), votes), where));
  next_round_ = next_round_.Next();
  log_hash_ = round.hash;
  return absl::OkStatus();
}

absl::Status Replica::Decode(const CommittedRound& round, std::vector<Votes>* votes) {
  return ForEach(votes->size(), [&](size_t i, Backend*) {
    absl::StatusOr<Votes> segment =
        DecodeSegment(*layout_, round, SegmentId(static_cast<uint32_t>(i)));
    if (!segment.ok()) return Annotate(segment.status(), absl::StrCat("segment ", i));
    (*votes)[i] = *std::move(segment);
    return absl::OkStatus();
  });
}

absl::Status Replica::Update(const v1::StepParameters& step, const std::vector<Votes>& votes) {
  std::vector<uint64_t> hashes(tiles_.size());
  const absl::Status status = ForEach(tiles_.size(), [&](size_t i, Backend* backend) {
    const absl::Status updated = UpdateTile(tiles_[i], step, votes, backend);
    hashes[i] = HashTile(tiles_[i], backend);
    return updated;
  });
  DISTRO_RETURN_IF_ERROR(status);
  std::fill(tensor_hashes_.begin(), tensor_hashes_.end(), 0);
  for (size_t i = 0; i < tiles_.size(); ++i) tensor_hashes_[tiles_[i].tensor] += hashes[i];
  return absl::OkStatus();
}

absl::Status Replica::UpdateTile(const Tile& tile, const v1::StepParameters& step,
                                 const std::vector<Votes>& votes, Backend* backend) {
  const TensorLayout& tensor = layout_->tensors()[tile.tensor];
  const UpdateOptions options = {
      .eta = std::bit_cast<float>(step.eta_bits()),
      .eta_lambda = tensor.decays ? std::bit_cast<float>(step.eta_lambda_bits()) : 0.0f};
  for (int64_t done = 0; done < tile.blocks;) {  // a segment may end inside the tile
    const int64_t block = tensor.first_block + tile.first_block + done;
    const Votes& segment = votes[block / layout_->segment_blocks()];
    const int64_t first = block % layout_->segment_blocks();
    const int64_t blocks = std::min(tile.blocks - done, segment.blocks() - first);
    DISTRO_RETURN_IF_ERROR(
        backend->Apply(tensor.matrix, {.first = tile.first_block + done, .count = blocks}, options,
                       View(segment, first, blocks), parameters_.tensor(tile.tensor)));
    done += blocks;
  }
  return absl::OkStatus();
}

uint64_t Replica::HashTile(const Tile& tile, Backend* backend) const {
  const absl::Span<const float> tensor = parameters_.tensor(tile.tensor);
  uint64_t sum = 0;
  for (int64_t i = 0; i < tile.pieces; ++i) {
    const int64_t first = tile.first_element + i * tile.stride;
    sum += backend->StateHash(first, tensor.subspan(first, tile.piece_elements));
  }
  return sum;
}

uint64_t Replica::StateHash() const { return CombineTensorHashes(tensor_hashes_); }

uint64_t StateHash(const Layout& layout, const TensorBuffer& parameters, Backend* backend) {
  std::vector<uint64_t> sums(layout.tensors().size());
  for (int i = 0; i < parameters.tensors(); ++i) {
    sums[i] = backend->StateHash(0, parameters.tensor(i));
  }
  return CombineTensorHashes(sums);
}

uint64_t CombineTensorHashes(absl::Span<const uint64_t> tensor_hashes) {
  std::string sums;
  for (const uint64_t hash : tensor_hashes) AppendLittleEndian(&sums, hash);
  return Xxh3(sums);
}

}  // namespace distro
