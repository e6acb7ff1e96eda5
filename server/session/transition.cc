#include "server/session/transition.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace distro::server {
namespace {

constexpr auto kJoining = v1::MEMBER_STATE_JOINING;
constexpr auto kSynced = v1::MEMBER_STATE_SYNCED;
constexpr auto kProbation = v1::MEMBER_STATE_PROBATION;
constexpr auto kActive = v1::MEMBER_STATE_ACTIVE;
constexpr auto kLate = v1::MEMBER_STATE_LATE;
constexpr auto kSuspect = v1::MEMBER_STATE_SUSPECT;
constexpr auto kLeft = v1::MEMBER_STATE_LEFT;
constexpr auto kQuarantined = v1::MEMBER_STATE_QUARANTINED;

// Whether the worker's updates count.
bool Counts(v1::MemberState state, const MemberFacts& facts) {
  return TakesPart(state) && facts.probation_left == 0;
}

// A rule may not remove a worker if that leaves fewer than min_workers; an operator may.
bool CanSpare(v1::MemberState state, const MemberFacts& facts) {
  return !Counts(state, facts) || facts.others_active >= facts.min_workers;
}

MemberTransition Enters(v1::MemberState now, const MemberFacts& facts) {
  const bool on_probation = now == kProbation || (now == kLate && facts.probation_left > 0);
  if (now != kSynced && !on_probation) return {now};
  if (const absl::string_view why = WhyNoProbation(facts); !why.empty())
    return {kActive, "no_probation", absl::StrCat("takes part: ", why)};
  if (on_probation) return {now};
  return {kProbation, "probation",
          absl::StrCat("on probation: ", facts.probation_left,
                       " updates are checked before they count")};
}

// Of a worker that is there, and in time.
v1::MemberState InOrder(const MemberFacts& facts) {
  return facts.probation_left > 0 ? kProbation : kActive;
}

MemberTransition OfUpdate(v1::MemberState now, MemberEvent event, const MemberFacts& facts) {
  switch (event) {
    case MemberEvent::kGoodUpdate:
      if (now == kProbation && facts.probation_left == 0)
        return {kActive, "probation_over", "probation is over: its updates count"};
      break;
    case MemberEvent::kMissedDeadline:
      if (now == kActive) return {kLate, "missed_deadline", "missed the deadline"};
      break;
    case MemberEvent::kMissedRound:
      if (now != kProbation || facts.missed_rounds < kMaxMissedRounds) break;
      return {kLate, "missed_deadline",
              absl::StrCat("on probation, and ", facts.missed_rounds,
                           " rounds in a row ended before its update was there")};
    case MemberEvent::kInTime:
      if (now == kLate) return {InOrder(facts), "in_time", "in time again"};
      break;
    case MemberEvent::kInvalidUpdate:
      if (facts.invalid_in_a_row < kMaxInvalidInARow || !CanSpare(now, facts)) break;
      return {kQuarantined, "invalid_updates",
              absl::StrCat(facts.invalid_in_a_row, " invalid uploads in a row")};
    default:
      break;
  }
  return {now};
}

// Verdicts of rounds on a worker that takes part; one that is absent, or about to resync, is not
// judged.
MemberTransition OfVerdict(v1::MemberState now, MemberEvent event, const MemberFacts& facts) {
  if (!TakesPart(now)) return {now};
  switch (event) {
    case MemberEvent::kHashMismatch:
      if (facts.mismatches > kMaxResyncs && CanSpare(now, facts)) {
        return {kQuarantined, "hash_repeats",
                absl::StrCat("state hash differed again after ", facts.mismatches - 1,
                             " resyncs within ", kResyncWindowRounds, " rounds")};
      }
      return {kJoining, "state_hash", "resync: its state hash is not the reference"};
    case MemberEvent::kHashDisputed:
      return {kJoining, "disputed_hash",
              "resync: workers differ in their state hashes, and there is no majority of three"};
    case MemberEvent::kDisagrees:
      if (!CanSpare(now, facts)) break;
      return {kQuarantined, "disagreement", "its signs oppose those of the other workers"};
    default:
      break;
  }
  return {now};
}

MemberTransition OfSession(v1::MemberState now, MemberEvent event, const MemberFacts& facts) {
  switch (event) {
    case MemberEvent::kCaughtUp:
      if (now == kJoining) return {kSynced, "caught_up", "has applied everything"};
      break;
    case MemberEvent::kDiverged:
      return {kJoining, "diverged", "resync: its chain hash is not that of the log"};
    case MemberEvent::kBeganAnew:
      if (now == kJoining) break;
      return {kJoining, "began_anew", "takes the snapshot and the log again"};
    case MemberEvent::kSilent:
      if (now == kProbation || now == kActive || now == kLate)
        return {kSuspect, "silent", "silent: no heartbeat and no frame"};
      break;
    case MemberEvent::kHeard:
      if (now == kSuspect) return {InOrder(facts), "heard", "heard again"};
      break;
    case MemberEvent::kLeft:
      return {kLeft, "left", "left"};
    case MemberEvent::kLeaseOver:
      return {kLeft, "lease_over",
              TakesPart(now) ? "lease over: no heartbeat" : "lease over while joining"};
    default:
      break;
  }
  return {now};
}

}  // namespace

bool TakesPart(v1::MemberState state) {
  return state == kProbation || state == kActive || state == kLate || state == kSuspect;
}

absl::string_view WhyNoProbation(const MemberFacts& facts) {
  if (!facts.run_started) return "it was there when the run began";
  if (facts.probation_left == 0)
    return facts.returning ? "it did when the aggregator stopped" : "no probation is due";
  if (facts.others_active < facts.min_workers) return "fewer than min_workers others are active";
  return "";
}

MemberTransition Transition(std::optional<v1::MemberState> state, MemberEvent event,
                            const MemberFacts& facts) {
  const v1::MemberState now = state.value_or(kLeft);
  if (event == MemberEvent::kEvicted) {
    return {kQuarantined, "evicted", "evicted by an operator"};
  }
  if (now == kQuarantined) {
    if (event == MemberEvent::kAdmitted) return {kLeft, "admitted", "admitted by an operator"};
    return {now};
  }
  if (event == MemberEvent::kJoined) {
    return {kJoining, "joined", "joined: downloads the snapshot and the log"};
  }
  if (now == kLeft) return {now};
  if (event == MemberEvent::kEnters) return Enters(now, facts);
  if (MemberTransition to = OfSession(now, event, facts); !to.word.empty()) return to;
  if (MemberTransition to = OfUpdate(now, event, facts); !to.word.empty()) return to;
  return OfVerdict(now, event, facts);
}

absl::string_view MemberStateName(v1::MemberState state) {
  switch (state) {
    case kJoining:
      return "joining";
    case kSynced:
      return "synced";
    case kProbation:
      return "probation";
    case kActive:
      return "active";
    case kLate:
      return "late";
    case kSuspect:
      return "suspect";
    case kLeft:
      return "left";
    case kQuarantined:
      return "quarantined";
    default:
      return "unknown";
  }
}

}  // namespace distro::server
