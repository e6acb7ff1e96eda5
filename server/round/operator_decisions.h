// Decisions of operators, and quarantines by rules: each is written first, and then acted on.
//
// Thread-safe. Waits for the disk.
#pragma once

#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "distro/v1/store.pb.h"
#include "server/log/admission_store.h"
#include "server/round/shared_run.h"

namespace distro::server {

class OperatorDecisions {
 public:
  // Borrowed.
  explicit OperatorDecisions(SharedRun* shared)
      : shared_(shared), admission_(shared->context.files.admission) {}

  // These are durable when the call returns. Status reason "disk": not stored, nothing changed. A
  // reason has at most 200 bytes (InvalidArgument).
  absl::Status Pause(absl::string_view reason);
  absl::Status Resume();
  // Quarantines a name, known or not: ends its streams, and removes its payloads from segments of
  // the open round that are not closed.
  absl::Status Evict(const std::string& name, absl::string_view reason);
  // NotFound: the name is not in quarantine.
  absl::Status Admit(const std::string& name);
  // Sets the number of rounds, also of a run that is done; the same number again is OK.
  // FailedPrecondition: fewer than it has, or it is done and its last rate is 0. InvalidArgument:
  // more than a run may have.
  absl::StatusOr<v1::Extension> Extend(uint64_t rounds);

  // Writes the names that rules have put into quarantine since the last write.
  absl::Status WriteQuarantines();
  // Restores the written decisions when the aggregator starts.
  absl::Status Restore();

 private:
  using Edit = absl::FunctionRef<absl::StatusOr<v1::StoredAdmission>(const v1::StoredAdmission&)>;
  using Act = absl::FunctionRef<absl::Status(SharedRun::State&, const v1::StoredAdmission&)>;
  // Writes the edit, then acts on it; one at a time, so that memory and disk have the same order.
  absl::Status Decide(Edit edit, Act act);

  SharedRun* const shared_;
  absl::Mutex mu_;  // held while a decision is written; taken before the one of SharedRun
  AdmissionStore* const admission_ ABSL_PT_GUARDED_BY(mu_);
};

}  // namespace distro::server
