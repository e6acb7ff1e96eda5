// The membership state machine as one pure function (docs/protocol.md, "Membership"): JOINING ->
// SYNCED -> PROBATION -> ACTIVE, with LATE and SUSPECT beside ACTIVE, and LEFT and QUARANTINED as
// ends. What happened is the event, what must be known to judge it are the facts; the answer has
// its reason.
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
  kBeganAnew,       // a heartbeat: it holds no parameters, whatever it held before
  kEnters,          // samples are given out, or probation may be skipped now
  kGoodUpdate,      // a committed round has its whole, valid update, and its state hash stands
  kMissedDeadline,  // a segment closed without it
  kInTime,          // its whole update of a round arrived before the segments closed
  kSilent,          // nothing was heard of it for suspect_after
  kHeard,           // a heartbeat, a frame or another call of it
  kInvalidUpdate,   // an upload of it was not what an encoder makes
  kHashMismatch,    // a majority of at least three contradicts its state hash
  kHashDisputed,    // workers differ in their state hashes, and there is no such majority
  kDisagrees,       // its signs oppose those of the others (Agreement)
  kEvicted,         // an operator evicted it
  kAdmitted,        // an operator admitted it
  kLeft,            // it said so
  kLeaseOver,       // nothing was heard of it for the lease
};

// A rule quarantines with the third invalid upload in a row ...
inline constexpr int kMaxInvalidInARow = 3;
// ... and with a mismatch of the state hash after three others, each with a resync, within 100
// rounds.
inline constexpr int kMaxResyncs = 3;
inline constexpr uint64_t kResyncWindowRounds = 100;

// What is known when the event happens. Counts include the event.
struct MemberFacts {
  bool run_started = true;  // the start record is written
  bool returning = false;   // it took part when the aggregator stopped, and has not since
  int others_active = 0;    // ACTIVE workers besides this one
  int min_workers = 1;
  uint32_t probation_left = 0;  // good updates that are still needed; 0: none
  int invalid_in_a_row = 0;
  int mismatches = 0;  // within kResyncWindowRounds
};

struct MemberTransition {
  v1::MemberState state = v1::MEMBER_STATE_UNSPECIFIED;
  absl::string_view word = {};  // one of kMemberReasons; empty when nothing changes
  std::string reason = {};      // for people; empty when nothing changes
};

// What `event` does to a worker in `state`; no state: the name is not known. An event that means
// nothing in a state leaves it as it is, with an empty reason. A new reason for the same state is a
// change.
MemberTransition Transition(std::optional<v1::MemberState> state, MemberEvent event,
                            const MemberFacts& facts);

// Why probation is skipped, for people; empty: it is not.
absl::string_view WhyNoProbation(const MemberFacts& facts);

// Every word of a transition: labels of the metric of changes.
inline constexpr std::array<absl::string_view, 20> kMemberReasons = {
    "joined",         "caught_up",    "diverged",        "began_anew", "probation",
    "probation_over", "no_probation", "missed_deadline", "in_time",    "silent",
    "heard",          "state_hash",   "disputed_hash",   "evicted",    "admitted",
    "hash_repeats",   "disagreement", "invalid_updates", "left",       "lease_over"};

// Takes part in rounds: gets samples, and its uploads are taken.
bool TakesPart(v1::MemberState state);

// "joining", "synced", "probation", "active", "late", "suspect", "left", "quarantined": for logs,
// metrics and pages.
absl::string_view MemberStateName(v1::MemberState state);

// The states that a worker can be in, in the order of its life. Whoever counts workers by state
// shows all of them.
inline constexpr v1::MemberState kMemberStates[] = {
    v1::MEMBER_STATE_JOINING, v1::MEMBER_STATE_SYNCED,     v1::MEMBER_STATE_PROBATION,
    v1::MEMBER_STATE_ACTIVE,  v1::MEMBER_STATE_LATE,       v1::MEMBER_STATE_SUSPECT,
    v1::MEMBER_STATE_LEFT,    v1::MEMBER_STATE_QUARANTINED};

}  // namespace distro::server
