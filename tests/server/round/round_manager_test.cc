#include "server/round/round_manager.h"

#include <filesystem>
#include <utility>

#include "gmock/gmock.h"
#include "tests/server/round/manager_fixture.h"

namespace distro::server {
namespace {

using absl::Seconds;
using absl::StatusCode;
using ::testing::HasSubstr;

using RoundManagerTest = testing::ManagerTest;

TEST_F(RoundManagerTest, WaitsForStartWorkersThenOpensAndWaitsForAll) {
  Start(Config(2));
  Step();
  EXPECT_THAT(manager_->status().reason, HasSubstr("0 of start_workers 2"));
  Activate("a");
  Join("b");
  Step();
  EXPECT_THAT(manager_->status().reason, HasSubstr("1 of start_workers 2"));
  Beat("b");
  Step();
  EXPECT_EQ(manager_->status().state, v1::RUN_STATE_TRAINING);
  EXPECT_EQ(observer_.expected, 2);
  EXPECT_EQ(manager_->status().reason, "waiting for a, b");
  EXPECT_EQ(log_file_->start().data_fingerprint(), "data");
}

TEST_F(RoundManagerTest, CommitsWhenAllAreInAndGivesSamplesTwoRoundsAhead) {
  Start(Config(2));
  Activate("a");
  Activate("b");
  Step();
  Upload("a", 0);
  Step();
  EXPECT_EQ(manager_->status().reason, "waiting for b");
  clock_.Advance(Seconds(3));
  Upload("b", 0);
  Step();
  EXPECT_EQ(observer_.rounds, 1);
  EXPECT_EQ(observer_.updates, 2);
  EXPECT_EQ(observer_.latency, absl::ZeroDuration());
  EXPECT_EQ(observer_.mismatches, 0);
  EXPECT_EQ(observer_.tokens, 2 * 2 * 16u);
  // 2 workers x 2 samples: rounds 0 and 1 have 0..7, round 2 begins with 8.
  ASSERT_EQ(observer_.last_header.slots_size(), 2);
  EXPECT_EQ(observer_.last_header.slots(0).first_sample(), 8u);
  EXPECT_EQ(observer_.last_header.next_sample(), 12u);
  EXPECT_EQ(manager_->status().round, RoundId(1));
}

TEST_F(RoundManagerTest, StepsAtDeadline) {
  v1::RunConfig config = Config(2);
  config.mutable_round_deadline()->set_seconds(30);
  Start(config);
  Activate("a");
  Activate("b");
  EXPECT_EQ(*manager_->round_thread().Step(), Seconds(30));
  Upload("a", 0);
  clock_.Advance(Seconds(29));
  Step();
  EXPECT_EQ(observer_.rounds, 0);
  clock_.Advance(Seconds(1));
  Step();
  EXPECT_EQ(observer_.rounds, 1);
  EXPECT_EQ(observer_.last_header.reason(), "deadline");
  EXPECT_EQ(manager_->status().workers[1].state, v1::MEMBER_STATE_LATE);
  EXPECT_EQ(observer_.expected, 1);  // of the next round
}

TEST_F(RoundManagerTest, SomebodyWhoLeavesIsNotWaitedFor) {
  Start(Config(2));
  Activate("a");
  Activate("b");
  Step();
  Upload("a", 0);
  Step();
  EXPECT_EQ(observer_.rounds, 0);
  v1::LeaveRequest leave;
  *leave.mutable_worker() = Identity("b");
  manager_->Leave(leave);
  Step();
  EXPECT_EQ(observer_.rounds, 1);
}

TEST_F(RoundManagerTest, GoesOnAfterLease) {
  Start(Config(2));
  Activate("a");
  Activate("b");
  Step();
  clock_.Advance(Seconds(60));
  Upload("a", 0);
  EXPECT_EQ(*manager_->round_thread().Step(), Seconds(100));  // b's lease
  clock_.Advance(Seconds(40));
  Step();
  EXPECT_EQ(observer_.rounds, 1);
}

// The folder is moved away and back: writing fails in between, as on a disk that is gone or full.
TEST_F(RoundManagerTest, RetriesCommitOnDiskFault) {
  Start(Config(1));
  Activate("a");
  Step();
  Upload("a", 0);
  const absl::Time first_attempt = clock_.WallNow();
  std::filesystem::rename(folder_.File("rounds"), folder_.File("away"));
  EXPECT_EQ(*manager_->round_thread().Step(), Seconds(1));
  EXPECT_EQ(observer_.rounds, 0);
  EXPECT_THAT(manager_->status().reason, HasSubstr("the log cannot be written"));
  EXPECT_EQ(manager_->status().round, RoundId(0));
  clock_.Advance(Seconds(1));
  Step();
  EXPECT_EQ(observer_.rounds, 0);
  std::filesystem::rename(folder_.File("away"), folder_.File("rounds"));
  clock_.Advance(Seconds(1));
  Step();
  ASSERT_EQ(observer_.rounds, 1);
  EXPECT_EQ(observer_.last_header.committed_at().seconds(), absl::ToUnixSeconds(first_attempt));
  const auto record = log_file_->OpenRecord(RoundId(0));
  ASSERT_TRUE(record.ok()) << record.status();
  for (int s = 0; s < observer_.last_header.segments_size(); ++s) {
    EXPECT_EQ((*record)->payload_bytes(SegmentId(s)),
              observer_.last_header.segments(s).payload_bytes());
  }
}

TEST_F(RoundManagerTest, EndsOnOtherWriterOfLog) {
  Start(Config(1));
  Activate("a");
  Step();
  auto other = *RoundLog::Open(folder_.File("rounds"), run_->layout.get(), 0, Disk::Real(), &log_);
  const testing::BuiltRound built =
      testing::BuildRound(*run_->layout, RoundId(0), other->HashBefore(RoundId(0)));
  auto writer = *other->Begin(RoundId(0));
  for (uint32_t s = 0; s < run_->layout->segments(); ++s)
    ASSERT_TRUE(writer.AddSegment(SegmentId(s), built.payloads[s]).ok());
  ASSERT_TRUE(other->Commit(std::move(writer), built.header_bytes()).ok());
  Upload("a", 0);
  EXPECT_EQ(manager_->round_thread().Step().status().code(), StatusCode::kFailedPrecondition);
}

TEST_F(RoundManagerTest, CountsDifferingHashes) {
  Start(Config(3));
  for (const char* name : {"a", "b", "c"}) Activate(name);
  Step();
  Upload("a", 0, 1);
  Upload("b", 0, 1);
  Upload("c", 0);
  Step();
  EXPECT_EQ(observer_.mismatches, 2);
  Upload("a", 1, 5);
  Upload("b", 1, 6);
  Upload("c", 1, 5);
  Step();
  EXPECT_EQ(observer_.mismatches, 3);
  EXPECT_EQ(observer_.rounds, 2);
}

TEST_F(RoundManagerTest, AfterARestartTheRoundWaitsOneLeaseForThoseWithSamples) {
  Start(Config(2));
  Activate("a");
  Activate("b");
  Step();
  Upload("a", 0);
  Upload("b", 0);
  Step();
  Start(Config(2));
  Activate("a");
  EXPECT_EQ(*manager_->round_thread().Step(), Seconds(100));
  EXPECT_THAT(manager_->status().reason, HasSubstr("after a restart: 1 of 2"));
  EXPECT_EQ(Begin("a", 1).status().code(), StatusCode::kUnavailable);
  clock_.Advance(Seconds(50));
  Beat("a");
  clock_.Advance(Seconds(50));
  Step();
  Upload("a", 1);
  Step();
  EXPECT_EQ(manager_->status().round, RoundId(2));
  EXPECT_EQ(observer_.last_header.epoch(), 2u);
}

TEST_F(RoundManagerTest, HoldsRoundWithoutTakersOfSamples) {
  Start(Config(1));
  Activate("a");
  Step();
  Upload("a", 0);
  incarnations_["a"] = 1;  // a new process: JOINING
  Join("a");
  Step();
  EXPECT_EQ(observer_.rounds, 0);
  EXPECT_THAT(manager_->status().reason, HasSubstr("to get samples of round 2"));
  Beat("a");
  Step();
  EXPECT_EQ(observer_.rounds, 1);
}

TEST_F(RoundManagerTest, EndsAfterTheLastRound) {
  v1::RunConfig config = Config(1);
  config.set_rounds(2);
  config.set_warmup_rounds(0);
  Start(config);
  Activate("a");
  Step();
  for (uint64_t r = 0; r < 2; ++r) {
    Upload("a", r);
    Step();
  }
  EXPECT_EQ(manager_->status().state, v1::RUN_STATE_DONE);
  EXPECT_EQ(*manager_->round_thread().Step(), absl::InfiniteDuration());
  EXPECT_EQ(Begin("a", 2).status().code(), StatusCode::kUnavailable);
}

// Each round changed nothing: done, and not as a run that trained.
TEST_F(RoundManagerTest, SaysAtTheEndThatAllAbstained) {
  v1::RunConfig config = Config(1);
  config.set_rounds(2);
  config.set_warmup_rounds(0);
  Start(config);
  Activate("a");
  Step();
  for (uint64_t r = 0; r < 2; ++r) {
    v1::UploadHeader header = HeaderOf("a", r, testing::kInitialStateHash);
    header.set_abstain(true);
    ASSERT_TRUE(manager_->BeginUpload(header).ok());
    Step();
  }
  EXPECT_EQ(manager_->status().state, v1::RUN_STATE_DONE);
  EXPECT_THAT(manager_->status().reason, HasSubstr("all workers abstained in the last 2"));
}

}  // namespace
}  // namespace distro::server
