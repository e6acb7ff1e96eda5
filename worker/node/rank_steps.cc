// The rank's copy of the parameters and its rule: local steps, updates, lookahead.
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/node/rank.h"

namespace distro::worker {

absl::Status Rank::BeginLocalSteps() {
  return CatchTorch("copy of the parameters", [&] {
    const at::NoGradGuard no_grad;
    copy_.tensor().copy_(parameters_.tensor());
    copy_is_gathered_ = true;
    return FinishCollectives("copy of the parameters");
  });
}

absl::Status Rank::TakeGradient(const v1::StepParameters& step, int index, double norm) {
  if (deps_.rule->takes_local_steps) copy_is_gathered_ = !gathers_copy_;
  DISTRO_RETURN_IF_ERROR(rule_->TakeGradient(step, index, norm, gradient_runs_, copy_runs_));
  return deps_.communicator->Check("inner step");
}

absl::StatusOr<bool> Rank::IsFinite(const v1::StepParameters& step) {
  return rule_->IsFinite(step, parameter_runs_, copy_runs_);
}

absl::Status Rank::Compress(const v1::StepParameters& step) {
  return rule_->Compress(step, parameter_runs_, copy_runs_);
}

absl::Status Rank::SumOfSteps(absl::Span<double> row_sums) {
  for (size_t i = 0; i < copy_runs_.size(); ++i) {
    DISTRO_RETURN_IF_ERROR(
        master().inner->Subtract(copy_runs_[i], parameter_runs_[i], gradient_runs_[i]));
  }
  return row_sums_->Of(gradient_runs_, row_sums);
}

absl::Status Rank::ScaleSteps(float scale) {
  for (size_t i = 0; i < copy_runs_.size(); ++i) {
    DISTRO_RETURN_IF_ERROR(master().inner->ScaleFrom(scale, parameter_runs_[i], copy_runs_[i]));
  }
  return master().memory->Finish();
}

absl::Status Rank::MakeLookahead(float eta) {
  copy_is_gathered_ = !gathers_copy_;
  return rule_->Lookahead(eta, parameter_runs_, copy_runs_);
}

// Each rank has changed the copy in its rule's runs: the ranges of its shard in every unit's flat.
// A copy on the host is gathered through the device.
absl::Status Rank::GatherCopy() {
  if (copy_is_gathered_) return absl::OkStatus();
  const at::NoGradGuard no_grad;
  const int rank = deps_.communicator->rank();
  for (size_t u = 0; u < deps_.shards->units().size(); ++u) {
    const UnitFlat& unit = deps_.shards->units()[u];
    at::Tensor flat =
        copy_.tensor().narrow(0, deps_.whole->shard(0).unit_offsets[u], unit.elements);
    const at::Tensor there = flat.to(compute_.torch);  // itself, when it is there
    DISTRO_ASSIGN_OR_RETURN(
        const Transfer transfer,
        deps_.communicator->StartAllGather(
            absl::StrCat("copy of unit ", u), unit.cuts,
            there.narrow(0, unit.cuts[rank], unit.cuts[rank + 1] - unit.cuts[rank]), there));
    DISTRO_RETURN_IF_ERROR(deps_.communicator->Wait(transfer));
    if (!there.is_same(flat)) flat.copy_(there);
  }
  copy_is_gathered_ = true;
  return FinishCollectives("copy of the parameters");
}

}  // namespace distro::worker
