#include "server/round/operator_decisions.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "server/session/admission.h"

namespace distro::server {
namespace {

constexpr uint64_t kMaxRounds = uint64_t{1} << 32;

absl::Status CheckExtension(const RunPosition& position, const v1::RunConfig& config,
                            uint64_t rounds) {
  if (rounds > kMaxRounds)
    return absl::InvalidArgumentError(absl::StrCat("rounds: ", rounds, " are above ", kMaxRounds));
  if (rounds < position.rounds() || (rounds == position.rounds() && !position.extension())) {
    return absl::FailedPreconditionError(absl::StrCat("rounds: the run has ", position.rounds(),
                                                      " and is extended by more, not to ", rounds));
  }
  if (position.head().value() < position.rounds() || config.min_learning_rate() > 0)
    return absl::OkStatus();
  return absl::FailedPreconditionError(
      "rounds: the run is done and its min_learning_rate is 0, so that it would learn nothing "
      "more: "
      "begin a new run from its last checkpoint");
}

}  // namespace

absl::Status OperatorDecisions::Decide(Edit edit, Act act) {
  absl::MutexLock admin(&mu_);
  DISTRO_ASSIGN_OR_RETURN(const v1::StoredAdmission next, edit(admission_->value()));
  if (absl::Status status = admission_->Write(next); !status.ok()) {
    shared_->NoteDiskError(status);
    return status;
  }
  absl::MutexLock lock(&shared_->mu);
  shared_->Poke();
  return act(next);
}

absl::Status OperatorDecisions::Pause(absl::string_view reason) {
  return Decide([&](const v1::StoredAdmission& now) { return WithPause(now, reason); },
                [&](const v1::StoredAdmission& next) {
                  shared_->mu.AssertHeld();
                  shared_->control.Pause(next.pause_reason());
                  return absl::OkStatus();
                });
}

absl::Status OperatorDecisions::Resume() {
  return Decide([](const v1::StoredAdmission& now) { return WithoutPause(now); },
                [&](const v1::StoredAdmission& /*next*/) {
                  shared_->mu.AssertHeld();
                  shared_->control.Resume();
                  return absl::OkStatus();
                });
}

absl::StatusOr<v1::Extension> OperatorDecisions::Extend(uint64_t rounds) {
  v1::Extension extension;
  {
    absl::MutexLock lock(&shared_->mu);
    const RunPosition& position = shared_->position;
    DISTRO_RETURN_IF_ERROR(CheckExtension(position, shared_->context.run->config, rounds));
    if (rounds == position.rounds() && position.extension()) return *position.extension();
    extension = position.ExtensionTo(rounds);
  }
  DISTRO_RETURN_IF_ERROR(
      Decide([&](const v1::StoredAdmission& now) { return WithExtension(now, extension); },
             [&](const v1::StoredAdmission& /*next*/) {
               shared_->mu.AssertHeld();
               // Rounds may have opened during the write: their rates are already announced.
               extension = shared_->position.ExtensionTo(rounds);
               shared_->position.Extend(extension);
               shared_->control.Extended(rounds);
               shared_->broadcast.Continue();
               return absl::OkStatus();
             }));
  return extension;
}

absl::Status OperatorDecisions::Evict(const std::string& name, absl::string_view reason) {
  RoundId round;
  {
    absl::MutexLock lock(&shared_->mu);
    round = shared_->position.head();
  }
  if (reason.empty()) reason = "evicted by an operator";
  return Decide(
      [&](const v1::StoredAdmission& now) { return WithQuarantined(now, name, reason, round); },
      [&](const v1::StoredAdmission& next) {
        shared_->mu.AssertHeld();
        for (const v1::QuarantinedWorker& entry : next.quarantined()) {
          if (entry.name() == name) shared_->workers.members().Quarantine(entry);
        }
        return absl::OkStatus();
      });
}

absl::Status OperatorDecisions::Admit(const std::string& name) {
  DISTRO_RETURN_IF_ERROR(WriteQuarantines());  // a rule's quarantine may not be written yet
  return Decide([&](const v1::StoredAdmission& now) { return WithoutQuarantined(now, name); },
                [&](const v1::StoredAdmission& /*next*/) {
                  shared_->mu.AssertHeld();
                  return shared_->workers.members().Admit(name);
                });
}

absl::Status OperatorDecisions::WriteQuarantines() {
  absl::MutexLock admin(&mu_);
  v1::StoredAdmission next = admission_->value();
  uint64_t changes = 0;
  {
    absl::MutexLock lock(&shared_->mu);
    const Membership& members = shared_->workers.members();
    changes = members.quarantine_changes();
    if (changes == shared_->quarantines_written) return absl::OkStatus();
    members.FillQuarantined(&next);
  }
  DISTRO_RETURN_IF_ERROR(admission_->Write(next));
  absl::MutexLock lock(&shared_->mu);
  shared_->quarantines_written = changes;
  shared_->disk.Wrote(shared_->position.head());
  return absl::OkStatus();
}

absl::Status OperatorDecisions::Restore() {
  absl::MutexLock admin(&mu_);
  return shared_->Restore(admission_->value());
}

}  // namespace distro::server
