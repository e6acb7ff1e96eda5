// The node as the worker's half of the optimizer: momentum, payloads, error feedback, and what is kept of them.
#include <utility>

#include "common/base/status_macros.h"
#include "worker/node/node.h"
#include "worker/node/rank.h"

namespace distro::worker {

absl::Status Node::RunOnMomentum(absl::string_view operation, RankWork work) {
  const absl::Status status = Run(operation, std::move(work));
  if (!status.ok()) momentum_is_whole_ = false;
  return status;
}

absl::StatusOr<double> Node::MomentumNorm() {
  return RunForNorm("momentum norm", [](Rank& rank, absl::Span<double> row_sums) {
    return rank.optimizer().RowSums(rank.optimizer().momentum(), row_sums);
  });
}

absl::StatusOr<std::vector<SharedBytes>> Node::Compress(RoundId round,
                                                        const v1::StepParameters& step,
                                                        double norm) {
  const CompressOptions options = Optimizer::CompressionOf(step, norm);
  optimizer_->ForgetPending();
  DISTRO_RETURN_IF_ERROR(
      RunOnMomentum("compress", [options](Rank& rank, int) { return rank.Compress(options); }));
  optimizer_->SetPending({.round = round, .k = options.k});
  return EncodePending();
}

// Each rank makes every ranks()-th.
absl::StatusOr<std::vector<SharedBytes>> Node::EncodePending() {
  auto payloads = std::make_shared<std::vector<SharedBytes>>(layout().segments());
  DISTRO_RETURN_IF_ERROR(
      Run("encode", [payloads, optimizer = optimizer_, step = ranks()](Rank&, int number) {
        for (size_t i = number; i < payloads->size(); i += step)
          (*payloads)[i] = optimizer->EncodeSegment(SegmentId(static_cast<uint32_t>(i)));
        return absl::OkStatus();
      }));
  return std::move(*payloads);
}

absl::Status Node::Feedback(const CommittedRound& round, int member) {
  const std::vector<bool> included = optimizer_->TakeFeedback(round, member);
  if (included.empty()) return absl::OkStatus();
  return RunOnMomentum("feedback",
                       [included](Rank& rank, int) { return rank.optimizer().Feedback(included); });
}

absl::StatusOr<Node::HostTensors> Node::MomentumOnHost() const {
  HostTensors tensors;
  tensors.pieces.resize(layout().tensors().size());
  const size_t holders = ShardsMomentum(options_.fsdp.sharding) ? ranks_->size() : 1;
  for (size_t number = 0; number < holders; ++number) {
    const Rank& rank = *(*ranks_)[number];
    DISTRO_ASSIGN_OR_RETURN(const RunSpans spans,
                            rank.OnHost(rank.optimizer().momentum(), &tensors.copies));
    for (size_t i = 0; i < spans.size(); ++i)
      tensors.pieces[rank.optimizer().runs()[i].tensor].push_back(spans[i]);
  }
  return tensors;
}

absl::StatusOr<Node::Kept> Node::kept() const {
  if (!momentum_is_whole_)
    return absl::FailedPreconditionError("a rank failed while it changed the momentum");
  if (parts_.devices->kind() != DeviceKind::kCpu && has_stuck_rank())
    return absl::FailedPreconditionError("a rank is stuck, and its device with it");
  DISTRO_ASSIGN_OR_RETURN(HostTensors momentum, MomentumOnHost());
  return Kept{.momentum = std::move(momentum), .optimizer = optimizer_.get()};
}

absl::Status Node::Restore(std::shared_ptr<const StateReader::Contents> contents) {
  optimizer_->ForgetPending();
  DISTRO_RETURN_IF_ERROR(RunOnMomentum("restore", [contents](Rank& rank, int) {
    return rank.Restore(contents->momentum, contents->pending);
  }));
  if (contents->pending.has_value())
    optimizer_->SetPending({.round = contents->pending->round, .k = contents->pending->k});
  return absl::OkStatus();
}

}  // namespace distro::worker
