// Executes the decisions of operators, and those that rules make in their place: written first,
// then acted upon.
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

class Decrees {
 public:
  // Borrowed.
  explicit Decrees(SharedRun* shared)
      : shared_(shared), admission_(shared->context.files.admission) {}

  // As RoundManager's.
  absl::Status Pause(absl::string_view reason);
  absl::Status Resume();
  absl::Status Evict(const std::string& name, absl::string_view reason);
  absl::Status Admit(const std::string& name);
  absl::StatusOr<v1::Extension> Extend(uint64_t rounds);

  // Makes durable whom rules put into quarantine since.
  absl::Status WriteQuarantines();
  // Takes up what is written, when the aggregator starts.
  absl::Status Restore();

 private:
  using Edit = absl::FunctionRef<absl::StatusOr<v1::StoredAdmission>(const v1::StoredAdmission&)>;
  using Act = absl::FunctionRef<absl::Status(const v1::StoredAdmission&)>;
  // Makes the edit durable, then acts upon it with the mutex of the shared run; one at a time, so
  // that memory and disk have the same order.
  absl::Status Decide(Edit edit, Act act);

  SharedRun* const shared_;
  absl::Mutex mu_ ABSL_ACQUIRED_BEFORE(shared_->mu);  // held while a decision is written
  AdmissionStore* const admission_ ABSL_PT_GUARDED_BY(mu_);
};

}  // namespace distro::server
