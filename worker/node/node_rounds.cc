// Node: the replica, whose parameters come from a snapshot and the log.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/reason.h"
#include "common/base/status_macros.h"
#include "common/model/checkpoint/snapshot.h"
#include "worker/node/node.h"
#include "worker/node/rank.h"

namespace distro::worker {

absl::Status Node::Load(const std::string& snapshot_path, RoundId next_round, uint64_t log_hash) {
  DISTRO_ASSIGN_OR_RETURN(SnapshotFile opened, SnapshotFile::Open(snapshot_path, layout()));
  const auto snapshot = std::make_shared<const SnapshotFile>(std::move(opened));
  DISTRO_RETURN_IF_ERROR(
      Run("load snapshot", [snapshot](Rank& rank, int) { return rank.Load(*snapshot); }));
  DISTRO_ASSIGN_OR_RETURN(std::vector<uint64_t> hashes, TensorHashes());
  Begin(next_round, log_hash, std::move(hashes));
  return absl::OkStatus();
}

// Step and results are shared with the ranks, one of which may get stuck.
absl::StatusOr<std::vector<uint64_t>> Node::Update(const v1::StepParameters& step,
                                                   std::shared_ptr<const DecodedRound> decoded) {
  DISTRO_RETURN_IF_ERROR(
      Run("apply", [step, decoded](Rank& rank, int) { return rank.Apply(step, *decoded); }));
  return TensorHashes();
}

// Hashes of shards add up to those of the tensors. Copies must have equal hashes; otherwise a
// device or its memory is faulty.
absl::StatusOr<std::vector<uint64_t>> Node::TensorHashes() const {
  const auto first = (*ranks_)[0]->tensor_hashes();
  std::vector<uint64_t> sums(first.begin(), first.end());
  for (int number = 1; number < ranks(); ++number) {
    const auto hashes = (*ranks_)[number]->tensor_hashes();
    if (ShardsParameters(options_.fsdp.sharding)) {
      for (size_t i = 0; i < hashes.size(); ++i) sums[i] += hashes[i];
    } else if (!std::equal(hashes.begin(), hashes.end(), first.begin())) {
      return ErrorWithReason(absl::StatusCode::kInternal, "rank_failed",
                             absl::StrCat("rank ", number, " holds other parameters than rank 0"));
    }
  }
  return sums;
}

absl::StatusOr<Node::HostTensors> Node::parameters() const {
  HostTensors tensors;
  tensors.pieces.resize(layout().tensors().size());
  const size_t holders = ShardsParameters(options_.fsdp.sharding) ? ranks_->size() : 1;
  for (size_t number = 0; number < holders; ++number) {
    const Rank& rank = *(*ranks_)[number];
    DISTRO_ASSIGN_OR_RETURN(const RunSpans spans,
                            rank.shard_rule().OnHost(rank.parameters(), &tensors.copies));
    for (size_t i = 0; i < spans.size(); ++i)
      tensors.pieces[rank.parameter_runs()[i].tensor].push_back(spans[i]);
  }
  return tensors;
}

}  // namespace distro::worker
