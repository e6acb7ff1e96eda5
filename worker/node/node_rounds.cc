// The node as a replica: its parameters come from a snapshot and the log.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/parallel.h"
#include "common/base/reason.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"
#include "common/checkpoint/snapshot.h"
#include "common/round_log/log_reference.h"
#include "kernels/replica/round_update.h"
#include "worker/node/node.h"
#include "worker/node/rank.h"

namespace distro::worker {

absl::Status Node::Load(const std::string& snapshot_path, RoundId next_round, uint64_t log_hash) {
  DISTRO_ASSIGN_OR_RETURN(SnapshotFile opened, SnapshotFile::Open(snapshot_path, layout()));
  const auto snapshot = std::make_shared<const SnapshotFile>(std::move(opened));
  DISTRO_RETURN_IF_ERROR(
      Run("load snapshot", [snapshot](Rank& rank, int) { return rank.Load(*snapshot); }));
  next_round_ = next_round;
  log_hash_ = log_hash;
  return TakeHashes();
}

absl::Status Node::Apply(const CommittedRound& round) {
  DISTRO_RETURN_IF_ERROR(CheckContinues(round, next_round_, log_hash_));
  const std::string where = absl::StrCat("round ", round.round().value());
  // Nothing is computed meanwhile: all cores decode.
  absl::StatusOr<std::vector<Votes>> decoded = DecodeRound(layout(), round, Cores());
  DISTRO_RETURN_IF_ERROR(Annotate(decoded.status(), where));
  const auto votes = std::make_shared<const std::vector<Votes>>(*std::move(decoded));
  DISTRO_RETURN_IF_ERROR(
      Annotate(Run("apply", [header = round.header, votes](
                                Rank& rank, int) { return rank.Apply(header->step(), *votes); }),
               where));
  next_round_ = next_round_.Next();
  log_hash_ = round.hash;
  return Annotate(TakeHashes(), where);
}

// Shards add up to the tensors; copies have to agree, or a device or its memory is bad.
absl::Status Node::TakeHashes() {
  const auto first = (*ranks_)[0]->tensor_hashes();
  tensor_hashes_.assign(first.begin(), first.end());
  for (int number = 1; number < ranks(); ++number) {
    const auto hashes = (*ranks_)[number]->tensor_hashes();
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

absl::StatusOr<Node::HostTensors> Node::parameters() const {
  HostTensors tensors;
  tensors.pieces.resize(layout().tensors().size());
  const size_t holders = ShardsParameters(options_.fsdp.sharding) ? ranks_->size() : 1;
  for (size_t number = 0; number < holders; ++number) {
    const Rank& rank = *(*ranks_)[number];
    DISTRO_ASSIGN_OR_RETURN(const RunSpans spans, rank.OnHost(rank.parameters(), &tensors.copies));
    for (size_t i = 0; i < spans.size(); ++i)
      tensors.pieces[rank.parameter_runs()[i].tensor].push_back(spans[i]);
  }
  return tensors;
}

}  // namespace distro::worker
