// The workers of a run by name: sessions, leases, states, last readings. The thinking about states
// is Transition().
//
// Not thread-safe: its owner (RoundManager) has the mutex and the clock. Times are monotonic.
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

// Workers that left and are still known by name.
inline constexpr int kLeftKept = 1024;
// Names in quarantine that are remembered. Under TLS names are those of credentials, and fewer;
// with --insecure anybody can make them up.
inline constexpr int kQuarantinedKept = 1024;

struct MembershipOptions {
  int max_workers = 1;                                      // sessions at one time
  absl::Duration lease;                                     // silence after which a worker has gone
  absl::Duration suspect_after = absl::InfiniteDuration();  // silence after which it is SUSPECT
  int min_workers = 1;            // ACTIVE workers that rules leave in the run
  uint32_t probation_rounds = 0;  // good updates before a joiner's votes count
  // That run.json names; empty: that of the first who joins; kAnyData: nobody's is compared.
  std::string data_fingerprint = {};
};

// A worker's place in the log against ours, as its heartbeat tells it.
enum class Progress { kBehind, kCaughtUp, kDiverged };

// What a worker is to do, and why; the reason is empty with CONTINUE.
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

  // The data of the run, fixed for ever (it is in the start record): from now on the run has
  // started.
  void FixFingerprint(const std::string& fingerprint);
  // Of the run's configuration, or the first worker that joined; empty before.
  const std::string& fingerprint() const { return fingerprint_; }

  // Members of the last record, when the aggregator starts (of a run without records: those with
  // samples, as ACTIVE). Who counted needs no probation when it comes back; who was on probation
  // goes on with it.
  void Restore(absl::Span<const v1::Member> members);

  // Sessions --------------------------------------------------------------------------------------

  // Begins a session, or repeats it; `own_tokens` as it says them. The newest join of a name wins:
  // an incarnation that another one replaced stays out. Ends a resync that the worker was told of:
  // it begins from a snapshot. Reasons in quotes. InvalidArgument: bad name or incarnation, a
  // fingerprint that is too long. FailedPrecondition "other_data": other data than the run's (both are
  // named), or no fingerprint where the run compares them.
  // Aborted "replaced": by a newer process. ResourceExhausted "full": max_workers are in session.
  // PermissionDenied "quarantined": with why, and what ends it.
  absl::Status Join(const v1::WorkerIdentity& identity, const std::string& data_fingerprint,
                    absl::Duration now, uint64_t own_tokens = 0);

  // Takes a heartbeat; a stale one (sequence not above the last) only proves life. What the worker
  // is to do. RESYNC is repeated until it begins anew: a Join, a heartbeat without next_round, or
  // one with a lower next_round than before.
  HeartbeatAnswer Heartbeat(const v1::HeartbeatRequest& request, Progress progress,
                            absl::Duration now);

  // OK when the process is in session; it was heard now. FailedPrecondition "no_session": not
  // known, join (again). Aborted "replaced", PermissionDenied "quarantined": as Join.
  absl::Status CheckSession(const v1::WorkerIdentity& identity, absl::Duration now);

  // Ends the session of exactly this process; others are left alone.
  void Leave(const v1::WorkerIdentity& identity, absl::string_view reason);

  // Workers whose lease ended become LEFT. Returns their names.
  std::vector<std::string> ExpireLeases(absl::Duration now);
  // Workers that are silent for suspect_after become SUSPECT. Returns their names.
  std::vector<std::string> SuspectSilent(absl::Duration now);
  // When the next lease ends or the next worker becomes SUSPECT; infinite when neither is to come.
  absl::Duration NextExpiry() const;

  // States ----------------------------------------------------------------------------------------

  // Something that a round saw. `detail` is appended to the reason; `round` is that of
  // kHashMismatch and kHashDisputed: a verdict on a round before the worker was last in sync, or a
  // second one on the same round, changes nothing.
  void Apply(const std::string& name, MemberEvent event, absl::string_view detail = "",
             RoundId round = RoundId(0));
  // SYNCED workers take part from now on. Called before samples are given out.
  void EnterSynced();

  // Nothing is accepted from this name any more, whether it is known or not. The entry is durable
  // already; its reason is the worker's.
  void Quarantine(const v1::QuarantinedWorker& entry);
  // The name may join again. NotFound: it is not in quarantine.
  absl::Status Admit(const std::string& name);
  // The list of names in quarantine, ascending, also those that a rule put there: what is to be
  // durable.
  void FillQuarantined(v1::StoredAdmission* admission) const;
  // Rises when that list changes.
  uint64_t quarantine_changes() const { return quarantine_changes_; }

  // nullptr when the name was never seen.
  const Worker* Find(absl::string_view name) const;
  // Ascending by name, with those that left (the newest kLeftKept of them).
  const std::map<std::string, Worker, std::less<>>& workers() const { return workers_; }
  int Count(v1::MemberState state) const;
  // PROBATION, ACTIVE, LATE and SUSPECT workers, ascending by name: who gets samples.
  std::vector<std::string> TakingPart() const;
  // How many of them have votes that count.
  int Counted() const;

 private:
  int Sessions() const;
  bool TakesAnyData() const;
  // Drop the worker that left first, or went into quarantine first, when too many are remembered.
  void ForgetLeft();
  void ForgetQuarantined();
  // Drops the first worker of that state, of which there is one.
  template <typename Before>
  void Erase(v1::MemberState state, Before before);
  absl::Status CheckFingerprint(const std::string& fingerprint) const;
  // A new process of that name begins.
  void Begin(Worker* worker, uint64_t incarnation);
  // It was heard now.
  void Hear(Worker* worker, absl::Duration now);
  MemberFacts FactsOf(const Worker& worker) const;
  // Transition(), and what follows from it.
  void Change(Worker* worker, MemberEvent event, absl::string_view detail = "");
  void Enter(Worker* worker, v1::MemberState state, MemberEvent event);
  // Ends probation where it may be skipped now.
  void SkipProbation();
  // Takes a verdict on `round` into the worker's counts; false: it is none on the worker as it is
  // now.
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
