#include "server/status/worker_problems.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace distro::server {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

WorkerFacts Active(double update_seconds, double up, double down = 1e7) {
  WorkerFacts facts;
  facts.worker = {.name = "a", .state = v1::MEMBER_STATE_ACTIVE};
  facts.rounds.update_seconds = update_seconds;
  facts.rate.up_goodput = up;
  facts.rate.down_goodput = down;
  return facts;
}

std::vector<WorkerFacts> Crowd() { return std::vector<WorkerFacts>(5, Active(4, 1e6)); }

Problem Judge(const WorkerFacts& facts) {
  std::vector<WorkerFacts> workers = Crowd();
  workers.push_back(facts);
  return ProblemOf(facts, TypicalOf(workers));
}

TEST(WorkerProblemsTest, IsEmptyForTypicalWorker) {
  EXPECT_EQ(Judge(Active(4, 1e6)).what, "");
  EXPECT_EQ(Judge(Active(4, 1e6)).severity, Severity::kGood);
}

TEST(WorkerProblemsTest, NamesCauseOfLateUpdate) {
  const Problem up = Judge(Active(12, 2e5));
  EXPECT_EQ(up.severity, Severity::kBad);
  EXPECT_EQ(
      up.what,
      "Slow uplink: 200 kB/s, most have 1 MB/s; its updates are in after 12.0 s, most after 4.0 s");
  EXPECT_EQ(up.runbook, "DistroUplinkSaturated");
  EXPECT_THAT(Judge(Active(12, 1e6, 1e6)).what,
              StartsWith("Slow downlink: 1 MB/s, most have 10 MB/s"));
  EXPECT_THAT(Judge(Active(12, 1e6)).what, StartsWith("Slow, and not for its link"));
}

TEST(WorkerProblemsTest, IgnoresHarmlessSlowLink) { EXPECT_EQ(Judge(Active(4.4, 1e5)).what, ""); }

TEST(WorkerProblemsTest, OfTwoWorkersTheWorseOneStandsOut) {
  const WorkerFacts good = Active(1, 1e6), bad = Active(8, 1e5);
  const Typical typical = TypicalOf({good, bad});
  EXPECT_EQ(ProblemOf(good, typical).what, "");
  EXPECT_THAT(ProblemOf(bad, typical).what, StartsWith("Slow uplink"));
}

TEST(WorkerProblemsTest, StatesThatKeepAWorkerOut) {
  WorkerFacts facts = Active(4, 1e6);
  facts.worker.state = v1::MEMBER_STATE_QUARANTINED;
  facts.worker.reason = "evicted";
  EXPECT_EQ(Judge(facts).what, "Quarantined: evicted");
  facts.worker.state = v1::MEMBER_STATE_SUSPECT;
  facts.silence = absl::Seconds(8);
  EXPECT_THAT(Judge(facts).what, HasSubstr("Silent for 8 s"));
  facts.worker.state = v1::MEMBER_STATE_LATE;
  facts.rounds.missed_in_a_row = 57;
  EXPECT_EQ(Judge(facts).severity, Severity::kBad);
  EXPECT_EQ(Judge(facts).what,
            "Late: rounds do not wait for it; the last 57 did not count its work");
  facts.worker.probation_left = 4;
  EXPECT_THAT(Judge(facts).what, HasSubstr("; its probation goes on"));
  facts.worker.state = v1::MEMBER_STATE_LEFT;
  facts.in_state = absl::Minutes(1);
  EXPECT_EQ(Judge(facts).severity, Severity::kWarning);
  facts.in_state = absl::Hours(1);
  EXPECT_EQ(Judge(facts).severity, Severity::kGone);
  EXPECT_EQ(Judge(facts).what, "");
}

TEST(WorkerProblemsTest, TellsMissedRounds) {
  WorkerFacts facts = Active(4, 1e6);
  facts.rounds.missed_in_a_row = 3;
  facts.rounds.excluded = "late";
  EXPECT_EQ(Judge(facts).what, "Not included for 3 rounds: late");
  facts.rounds.missed_in_a_row = 2;
  EXPECT_EQ(Judge(facts).what, "");
}

TEST(WorkerProblemsTest, ProbationThatDoesNotEnd) {
  WorkerFacts facts = Active(4, 1e6);
  facts.worker.state = v1::MEMBER_STATE_PROBATION;
  facts.worker.probation_left = 4;
  facts.rounds.missed_in_a_row = 31;
  facts.rounds.excluded = "probation";
  EXPECT_EQ(Judge(facts).what, "");
  facts.rounds.missed_in_a_row = 32;
  EXPECT_EQ(Judge(facts).what, "Not included for 32 rounds: probation");
  facts.rounds.missed_in_a_row = 3;
  facts.rounds.excluded = "abstained";
  EXPECT_EQ(Judge(facts).what, "Not included for 3 rounds: abstained");
}

TEST(WorkerProblemsTest, LeavesProbationOut) {
  std::vector<WorkerFacts> workers = Crowd();
  for (int i = 0; i < 20; ++i) {
    workers.push_back(Active(60, 10));
    workers.back().worker.state = v1::MEMBER_STATE_PROBATION;
    workers.back().worker.probation_left = 2;
  }
  EXPECT_EQ(TypicalOf(workers).update_seconds, 4);
  EXPECT_EQ(ProblemOf(workers.back(), TypicalOf(workers)).what, "");
}

}  // namespace
}  // namespace distro::server
