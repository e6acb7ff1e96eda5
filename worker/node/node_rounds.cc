// The node as a replica: its parameters come from a snapshot and the log.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/reason.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"
#include "common/checkpoint/snapshot.h"
#include "common/replica/round_update.h"
#include "worker/node/node.h"
#include "worker/node/rank.h"

namespace distro::worker {

absl::Status Node::Load(const std::string& snapshot_path, RoundId next_round, uint64_t log_hash) {
  DISTRO_ASSIGN_OR_RETURN(const SnapshotFile snapshot, SnapshotFile::Open(snapshot_path, layout()));
  DISTRO_RETURN_IF_ERROR(Run("load snapshot", [&](Rank& rank, int) {
    rank.Load(snapshot);
    return absl::OkStatus();
  }));
  next_round_ = next_round;
  log_hash_ = log_hash;
  return TakeHashes();
}

absl::Status Node::Apply(const CommittedRound& round) {
  DISTRO_RETURN_IF_ERROR(CheckContinues(round, next_round_, log_hash_));
  const std::string where = absl::StrCat("round ", round.round().value());
  const absl::StatusOr<std::vector<Votes>> votes = Decode(round);
  DISTRO_RETURN_IF_ERROR(Annotate(votes.status(), where));
  DISTRO_RETURN_IF_ERROR(Annotate(
      Run("apply", [&](Rank& rank, int) { return rank.Apply(round.header->step(), *votes); }),
      where));
  next_round_ = next_round_.Next();
  log_hash_ = round.hash;
  return Annotate(TakeHashes(), where);
}

// Payloads that do not decode are a peer's fault, not a rank's.
absl::StatusOr<std::vector<Votes>> Node::Decode(const CommittedRound& round) {
  std::vector<absl::StatusOr<Votes>> segments(layout().segments());
  DISTRO_RETURN_IF_ERROR(Run("decode", [&](Rank&, int number) {
    for (size_t i = number; i < segments.size(); i += ranks_.size())
      segments[i] = DecodeSegment(layout(), round, SegmentId(static_cast<uint32_t>(i)));
    return absl::OkStatus();
  }));
  std::vector<Votes> votes;
  for (absl::StatusOr<Votes>& segment : segments) {
    DISTRO_RETURN_IF_ERROR(segment.status());
    votes.push_back(*std::move(segment));
  }
  return votes;
}

// Shards add up to the tensors; copies have to agree, or a device or its memory is bad.
absl::Status Node::TakeHashes() {
  const auto first = ranks_[0]->tensor_hashes();
  tensor_hashes_.assign(first.begin(), first.end());
  for (int number = 1; number < ranks(); ++number) {
    const auto hashes = ranks_[number]->tensor_hashes();
    if (ShardsParameters(options_.fsdp.sharding)) {
      for (size_t i = 0; i < hashes.size(); ++i) tensor_hashes_[i] += hashes[i];
    } else if (!std::equal(hashes.begin(), hashes.end(), first.begin())) {
      return ErrorWithReason(absl::StatusCode::kInternal, "rank_failed",
                             absl::StrCat("rank ", number, " holds other parameters than rank 0"));
    }
  }
  return absl::OkStatus();
}

uint64_t Node::StateHash() const { return CombineTensorHashes(tensor_hashes_); }

TensorPieces Node::parameters() const {
  TensorPieces pieces(layout().tensors().size());
  const size_t holders = ShardsParameters(options_.fsdp.sharding) ? ranks_.size() : 1;
  for (size_t number = 0; number < holders; ++number) {
    const Rank& rank = *ranks_[number];
    for (size_t i = 0; i < rank.parameters().size(); ++i)
      pieces[rank.parameter_runs()[i].tensor].push_back(rank.parameters()[i]);
  }
  return pieces;
}

}  // namespace distro::worker
