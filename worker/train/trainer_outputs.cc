// Trainer: what it writes to the worker's own disk. Of it only the last checkpoint ends the
// training when it cannot be written.
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"
#include "common/model/checkpoint/hf_folder.h"
#include "common/model/checkpoint/round_folders.h"
#include "worker/train/trainer.h"

namespace distro::worker {

absl::Status Trainer::WriteLastCheckpoint() {
  PhaseScope phase(deps_.phases, Phase::kCheckpoint);
  DISTRO_ASSIGN_OR_RETURN(const Learner::HostTensors parameters, deps_.learner->parameters());
  const absl::Status status = WriteCheckpointFolder(
      options_.checkpoint_dir, deps_.run->model_config_json(), deps_.learner->layout(),
      parameters.pieces, deps_.companions == nullptr ? Companions() : *deps_.companions);
  Wrote(status, options_.checkpoint_dir);
  return Annotate(status, "checkpoint_dir: the last checkpoint is not written; start it again");
}

// The rounds matter more than a checkpoint between them: the next interval tries again.
void Trainer::WriteRoundCheckpoint() {
  PhaseScope phase(deps_.phases, Phase::kCheckpoint);
  const Companions none;
  const RoundId round = deps_.learner->next_round();
  const absl::StatusOr<Learner::HostTensors> parameters = deps_.learner->parameters();
  const absl::Status status =
      !parameters.ok()
          ? parameters.status()
          : WriteRoundFolder(options_.checkpoint_dir,
                             {.round = round,
                              .config_json = &deps_.run->model_config_json(),
                              .layout = &deps_.learner->layout(),
                              .tensors = &parameters->pieces,
                              .companions = deps_.companions == nullptr ? &none : deps_.companions},
                             options_.keep);
  Wrote(status, RoundFolder(options_.checkpoint_dir, round));
}

void Trainer::Wrote(const absl::Status& status, const std::string& dir) {
  const uint64_t round = deps_.learner->next_round().value();
  if (!status.ok()) {
    ++summary_.failed_checkpoints;
    deps_.log->Error("checkpoint not written",
                     {{"round", round}, {"dir", dir}, {"reason", status}});
    return;
  }
  summary_.failed_checkpoints = 0;
  summary_.checkpoint_dir = dir;
  deps_.log->Info("checkpoint written", {{"round", round}, {"dir", dir}});
}

void Trainer::SaveState() {
  if (deps_.state == nullptr) return;
  PhaseScope phase(deps_.phases, Phase::kCheckpoint);
  absl::Status more = KeepLocalSteps();
  if (more.ok()) more = deps_.learner->KeepMore();
  const absl::StatusOr<Learner::Kept> kept = more.ok() ? deps_.learner->kept() : more;
  const absl::Status status =
      !kept.ok() ? kept.status()
                 : deps_.state->Save({.run_id = deps_.run->run_id(),
                                      .worker = options_.worker,
                                      .epoch = epoch_,
                                      .next_round = deps_.learner->next_round(),
                                      .senders = senders_,
                                      .pending_loss = pending_loss_,
                                      .local_steps = kept->local_steps,
                                      .pending_steps = static_cast<uint32_t>(pending_steps_),
                                      .pending_samples = pending_samples_},
                                     kept->elements, *kept->optimizer);
  summary_.failed_saves = status.ok() ? 0 : summary_.failed_saves + 1;
  if (status.ok()) {
    deps_.log->Debug("state saved", {{"round", deps_.learner->next_round().value()}});
  } else {
    deps_.log->Error("state was not saved; the older one stays", {{"reason", status}});
  }
}

}  // namespace distro::worker
