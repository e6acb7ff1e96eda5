// The membership state machine as one pure function (docs/protocol.md, "Membership"): JOINING ->
// SYNCED -> PROBATION -> ACTIVE, with LATE and SUSPECT beside ACTIVE, and LEFT and QUARANTINED as
// final states. The inputs are the state, an event, and facts; the result includes its reason.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "distro/v1/round.pb.h"

namespace distro::server {

enum class MemberEvent {
  kJoined,          // a process began a session, the first one of its name or a newer one
  kCaughtUp,        // a heartbeat: everything up to the head is applied, and its chain hash is ours
  kDiverged,        // a heartbeat: its chain hash is not ours, or it is ahead of the log
  kBeganAnew,       // a heartbeat: it starts over without parameters
  kEnters,          // samples are assigned, or probation may be skipped now
  kGoodUpdate,      // a committed round has its whole, valid update, and its state hash is right
  kMissedDeadline,  // a segment closed without it
  kMissedRound,     // a committed round has neither its whole update nor its abstention
  kInTime,          // its whole update of a round arrived before the segments closed
  kSilent,          // no message for suspect_after
  kHeard,           // a heartbeat, a frame or another call
  kInvalidUpdate,   // it uploaded an invalid payload
  kHashMismatch,    // a majority of at least three contradicts its state hash
  kHashDisputed,    // workers differ in their state hashes, and there is no such majority
  kDisagrees,       // its signs oppose those of the others (Agreement)
  kEvicted,         // an operator evicted it
  kAdmitted,        // an operator admitted it
  kLeft,            // it called Leave
  kLeaseOver,       // no message for the lease
};

// A worker on probation, for which rounds do not wait, is late after this many in a row without its
// update.
inline constexpr int kMaxMissedRounds = 3;
// A rule quarantines with the third invalid upload in a row ...
inline constexpr int kMaxInvalidInARow = 3;
// ... and with a mismatch of the state hash after three others, each with a resync, within 100
// rounds.
inline constexpr int kMaxResyncs = 3;
inline constexpr uint64_t kResyncWindowRounds = 100;

// Facts at the time of the event. Counts include the event.
struct MemberFacts {
  bool run_started = true;  // the start record is written
  bool returning = false;   // it took part when the aggregator stopped, and has not since
  int others_active = 0;    // ACTIVE workers besides this one
  int min_workers = 1;
  uint32_t probation_left = 0;  // good updates still needed
  int missed_rounds = 0;        // in a row
  int invalid_in_a_row = 0;
  int mismatches = 0;  // within kResyncWindowRounds
};

struct MemberTransition {
  v1::MemberState state = v1::MEMBER_STATE_UNSPECIFIED;
  absl::string_view word = {};  // one of kMemberReasons; empty when nothing changes
  std::string reason = {};      // human-readable; empty when nothing changes
};

// The effect of `event` on a worker in `state` (nullopt: the name is unknown). An event without
// meaning in a state does not change it and returns an empty reason. A new reason for the same
// state is a change.
MemberTransition Transition(std::optional<v1::MemberState> state, MemberEvent event,
                            const MemberFacts& facts);

// Why probation is skipped, human-readable; empty if it is not.
absl::string_view WhyNoProbation(const MemberFacts& facts);

// All words of transitions: label values of the metric of changes.
inline constexpr std::array<absl::string_view, 20> kMemberReasons = {
    "joined",         "caught_up",    "diverged",        "began_anew", "probation",
    "probation_over", "no_probation", "missed_deadline", "in_time",    "silent",
    "heard",          "state_hash",   "disputed_hash",   "evicted",    "admitted",
    "hash_repeats",   "disagreement", "invalid_updates", "left",       "lease_over"};

// Whether a worker in this state takes part in rounds: it gets samples and may upload.
bool TakesPart(v1::MemberState state);

// "joining", "synced", "probation", "active", "late", "suspect", "left", "quarantined": for logs,
// metrics and pages.
absl::string_view MemberStateName(v1::MemberState state);

// All states of a worker, in order of its life. Counts of workers by state include all of them.
inline constexpr v1::MemberState kMemberStates[] = {
    v1::MEMBER_STATE_JOINING, v1::MEMBER_STATE_SYNCED,     v1::MEMBER_STATE_PROBATION,
    v1::MEMBER_STATE_ACTIVE,  v1::MEMBER_STATE_LATE,       v1::MEMBER_STATE_SUSPECT,
    v1::MEMBER_STATE_LEFT,    v1::MEMBER_STATE_QUARANTINED};

}  // namespace distro::server
