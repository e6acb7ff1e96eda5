#include "common/replica/replica.h"

#include <bit>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/bytes.h"
#include "common/base/checksum.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"
#include "common/codec/payload.h"

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

VotesView View(const Votes& votes, const BlockRun& run) {
  const uint32_t begin = votes.offsets[run.offset];
  const uint32_t end = votes.offsets[run.offset + run.blocks];
  return {.offsets = absl::MakeConstSpan(votes.offsets).subspan(run.offset, run.blocks + 1),
          .positions = absl::MakeConstSpan(votes.positions).subspan(begin, end - begin),
          .values = absl::MakeConstSpan(votes.values).subspan(begin, end - begin)};
}

}  // namespace

Replica::Replica(const Layout* layout, Backend* backend, TensorBuffer parameters,
                 RoundId next_round, uint64_t log_hash)
    : layout_(layout),
      backend_(backend),
      parameters_(std::move(parameters)),
      next_round_(next_round),
      log_hash_(log_hash) {}

absl::Status Replica::Apply(const CommittedRound& round) {
  const std::string where = absl::StrCat("round ", round.round().value());
  if (round.round() != next_round_) {
    return absl::FailedPreconditionError(
        absl::StrCat(where, ": the replica expects round ", next_round_.value()));
  }
  const bool at_start = next_round_ == RoundId(0) && log_hash_ == 0;
  if (!at_start && round.header->predecessor_hash() != log_hash_) {
    return absl::FailedPreconditionError(absl::StrCat(
        where, ": diverged: the predecessor's hash is ", ToHex(round.header->predecessor_hash()),
        ", the replica's is ", ToHex(log_hash_), ": start again from a snapshot"));
  }
  std::vector<Votes> votes;
  for (uint32_t i = 0; i < layout_->segments(); ++i) {
    absl::StatusOr<Votes> segment = DecodeSegment(*layout_, round, SegmentId(i));
    if (!segment.ok()) return Annotate(segment.status(), absl::StrCat(where, ": segment ", i));
    votes.push_back(*std::move(segment));
  }
  DISTRO_RETURN_IF_ERROR(Annotate(Update(round.header->step(), votes), where));
  next_round_ = next_round_.Next();
  log_hash_ = round.hash;
  return absl::OkStatus();
}

absl::Status Replica::Update(const v1::StepParameters& step, const std::vector<Votes>& votes) {
  const float eta = std::bit_cast<float>(step.eta_bits());
  const float eta_lambda = std::bit_cast<float>(step.eta_lambda_bits());
  for (uint32_t i = 0; i < layout_->segments(); ++i) {
    for (const BlockRun& run : layout_->SegmentRuns(SegmentId(i))) {
      const TensorLayout& tensor = layout_->tensors()[run.tensor];
      const UpdateOptions options = {.eta = eta, .eta_lambda = tensor.decays ? eta_lambda : 0.0f};
      DISTRO_RETURN_IF_ERROR(
          backend_->Apply(tensor.matrix, {.first = run.first_block, .count = run.blocks}, options,
                          View(votes[i], run), parameters_.tensor(run.tensor)));
    }
  }
  return absl::OkStatus();
}

uint64_t Replica::StateHash() { return distro::StateHash(*layout_, parameters_, backend_); }

uint64_t StateHash(const Layout& layout, const TensorBuffer& parameters, Backend* backend) {
  std::string sums;
  for (int i = 0; i < parameters.tensors(); ++i) {
    AppendLittleEndian(&sums, backend->StateHash(0, parameters.tensor(i)));
  }
  return Xxh3(sums);
}

}  // namespace distro
