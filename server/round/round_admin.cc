// RoundManager: what operators decide. A decision is written first and then takes effect.
#include <utility>

#include "common/base/status_macros.h"
#include "server/round/round_manager.h"
#include "server/session/admission.h"

namespace distro::server {

absl::Status RoundManager::Decree(const v1::StoredAdmission& admission) {
  const absl::Status status = admission_->Write(admission);
  if (!status.ok()) NoteDiskError(status);
  return status;
}

absl::Status RoundManager::Pause(absl::string_view reason) {
  absl::MutexLock admin(&admin_mu_);
  DISTRO_ASSIGN_OR_RETURN(const v1::StoredAdmission next, WithPause(admission_->value(), reason));
  DISTRO_RETURN_IF_ERROR(Decree(next));
  absl::MutexLock lock(&mu_);
  paused_ = true;
  pause_reason_ = next.pause_reason();
  log_->Info("paused", {{"round", head_.value()}, {"reason", pause_reason_}});
  ShowPause();
  Poke();
  return absl::OkStatus();
}

absl::Status RoundManager::Resume() {
  absl::MutexLock admin(&admin_mu_);
  DISTRO_RETURN_IF_ERROR(Decree(WithoutPause(admission_->value())));
  absl::MutexLock lock(&mu_);
  if (paused_) log_->Info("resumed", {{"round", head_.value()}});
  paused_ = false;
  pause_reason_.clear();
  ShowPause();
  Poke();
  return absl::OkStatus();
}

absl::Status RoundManager::Evict(const std::string& name, absl::string_view reason) {
  RoundId round;
  {
    absl::MutexLock lock(&mu_);
    round = head_;
  }
  absl::MutexLock admin(&admin_mu_);
  if (reason.empty()) reason = "evicted by an operator";
  DISTRO_ASSIGN_OR_RETURN(const v1::StoredAdmission next,
                          WithQuarantined(admission_->value(), name, reason, round));
  DISTRO_RETURN_IF_ERROR(Decree(next));
  absl::MutexLock lock(&mu_);
  for (const v1::QuarantinedWorker& entry : next.quarantined()) {
    if (entry.name() == name) membership_.Quarantine(entry);
  }
  return absl::OkStatus();
}

absl::Status RoundManager::Admit(const std::string& name) {
  DISTRO_RETURN_IF_ERROR(WriteAdmission());  // a rule's quarantine may not be written yet
  absl::MutexLock admin(&admin_mu_);
  DISTRO_ASSIGN_OR_RETURN(const v1::StoredAdmission next,
                          WithoutQuarantined(admission_->value(), name));
  DISTRO_RETURN_IF_ERROR(Decree(next));
  absl::MutexLock lock(&mu_);
  return membership_.Admit(name);
}

// Makes durable what rules decided since.
absl::Status RoundManager::WriteAdmission() {
  absl::MutexLock admin(&admin_mu_);
  v1::StoredAdmission next = admission_->value();
  uint64_t changes = 0;
  {
    absl::MutexLock lock(&mu_);
    changes = membership_.quarantine_changes();
    if (changes == quarantines_written_) return absl::OkStatus();
    membership_.FillQuarantined(&next);
  }
  DISTRO_RETURN_IF_ERROR(admission_->Write(next));
  absl::MutexLock lock(&mu_);
  quarantines_written_ = changes;
  NoteDiskSuccess();
  return absl::OkStatus();
}

}  // namespace distro::server
