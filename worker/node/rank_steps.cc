// Rank: its copy of the parameters, for local steps and the lookahead.
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

absl::Status Rank::MakeLookahead(float eta) {
  copy_is_gathered_ = !gathers_copy_;
  const ShardArrays& arrays = shard_rule_->arrays();
  return shard_rule_->rule().Lookahead(eta, arrays.parameters, arrays.copy);
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
