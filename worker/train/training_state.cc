// TrainingRun: restores the state of an earlier process.
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/reason.h"
#include "common/base/status_macros.h"
#include "worker/train/training_run.h"

namespace distro::worker {

absl::Status TrainingRun::LoadState() {
  DISTRO_ASSIGN_OR_RETURN(state_, deps_.state->Load());
  if (!state_.has_value() || state_->state().worker == options_.worker) return absl::OkStatus();
  const std::string run_id = state_->state().run_id;
  const std::string reason = absl::StrCat("it is of worker ", state_->state().worker,
                                          ", this worker is ", options_.worker);
  state_.reset();
  return deps_.state->SetAside(run_id, reason);
}

absl::Status TrainingRun::JoinWithState() {
  if (!state_.has_value()) return JoinAndLoad({});
  const std::string run_id = state_->state().run_id;
  v1::JoinRequest request;
  request.set_run_id(run_id);
  request.set_epoch(state_->state().epoch.value());
  const absl::Status status = JoinAndLoad(request);
  if (ReasonOf(status) != "other_run") return status;
  state_.reset();
  DISTRO_RETURN_IF_ERROR(deps_.state->SetAside(run_id, absl::StrCat("it is of run ", run_id)));
  return JoinAndLoad({});
}

std::string TrainingRun::ReasonToSetAside() const {
  const uint64_t round = state_->state().next_round.value();
  if (!state_->CheckLayout(workload_->layout()).ok()) return "it is of a model with other tensors";
  if (run_.head_round() > round && run_.head_round() - round > kOldestStateRounds) {
    return absl::StrCat("it is of round ", round, ", the run is at round ", run_.head_round());
  }
  return "";
}

absl::Status TrainingRun::RestoreState() {
  std::string aside = ReasonToSetAside();
  absl::StatusOr<StateReader::Contents> contents = absl::UnknownError("");
  if (aside.empty()) {
    contents = state_->Read(workload_->layout(), workload_->learner()->rule());
    aside = std::string(contents.status().message());
  }
  if (!contents.ok()) {
    const std::string run_id = state_->state().run_id;
    state_.reset();  // the file is no longer mapped
    return deps_.state->SetAside(run_id, aside);
  }
  // If it is of a round that the snapshot contains, or that this log has not reached, it counts as
  // not included.
  std::optional<PendingUpdate>& pending = contents->pending;
  const bool known = pending.has_value() && pending->round >= workload_->learner()->next_round() &&
                     pending->round.value() <= run_.head_round();
  if (!known) pending.reset();
  const WorkerState state = state_->state();
  deps_.log->Info("continuing with the worker's state",
                  {{"round", state.next_round.value()},
                   {"pending_round", known ? absl::StrCat(pending->round.value()) : "none"}});
  DISTRO_RETURN_IF_ERROR(workload_->learner()->Restore(
      std::make_shared<const StateReader::Contents>(*std::move(contents))));
  trainer_->Resume(state);
  state_.reset();
  return absl::OkStatus();
}

}  // namespace distro::worker
