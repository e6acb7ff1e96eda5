// The rendezvous of the ranks of a node, with a watchdog. Implementation detail of the
// communicators. Thread-safe.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/base/steady_cond_var.h"
#include "worker/fsdp/thread_communicator.h"

namespace distro::worker {

// One rank's call of an operation.
struct RankCall {
  absl::string_view operation;  // "all-gather"; a literal
  std::string what;
  std::vector<int64_t> cuts = {};  // or counts
  int detail = 0;                  // accumulation
  at::Tensor tensor = {};

  std::string Describe() const;               // all-gather "block 3 parameters"
  bool Matches(const RankCall& other) const;  // the same operation on the same thing
};
using RankCalls = std::vector<RankCall>;

class RankMeeting {
 public:
  RankMeeting(int ranks, const ThreadGroupOptions& options);

  int ranks() const { return ranks_; }
  int waiting() const;
  void CheckWatchdog();

  // Registers this rank's call; returns those of all ranks once all have arrived.
  absl::StatusOr<std::shared_ptr<const RankCalls>> Arrive(int rank, RankCall call);
  // Declares that this rank no longer uses the others' memory; returns once no rank does.
  absl::Status Depart(int rank, const RankCall& call);

  // Arrives, enqueues this rank's part, and departs: no rank enqueues before all have come, and
  // none goes on before all have enqueued. So a rank does nothing else while a peer's device has
  // work that waits for its part (docs/decisions/0027). An error of `enqueue` ends the group.
  absl::Status Together(int rank, const RankCall& call, absl::FunctionRef<absl::Status()> enqueue);

  // OK unless the group has ended.
  absl::Status Check(const RankCall& call) const;

  // Ends the group because `rank` failed with `why`. Only the first call counts.
  void End(int rank, const absl::Status& why);

 private:
  absl::Status Meet(int rank, const RankCall& call, absl::string_view not_yet)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Agree() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  std::string Absent() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status Ended(const RankCall& call) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const int ranks_;
  const ThreadGroupOptions options_;
  mutable absl::Mutex mu_;
  SteadyCondVar changed_;
  RankCalls calls_ ABSL_GUARDED_BY(mu_);  // [R], of those who are present
  std::vector<bool> present_ ABSL_GUARDED_BY(mu_);
  uint64_t meetings_ ABSL_GUARDED_BY(mu_) = 0;  // that have taken place
  int waiting_ ABSL_GUARDED_BY(mu_) = 0;
  std::shared_ptr<const RankCalls> agreed_ ABSL_GUARDED_BY(mu_);
  absl::Status end_ ABSL_GUARDED_BY(mu_);      // OK: has not ended
  int failed_rank_ ABSL_GUARDED_BY(mu_) = -1;  // -1: no single one
};

}  // namespace distro::worker
