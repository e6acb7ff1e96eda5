#include "server/round/round_policy.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace distro::server {
namespace {

using absl::Seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A round of workers "a", "b", ... of which a row says: E expected, e not expected but in session,
// g gone, A abstained, P on probation, B on probation and abstained. Segments: one string each, '1'
// where the worker's payload is in; "x" closed.
struct Row {
  const char* what;
  const char* workers;
  std::vector<std::string> segments;
  int round = 0;
  int now = 0;  // seconds since Open
  int min_workers = 1;
  int deadline = 0;  // seconds; 0: none
  RoundAction action = RoundAction::kWait;
  std::vector<uint32_t> closes = {};
  const char* reason = "";
  bool by_deadline = false;
  bool enough = true;
};

RoundFacts FactsOf(const Row& row) {
  RoundFacts round{
      .round = RoundId(row.round), .opened_at = Seconds(100), .workers = {}, .segments = {}};
  for (size_t i = 0; row.workers[i] != '\0'; ++i) {
    const char c = row.workers[i];
    round.workers.push_back({.name = std::string(1, static_cast<char>('a' + i)),
                             .expected = c == 'E',
                             .in_session = c != 'g',
                             .abstained = c == 'A' || c == 'B',
                             .counts = c != 'P' && c != 'B'});
  }
  for (const std::string& segment : row.segments) {
    RoundSegment s{.closed = segment == "x", .in = std::vector<bool>(round.workers.size())};
    for (size_t i = 0; !s.closed && i < round.workers.size(); ++i) s.in[i] = segment[i] == '1';
    round.segments.push_back(s);
  }
  return round;
}

const Row kTable[] = {
    {.what = "nothing is in", .workers = "EE", .segments = {"00"}, .reason = "waiting for a, b"},
    {.what = "one is missing", .workers = "EE", .segments = {"10"}, .reason = "waiting for b"},
    {.what = "all are in",
     .workers = "EE",
     .segments = {"11"},
     .action = RoundAction::kClose,
     .closes = {0},
     .reason = "all expected are in"},
    {.what = "late ones are not waited for",
     .workers = "Ee",
     .segments = {"10"},
     .action = RoundAction::kClose,
     .closes = {0}},
    {.what = "late ones count",
     .workers = "ee",
     .segments = {"01"},
     .action = RoundAction::kClose,
     .closes = {0}},
    {.what = "an abstention is not waited for",
     .workers = "EA",
     .segments = {"10"},
     .action = RoundAction::kClose,
     .closes = {0}},
    {.what = "but it is not an update",
     .workers = "EEA",
     .segments = {"100"},
     .min_workers = 2,
     .reason = "waiting for b"},
    {.what = "when all abstain nobody can come",
     .workers = "AA",
     .segments = {"00"},
     .action = RoundAction::kClose,
     .closes = {0},
     .reason = "abstained"},
    {.what = "when one abstains a late one may come",
     .workers = "Ae",
     .segments = {"00"},
     .reason = "0 of min_workers 1 updates: waiting for b"},
    {.what = "no deadline waits for ever",
     .workers = "EE",
     .segments = {"10"},
     .now = 1000000,
     .reason = "waiting for b"},
    {.what = "before the deadline",
     .workers = "EE",
     .segments = {"10"},
     .now = 9,
     .deadline = 10,
     .reason = "waiting for b"},
    {.what = "at the deadline",
     .workers = "EE",
     .segments = {"10"},
     .now = 10,
     .deadline = 10,
     .action = RoundAction::kClose,
     .closes = {0},
     .reason = "deadline, without b",
     .by_deadline = true},
    {.what = "the deadline does not beat min_workers",
     .workers = "EEE",
     .segments = {"100"},
     .now = 99,
     .min_workers = 2,
     .deadline = 10,
     .reason = "waiting for b, c"},
    {.what = "all expected but too few",
     .workers = "Eee",
     .segments = {"100"},
     .min_workers = 2,
     .reason = "1 of min_workers 2 updates: waiting for b, c"},
    {.what = "everybody has gone",
     .workers = "gg",
     .segments = {"00"},
     .reason = "0 of min_workers 1 updates: waiting for a, b",
     .enough = false},
    {.what = "one of two is left",
     .workers = "Eg",
     .segments = {"00"},
     .min_workers = 2,
     .reason = "waiting for a",
     .enough = false},
    {.what = "who sent and went counts",
     .workers = "gE",
     .segments = {"10"},
     .min_workers = 2,
     .reason = "waiting for b"},
    {.what = "segments close one by one",
     .workers = "EE",
     .segments = {"10", "11", "00"},
     .action = RoundAction::kClose,
     .closes = {1}},
    {.what = "in the order of round 0",
     .workers = "E",
     .segments = {"1", "1", "1"},
     .action = RoundAction::kClose,
     .closes = {0, 1, 2}},
    {.what = "in the order of round 2",
     .workers = "E",
     .segments = {"1", "1", "1"},
     .round = 2,
     .action = RoundAction::kClose,
     .closes = {2, 0, 1}},
    {.what = "closed ones stay closed",
     .workers = "E",
     .segments = {"x", "0"},
     .reason = "waiting for a"},
    {.what = "all are closed",
     .workers = "E",
     .segments = {"x", "x"},
     .action = RoundAction::kCommit,
     .reason = "all segments are closed"},
    {.what = "nobody waits for a worker on probation",
     .workers = "EP",
     .segments = {"10"},
     .action = RoundAction::kClose,
     .closes = {0},
     .reason = "all expected are in"},
    {.what = "an update on probation is none of min_workers",
     .workers = "EeP",
     .segments = {"101"},
     .min_workers = 2,
     .reason = "1 of min_workers 2 updates: waiting for b"},
    {.what = "workers on probation cannot bring a segment to min_workers",
     .workers = "EgPP",
     .segments = {"1011"},
     .min_workers = 2,
     .reason = "1 of min_workers 2 updates: waiting for b",
     .enough = false},
    {.what = "those who do not count are named when nobody else is left",
     .workers = "EPP",
     .segments = {"100"},
     .min_workers = 2,
     .reason = "1 of min_workers 2 updates: those of b, c do not count yet",
     .enough = false},
    {.what = "an abstention on probation says nothing",
     .workers = "ggB",
     .segments = {"000"},
     .reason = "0 of min_workers 1 updates: waiting for a, b",
     .enough = false},
    {.what = "when all that count abstain nobody else is needed",
     .workers = "AAP",
     .segments = {"000"},
     .action = RoundAction::kClose,
     .closes = {0},
     .reason = "abstained"},
    {.what = "names are cut",
     .workers = "EEEEEEE",
     .segments = {"0000000"},
     .reason = "a, b, c, d, e and 2 more"},
};

TEST(RoundPolicyTest, FollowsTheTable) {
  for (const Row& row : kTable) {
    SCOPED_TRACE(row.what);
    const RoundPolicyOptions options{
        .min_workers = row.min_workers,
        .deadline = row.deadline == 0 ? absl::InfiniteDuration() : Seconds(row.deadline)};
    const RoundDecision decision = Decide(FactsOf(row), Seconds(100 + row.now), options);
    EXPECT_EQ(decision.action, row.action);
    std::vector<uint32_t> closes;
    for (const SegmentId segment : decision.segments) closes.push_back(segment.value());
    EXPECT_EQ(closes, row.closes);
    EXPECT_THAT(decision.reason, HasSubstr(row.reason));
    EXPECT_FALSE(decision.reason.empty());
    EXPECT_EQ(decision.by_deadline, row.by_deadline);
    EXPECT_EQ(decision.enough_can_come, row.enough);
  }
}

}  // namespace
}  // namespace distro::server
