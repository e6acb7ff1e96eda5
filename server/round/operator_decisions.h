// Executes decisions of operators and of rules: writes a decision first, then acts on it.
//
// Thread-safe; waits for the disk.
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

  // As RoundManager's.
  absl::Status Pause(absl::string_view reason);
  absl::Status Resume();
  absl::Status Evict(const std::string& name, absl::string_view reason);
  absl::Status Admit(const std::string& name);
  absl::StatusOr<v1::Extension> Extend(uint64_t rounds);

  // Writes the names that rules have put into quarantine since the last write.
  absl::Status WriteQuarantines();
  // Restores the written decisions when the aggregator starts.
  absl::Status Restore();

 private:
  using Edit = absl::FunctionRef<absl::StatusOr<v1::StoredAdmission>(const v1::StoredAdmission&)>;
  using Act = absl::FunctionRef<absl::Status(const v1::StoredAdmission&)>;
  // Writes the edit, then acts on it under the mutex of the shared run; one at a time, so that
  // memory and disk have the same order.
  absl::Status Decide(Edit edit, Act act);

  SharedRun* const shared_;
  absl::Mutex mu_ ABSL_ACQUIRED_BEFORE(shared_->mu);  // held while a decision is written
  AdmissionStore* const admission_ ABSL_PT_GUARDED_BY(mu_);
};

}  // namespace distro::server
