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
    return absl::FailedPreconditionError(absl::StrCat(
        "rounds: the run has ", position.rounds(), ": ask for more than that, not for ", rounds));
  }
  if (position.head().value() < position.rounds() || config.min_learning_rate() > 0)
    return absl::OkStatus();
  return absl::FailedPreconditionError(
      "rounds: the run is done and its min_learning_rate is 0, so that it would learn nothing "
      "more: begin a new run from its last checkpoint");
}

}  // namespace

absl::Status OperatorDecisions::Decide(Edit edit, Act act) {
  absl::MutexLock admin(&mu_);
  DISTRO_ASSIGN_OR_RETURN(const v1::StoredAdmission next, edit(admission_->value()));
  // Durable before it acts: what an operator was told holds after a crash too.
  if (absl::Status status = admission_->Write(next); !status.ok()) {
    shared_->NoteDiskError(status);
    return status;
  }
  const SharedRun::Lock run(shared_);
  run->WakeRoundThread();
  return act(*run, next);
}

absl::Status OperatorDecisions::Pause(absl::string_view reason) {
  return Decide([&](const v1::StoredAdmission& now) { return WithPause(now, reason); },
                [](SharedRun::State& run, const v1::StoredAdmission& next) {
                  run.control.Pause(next.pause_reason());
                  return absl::OkStatus();
                });
}

absl::Status OperatorDecisions::Resume() {
  return Decide([](const v1::StoredAdmission& now) { return WithoutPause(now); },
                [](SharedRun::State& run, const v1::StoredAdmission& /*next*/) {
                  run.control.Resume();
                  return absl::OkStatus();
                });
}

absl::StatusOr<v1::Extension> OperatorDecisions::Extend(uint64_t rounds) {
  v1::Extension extension;
  {
    const SharedRun::Lock run(shared_);
    const RunPosition& position = run->position;
    DISTRO_RETURN_IF_ERROR(CheckExtension(position, shared_->context.run->config, rounds));
    if (rounds == position.rounds() && position.extension()) return *position.extension();
    extension = position.ExtensionTo(rounds);
  }
  DISTRO_RETURN_IF_ERROR(
      Decide([&](const v1::StoredAdmission& now) { return WithExtension(now, extension); },
             [&](SharedRun::State& run, const v1::StoredAdmission& /*next*/) {
               // Rounds may have opened during the write: their rates are already announced.
               extension = run.position.ExtensionTo(rounds);
               run.position.Extend(extension);
               run.control.Extended(rounds);
               shared_->broadcast.Continue();
               return absl::OkStatus();
             }));
  return extension;
}

absl::Status OperatorDecisions::Evict(const std::string& name, absl::string_view reason) {
  RoundId round;
  {
    const SharedRun::Lock run(shared_);
    round = run->position.head();
  }
  if (reason.empty()) reason = "evicted by an operator";
  return Decide(
      [&](const v1::StoredAdmission& now) { return WithQuarantined(now, name, reason, round); },
      [&](SharedRun::State& run, const v1::StoredAdmission& next) {
        for (const v1::QuarantinedWorker& entry : next.quarantined()) {
          if (entry.name() == name) run.workers.members().Quarantine(entry);
        }
        return absl::OkStatus();
      });
}

absl::Status OperatorDecisions::Admit(const std::string& name) {
  DISTRO_RETURN_IF_ERROR(WriteQuarantines());  // a rule's quarantine may not be written yet
  return Decide([&](const v1::StoredAdmission& now) { return WithoutQuarantined(now, name); },
                [&](SharedRun::State& run, const v1::StoredAdmission& /*next*/) {
                  return run.workers.members().Admit(name);
                });
}

absl::Status OperatorDecisions::WriteQuarantines() {
  absl::MutexLock admin(&mu_);
  v1::StoredAdmission next = admission_->value();
  uint64_t changes = 0;
  {
    const SharedRun::Lock run(shared_);
    const Membership& members = run->workers.members();
    changes = members.quarantine_changes();
    if (changes == run->quarantines_written) return absl::OkStatus();
    members.FillQuarantined(&next);
  }
  DISTRO_RETURN_IF_ERROR(admission_->Write(next));
  const SharedRun::Lock run(shared_);
  run->quarantines_written = changes;
  run->disk.Wrote(run->position.head());
  return absl::OkStatus();
}

absl::Status OperatorDecisions::Restore() {
  absl::MutexLock admin(&mu_);
  const SharedRun::Lock run(shared_);
  return run->Restore(admission_->value());
}

}  // namespace distro::server
