#include "server/session/transition.h"

#include <algorithm>
#include <set>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace distro::server {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Where an event leads from each state: a letter of kStates, '.' when nothing changes.
//   - not known, J joining, S synced, P probation, A active, L late, U suspect, X left, Q
//     quarantined
constexpr absl::string_view kStates = "-JSPALUXQ";

struct Row {
  const char* what;
  MemberEvent event;
  MemberFacts facts;
  absl::string_view to;    // [kStates]
  absl::string_view word;  // of every change in the row
};

constexpr MemberFacts kPlain{.others_active = 3, .min_workers = 2};
constexpr MemberFacts kNeeded{.others_active = 1, .min_workers = 2};
constexpr MemberFacts With(MemberFacts facts, uint32_t left, int invalid, int mismatches) {
  facts.probation_left = left;
  facts.invalid_in_a_row = invalid;
  facts.mismatches = mismatches;
  return facts;
}

const Row kTable[] = {
    {"a join begins", MemberEvent::kJoined, kPlain, "JJJJJJJJ.", "joined"},
    {"caught up", MemberEvent::kCaughtUp, kPlain, ".S.......", "caught_up"},
    {"diverged", MemberEvent::kDiverged, kPlain, ".JJJJJJ..", "diverged"},

    {"began anew", MemberEvent::kBeganAnew, kPlain, "..JJJJJ..", "began_anew"},

    {"enters a running run", MemberEvent::kEnters, With(kPlain, 4, 0, 0), "..P......", "probation"},
    {"enters before the run",
     MemberEvent::kEnters,
     {.run_started = false, .others_active = 3, .min_workers = 2, .probation_left = 4},
     "..AA.A...",
     "no_probation"},
    {"comes back after a restart",
     MemberEvent::kEnters,
     {.returning = true, .others_active = 3, .min_workers = 2},
     "..AA.....",
     "no_probation"},
    {"comes back on probation",
     MemberEvent::kEnters,
     {.returning = true, .others_active = 3, .min_workers = 2, .probation_left = 1},
     "..P......",
     "probation"},
    {"as many others as needed, not fewer",
     MemberEvent::kEnters,
     {.others_active = 2, .min_workers = 2, .probation_left = 4},
     "..P......",
     "probation"},
    {"enters a run without probation", MemberEvent::kEnters, kPlain, "..AA.....", "no_probation"},

    {"a good update of many", MemberEvent::kGoodUpdate, With(kPlain, 1, 0, 0), ".........", ""},
    {"the last good update", MemberEvent::kGoodUpdate, kPlain, "...A.....", "probation_over"},

    {"missed a deadline", MemberEvent::kMissedDeadline, kPlain, "....L....", "missed_deadline"},
    {"missed two rounds", MemberEvent::kMissedRound, {.missed_rounds = 2}, ".........", ""},
    {"missed three rounds, for which nobody waited",
     MemberEvent::kMissedRound,
     {.probation_left = 4, .missed_rounds = 3},
     "...L.....",
     "missed_deadline"},
    {"in time", MemberEvent::kInTime, kPlain, ".....A...", "in_time"},
    {"in time on probation", MemberEvent::kInTime, With(kPlain, 2, 0, 0), ".....P...", "in_time"},
    {"late on probation, and needed", MemberEvent::kEnters, With(kNeeded, 4, 0, 0), "..AA.A...",
     "no_probation"},

    {"silent", MemberEvent::kSilent, kPlain, "...UUU...", "silent"},
    {"heard", MemberEvent::kHeard, kPlain, "......A..", "heard"},
    {"heard on probation", MemberEvent::kHeard, With(kPlain, 2, 0, 0), "......P..", "heard"},

    {"one invalid upload", MemberEvent::kInvalidUpdate, With(kPlain, 0, 1, 0), ".........", ""},
    {"two invalid uploads", MemberEvent::kInvalidUpdate, With(kPlain, 0, 2, 0), ".........", ""},
    {"three invalid uploads", MemberEvent::kInvalidUpdate, With(kPlain, 0, 3, 0), ".QQQQQQ..",
     "invalid_updates"},
    {"three invalid uploads of a worker that is needed", MemberEvent::kInvalidUpdate,
     With(kNeeded, 0, 3, 0), ".QQ......", "invalid_updates"},
    {"three invalid uploads, on probation and few others", MemberEvent::kInvalidUpdate,
     With(kNeeded, 1, 3, 0), ".QQQQQQ..", "invalid_updates"},

    {"a mismatch", MemberEvent::kHashMismatch, With(kPlain, 0, 0, 1), "...JJJJ..", "state_hash"},
    {"the third mismatch", MemberEvent::kHashMismatch, With(kPlain, 0, 0, 3), "...JJJJ..",
     "state_hash"},
    {"a mismatch after three resyncs", MemberEvent::kHashMismatch, With(kPlain, 0, 0, 4),
     "...QQQQ..", "hash_repeats"},
    {"a mismatch after three resyncs of a worker that is needed", MemberEvent::kHashMismatch,
     With(kNeeded, 0, 0, 4), "...JJJJ..", "state_hash"},
    {"a disputed hash never quarantines", MemberEvent::kHashDisputed, With(kPlain, 0, 0, 9),
     "...JJJJ..", "disputed_hash"},

    {"disagrees", MemberEvent::kDisagrees, kPlain, "...QQQQ..", "disagreement"},
    {"disagrees and is needed", MemberEvent::kDisagrees, kNeeded, ".........", ""},

    {"evicted", MemberEvent::kEvicted, kPlain, "QQQQQQQQQ", "evicted"},
    {"evicted although it is needed", MemberEvent::kEvicted, kNeeded, "QQQQQQQQQ", "evicted"},
    {"admitted", MemberEvent::kAdmitted, kPlain, "........X", "admitted"},

    {"left", MemberEvent::kLeft, kPlain, ".XXXXXX..", "left"},
    {"lease over", MemberEvent::kLeaseOver, kPlain, ".XXXXXX..", "lease_over"},
};

std::optional<v1::MemberState> StateOf(char letter) {
  switch (letter) {
    case 'J':
      return v1::MEMBER_STATE_JOINING;
    case 'S':
      return v1::MEMBER_STATE_SYNCED;
    case 'P':
      return v1::MEMBER_STATE_PROBATION;
    case 'A':
      return v1::MEMBER_STATE_ACTIVE;
    case 'L':
      return v1::MEMBER_STATE_LATE;
    case 'U':
      return v1::MEMBER_STATE_SUSPECT;
    case 'X':
      return v1::MEMBER_STATE_LEFT;
    case 'Q':
      return v1::MEMBER_STATE_QUARANTINED;
    default:
      return std::nullopt;
  }
}

TEST(TransitionTest, FollowsTheTable) {
  for (const Row& row : kTable) {
    ASSERT_EQ(row.to.size(), kStates.size()) << row.what;
    for (size_t i = 0; i < kStates.size(); ++i) {
      SCOPED_TRACE(std::string(row.what) + ", from " + kStates[i]);
      const auto from = StateOf(kStates[i]);
      const MemberTransition got = Transition(from, row.event, row.facts);
      const bool changes = row.to[i] != '.';
      EXPECT_EQ(got.state, changes ? StateOf(row.to[i]) : from.value_or(v1::MEMBER_STATE_LEFT));
      EXPECT_EQ(got.word, changes ? row.word : "");
      EXPECT_EQ(!got.reason.empty(), changes) << got.reason;
    }
  }
}

TEST(TransitionTest, CoversEvents) {
  std::set<MemberEvent> events;
  for (const Row& row : kTable) events.insert(row.event);
  EXPECT_EQ(events.size(), static_cast<size_t>(MemberEvent::kLeaseOver) + 1);
}

TEST(TransitionTest, HasReasonsOfTable) {
  std::set<absl::string_view> words;
  for (const Row& row : kTable) words.insert(row.word);
  words.erase("");
  EXPECT_EQ(words, (std::set<absl::string_view>(kMemberReasons.begin(), kMemberReasons.end())));
}

TEST(TransitionTest, ReasonsSayWhyProbationIsSkipped) {
  const auto enters = [](const MemberFacts& facts) {
    return Transition(v1::MEMBER_STATE_SYNCED, MemberEvent::kEnters, facts).reason;
  };
  EXPECT_THAT(enters({.run_started = false, .probation_left = 1}),
              HasSubstr("there when the run began"));
  EXPECT_THAT(enters({.returning = true, .others_active = 1}), HasSubstr("stopped"));
  EXPECT_THAT(enters({.others_active = 0, .min_workers = 1, .probation_left = 1}),
              HasSubstr("fewer than min_workers"));
}

TEST(TransitionTest, StatesHaveNames) {
  std::set<absl::string_view> names;
  for (const char letter : kStates) {
    if (const auto state = StateOf(letter)) names.insert(MemberStateName(*state));
  }
  EXPECT_EQ(names.size(), kStates.size() - 1);
  EXPECT_THAT(names, Not(::testing::Contains("unknown")));
}

}  // namespace
}  // namespace distro::server
