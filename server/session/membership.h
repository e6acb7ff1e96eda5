// The workers of a run by name: sessions, leases, states, last readings. The thinking about states is Transition().
//
// Not thread-safe: its owner (RoundManager) has the mutex and the clock. Times are monotonic.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/base/log.h"
#include "distro/v1/round.pb.h"
#include "distro/v1/session.pb.h"
#include "server/session/transition.h"

namespace distro::server {

// Workers that left and are still known by name.
inline constexpr int kLeftKept = 1024;

struct MembershipOptions {
  int max_workers = 1;   // sessions at one time
  absl::Duration lease;  // silence after which a worker has gone
};

struct Worker {
  std::string name;
  uint64_t incarnation = 0;
  v1::MemberState state = v1::MEMBER_STATE_JOINING;
  std::string reason = {};
  absl::Duration last_seen = {};
  uint64_t sequence = 0;  // of the last heartbeat taken
  uint64_t next_round = 0;
  v1::WorkerTelemetry telemetry = {};
  // The last incarnations that a newer one replaced, oldest first; a handful.
  std::vector<uint64_t> replaced = {};

  bool in_session() const { return state != v1::MEMBER_STATE_LEFT; }
  // Gets samples and may upload.
  bool takes_part() const {
    return state == v1::MEMBER_STATE_ACTIVE || state == v1::MEMBER_STATE_LATE;
  }
};

// A worker's place in the log against ours, as its heartbeat tells it.
enum class Progress { kBehind, kCaughtUp, kDiverged };

class Membership {
 public:
  // `log` is borrowed.
  Membership(const MembershipOptions& options, Log* log) : options_(options), log_(log) {}

  // The data of the run, fixed for ever (it is in the start record).
  void FixFingerprint(const std::string& fingerprint);
  // Of the first worker that joined; empty before.
  const std::string& fingerprint() const { return fingerprint_; }

  // Begins a session, or repeats it. The newest join of a name wins: an incarnation that another one replaced stays out.
  // InvalidArgument: bad name or incarnation, no fingerprint. FailedPrecondition: other data than the run's (both are
  // named). Aborted: this process was replaced. ResourceExhausted: max_workers are in session.
  absl::Status Join(const v1::WorkerIdentity& identity, const std::string& data_fingerprint,
                    absl::Duration now);

  // Takes a heartbeat; a stale one (sequence not above the last) only proves life. What the worker is to do.
  v1::Directive Heartbeat(const v1::HeartbeatRequest& request, Progress progress,
                          absl::Duration now);

  // OK when the process is in session; it was heard now. FailedPrecondition: not known, join (again). Aborted: a newer
  // process has the name.
  absl::Status CheckSession(const v1::WorkerIdentity& identity, absl::Duration now);

  // Ends the session of exactly this process; others are left alone.
  void Leave(const v1::WorkerIdentity& identity, absl::string_view reason);

  // Workers whose lease ended become LEFT. Returns their names.
  std::vector<std::string> ExpireLeases(absl::Duration now);
  // When the next lease ends; infinite when none runs.
  absl::Duration NextExpiry() const;

  // Something that the round saw.
  void Apply(const std::string& name, MemberEvent event);

  // nullptr when the name was never seen.
  const Worker* Find(absl::string_view name) const;
  // Ascending by name, with those that left (the newest kLeftKept of them).
  const std::map<std::string, Worker, std::less<>>& workers() const { return workers_; }
  int Count(v1::MemberState state) const;
  // ACTIVE and LATE workers, ascending by name.
  std::vector<std::string> TakingPart() const;

 private:
  int Sessions() const;
  // Drops the worker that left first when too many are remembered.
  void Forget();
  absl::Status CheckFingerprint(const std::string& fingerprint) const;
  // A new process of that name begins.
  void Begin(Worker* worker, uint64_t incarnation);
  void Change(Worker* worker, MemberEvent event);

  const MembershipOptions options_;
  Log* const log_;
  std::string fingerprint_;
  bool fingerprint_is_fixed_ = false;
  std::map<std::string, Worker, std::less<>> workers_;
};

}  // namespace distro::server
