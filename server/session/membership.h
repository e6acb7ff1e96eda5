// The workers of a run by name: sessions, leases, states. Transition() decides on states.
//
// Not thread-safe: SharedRun has the mutex, and the clock is the caller's. Times are monotonic.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/base/ids.h"
#include "common/base/log.h"
#include "distro/v1/round.pb.h"
#include "distro/v1/session.pb.h"
#include "distro/v1/store.pb.h"
#include "server/session/transition.h"
#include "server/session/worker.h"

namespace distro::server {

// Number of left workers that are remembered.
inline constexpr int kLeftKept = 1024;
// Number of quarantined names that are remembered: a bound, since with --insecure names can be
// invented.
inline constexpr int kQuarantinedKept = 1024;

struct MembershipOptions {
  int max_workers = 1;                                      // sessions at one time
  absl::Duration lease;                                     // silence after which a worker has gone
  absl::Duration suspect_after = absl::InfiniteDuration();  // silence after which it is SUSPECT
  int min_workers = 1;            // ACTIVE workers that rules must leave in the run
  uint32_t probation_rounds = 0;  // good updates before a joiner's updates count
  // From run.json; empty: that of the first worker to join; kAnyData: none is compared.
  std::string data_fingerprint = {};
};

// A worker's position relative to the log, by its heartbeat.
enum class Progress { kBehind, kCaughtUp, kDiverged };

// The directive for a worker and its reason, which is empty with CONTINUE.
struct HeartbeatAnswer {
  v1::Directive directive = v1::DIRECTIVE_CONTINUE;
  std::string reason = {};
};

class Membership {
 public:
  // A change of a worker's state: the worker as it is now, and one of kMemberReasons.
  using OnChange = std::function<void(const Worker&, absl::string_view word)>;

  // `log` is borrowed.
  Membership(const MembershipOptions& options, Log* log, OnChange on_change = nullptr)
      : options_(options),
        log_(log),
        on_change_(std::move(on_change)),
        fingerprint_(options.data_fingerprint) {}

  // Fixes the fingerprint of the run's data (it is in the start record). The run has now started.
  void FixFingerprint(const std::string& fingerprint);
  // The fingerprint of the run's configuration, or of the first worker that joined; empty before.
  const std::string& fingerprint() const { return fingerprint_; }

  // Sets the members of the last record when the aggregator starts (in a run without records, the
  // workers with samples, as ACTIVE). A worker that counted returns without probation; one that was
  // on probation continues it.
  void Restore(absl::Span<const v1::Member> members);

  // Sessions --------------------------------------------------------------------------------------

  // Starts a session, or repeats it; `own_tokens` as reported. The newest join of a name wins: a
  // replaced incarnation cannot return. Ends a pending resync, since the worker starts from a
  // snapshot. Status reasons in quotes. InvalidArgument: invalid name or incarnation, a fingerprint
  // that is too long. FailedPrecondition "other_data": the data differ from the run's (names both),
  // or no fingerprint where the run compares them. Aborted "replaced": a newer process has joined.
  // ResourceExhausted "full": max_workers are in session. PermissionDenied "quarantined": with the
  // reason, and how to end it.
  absl::Status Join(const v1::WorkerIdentity& identity, const std::string& data_fingerprint,
                    absl::Duration now, uint64_t own_tokens = 0);

  // Handles a heartbeat; returns the directive for the worker. A stale one (sequence not above the
  // last) only renews the lease. RESYNC is repeated until the worker starts over: by a Join, a
  // heartbeat without next_round, or one with a lower next_round than before.
  HeartbeatAnswer Heartbeat(const v1::HeartbeatRequest& request, Progress progress,
                            absl::Duration now);

  // OK if the process is in session; renews its lease. FailedPrecondition "no_session": unknown, it
  // must join. Aborted "replaced", PermissionDenied "quarantined": as Join.
  absl::Status CheckSession(const v1::WorkerIdentity& identity, absl::Duration now);

  // Ends the session if it is of exactly this process.
  void Leave(const v1::WorkerIdentity& identity, absl::string_view reason);

  // Workers whose lease ended become LEFT. Returns their names.
  std::vector<std::string> ExpireLeases(absl::Duration now);
  // Workers that are silent for suspect_after become SUSPECT. Returns their names.
  std::vector<std::string> SuspectSilent(absl::Duration now);
  // When the next lease ends or the next worker becomes SUSPECT; infinite if neither.
  absl::Duration NextExpiry() const;

  // States ----------------------------------------------------------------------------------------

  // Applies an event of a round. `detail` is appended to the reason. `round` is for kHashMismatch
  // and kHashDisputed: a verdict on a round before the worker was last in sync, or a second one on
  // the same round, is ignored.
  void Apply(const std::string& name, MemberEvent event, absl::string_view detail = "",
             RoundId round = RoundId(0));
  // Lets SYNCED workers take part. Called before samples are assigned.
  void EnterSynced();

  // Stops accepting anything from this name, known or not. The entry is already durable.
  void Quarantine(const v1::QuarantinedWorker& entry);
  // Lets the name join again. NotFound: it is not in quarantine.
  absl::Status Admit(const std::string& name);
  // Sets the list of quarantined names, ascending, including those by rules, for the durable
  // admission.
  void FillQuarantined(v1::StoredAdmission* admission) const;
  // Increases when that list changes.
  uint64_t quarantine_changes() const { return quarantine_changes_; }

  // nullptr when the name was never seen.
  const Worker* Find(absl::string_view name) const;
  // Ascending by name, with those that left (the newest kLeftKept of them).
  const std::map<std::string, Worker, std::less<>>& workers() const { return workers_; }
  int Count(v1::MemberState state) const;
  // PROBATION, ACTIVE, LATE and SUSPECT workers, which get samples; ascending by name.
  std::vector<std::string> TakingPart() const;
  // How many of them have votes that count.
  int Counted() const;

 private:
  int Sessions() const;
  bool TakesAnyData() const;
  // Drops the worker that left first, or was quarantined first, when too many are remembered.
  void ForgetLeft();
  void ForgetQuarantined();
  // Drops the first worker of this state; requires that there is one.
  template <typename Before>
  void Erase(v1::MemberState state, Before before);
  absl::Status CheckFingerprint(const std::string& fingerprint) const;
  // Starts a new process of the name.
  void Begin(Worker* worker, uint64_t incarnation);
  // Renews the lease.
  void Hear(Worker* worker, absl::Duration now);
  MemberFacts FactsOf(const Worker& worker) const;
  // Calls Transition() and applies the result.
  void Change(Worker* worker, MemberEvent event, absl::string_view detail = "");
  void Enter(Worker* worker, v1::MemberState state, MemberEvent event);
  // Ends the probation of workers that may skip it now.
  void SkipProbation();
  // Adds a verdict on `round` to the worker's counts; false if it does not apply to the worker's
  // current parameters.
  bool TakeVerdict(Worker* worker, MemberEvent event, RoundId round);

  // Constant after construction.
  const MembershipOptions options_;
  Log* const log_;
  const OnChange on_change_;

  std::string fingerprint_;
  bool fingerprint_is_fixed_ = false;
  std::map<std::string, Worker, std::less<>> workers_;
  int active_ = 0;  // ACTIVE workers
  uint64_t quarantine_changes_ = 0;
};

}  // namespace distro::server
