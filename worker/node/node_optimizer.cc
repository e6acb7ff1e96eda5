// Node: the worker's half of the optimizer: payloads, feedback, saved state.
#include <atomic>
#include <utility>

#include "common/base/parallel.h"
#include "common/base/status_macros.h"
#include "worker/node/node.h"
#include "worker/node/rank.h"

namespace distro::worker {

absl::Status Node::RunOnState(absl::string_view operation, RankWork work) {
  const absl::Status status = Run(operation, std::move(work));
  if (!status.ok()) state_is_whole_ = false;
  return status;
}

absl::StatusOr<double> Node::MomentumNorm() {
  return RunForNorm("momentum norm", [](Rank& rank, absl::Span<double> row_sums) {
    return rank.row_sums().Of(rank.rule().elements()[0], row_sums);
  });
}

absl::Status Node::TakeGradient(const v1::StepParameters& step, int index, double norm) {
  return RunOnState("take gradient", [step, index, norm](Rank& rank, int) {
    return rank.TakeGradient(step, index, norm);
  });
}

absl::StatusOr<bool> Node::StepsAreFinite(const v1::StepParameters& step) {
  if (!deps_.rule->takes_local_steps) return true;
  const auto finite = std::make_shared<std::atomic<bool>>(true);
  DISTRO_RETURN_IF_ERROR(Run("check steps", [step, finite](Rank& rank, int) -> absl::Status {
    DISTRO_ASSIGN_OR_RETURN(const bool of_rank, rank.IsFinite(step));
    if (!of_rank) *finite = false;
    return absl::OkStatus();
  }));
  return finite->load();
}

absl::Status Node::ClipSteps() {
  const double clip = deps_.rule->delta_clip;
  if (clip == 0) return absl::OkStatus();
  DISTRO_ASSIGN_OR_RETURN(const double norm,
                          RunForNorm("sum of steps", [](Rank& rank, absl::Span<double> row_sums) {
                            return rank.SumOfSteps(row_sums);
                          }));
  if (norm <= clip) return absl::OkStatus();
  const auto scale = static_cast<float>(clip / norm);
  return RunOnState("scale steps", [scale](Rank& rank, int) { return rank.ScaleSteps(scale); });
}

absl::Status Node::ForgetState() {
  optimizer_->ForgetPending();
  return RunOnState("forget state", [](Rank& rank, int) { return rank.rule().Forget(); });
}

absl::StatusOr<std::vector<SharedBytes>> Node::Compress(RoundId round,
                                                        const v1::StepParameters& step) {
  optimizer_->ForgetPending();
  DISTRO_ASSIGN_OR_RETURN(const bool finite, StepsAreFinite(step));
  if (!finite) {
    DISTRO_RETURN_IF_ERROR(
        RunOnState("abandon", [](Rank& rank, int) { return rank.rule().Abandon(); }));
    return std::vector<SharedBytes>();
  }
  DISTRO_RETURN_IF_ERROR(ClipSteps());
  DISTRO_RETURN_IF_ERROR(
      RunOnState("compress", [step](Rank& rank, int) { return rank.Compress(step); }));
  optimizer_->SetPending({.round = round, .k = static_cast<int>(step.kept_per_block())});
  return EncodePending();
}

// On all cores, since nothing else runs meanwhile.
absl::StatusOr<std::vector<SharedBytes>> Node::EncodePending() {
  return optimizer_->Encode(Cores());
}

absl::Status Node::Feedback(const CommittedRound& round, int member) {
  std::shared_ptr<const DecodedRound> decoded = std::move(decoded_);
  if (decoded == nullptr) decoded = std::make_shared<const DecodedRound>();
  if (!optimizer_->TakePending(round.round())) return absl::OkStatus();
  return RunOnState("feedback", [round, decoded, member](Rank& rank, int) {
    return rank.rule().Feedback(round, *decoded, member);
  });
}

std::optional<DeltaReadings> Node::delta_readings() const {
  if (!state_is_whole_) return std::nullopt;
  std::optional<DeltaSums> sums = (*ranks_)[0]->rule().sums();
  if (!sums.has_value()) return std::nullopt;
  const size_t holders = ShardsMomentum(options_.fsdp.sharding) ? ranks_->size() : 1;
  for (size_t number = 1; number < holders; ++number) sums->Add(*(*ranks_)[number]->rule().sums());
  return ReadingsOf(*sums);
}

absl::StatusOr<Node::Kept> Node::kept() const {
  if (!state_is_whole_)
    return absl::FailedPreconditionError("a rank failed while it changed the momentum");
  if (deps_.devices->kind() != DeviceKind::kCpu && has_stuck_rank())
    return absl::FailedPreconditionError("a rank is stuck, and its device with it");
  Kept kept = {.elements = {},
               .optimizer = optimizer_.get(),
               .copies = {},
               .local_steps = (*ranks_)[0]->rule().local_steps()};
  const size_t holders = ShardsMomentum(options_.fsdp.sharding) ? ranks_->size() : 1;
  for (int array = 0; array < deps_.rule->element_arrays; ++array) {
    TensorPieces& pieces = kept.elements.emplace_back(layout().tensors().size());
    for (size_t number = 0; number < holders; ++number) {
      const Rank& rank = *(*ranks_)[number];
      DISTRO_ASSIGN_OR_RETURN(const RunSpans spans,
                              rank.OnHost(rank.rule().elements()[array], &kept.copies));
      for (size_t i = 0; i < spans.size(); ++i) pieces[rank.runs()[i].tensor].push_back(spans[i]);
    }
  }
  return kept;
}

absl::Status Node::Restore(std::shared_ptr<const StateReader::Contents> contents) {
  optimizer_->ForgetPending();
  DISTRO_RETURN_IF_ERROR(RunOnState("restore", [contents](Rank& rank, int) {
    return rank.Restore(contents->elements, contents->pending, contents->local_steps);
  }));
  if (contents->pending.has_value())
    optimizer_->SetPending({.round = contents->pending->round, .k = contents->pending->k});
  return absl::OkStatus();
}

}  // namespace distro::worker
