// The manager driven by hand: a clock that stands still, Step() when the test says so, a real log.
#include "server/round/round_manager.h"

#include <filesystem>
#include <map>

#include "common/base/version.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/round/run_fixture.h"
#include "tests/testing/fake_clock.h"
#include "tests/testing/faulty_disk.h"
#include "tests/testing/scratch_folder.h"

namespace distro::server {
namespace {

using absl::Seconds;
using absl::StatusCode;
using ::testing::HasSubstr;
using testing::SmallConfig;
using testing::UpdatePayload;

struct CountingObserver final : RunObserver {
  void OnRoundOpened(RoundId, int expected_now) override { expected = expected_now; }
  void OnUpdateReceived() override { ++updates; }
  void OnSegmentResult(const SegmentResult&, absl::Duration latency_now) override {
    latency = latency_now;
  }
  void OnRoundCommitted(const CommittedRoundInfo& info) override {
    ++rounds;
    last_header = *info.header;
    tokens += info.tokens;
  }
  void OnStateHashMismatch(int workers) override { mismatches += workers; }
  void OnMemberChange(absl::string_view reason) override { ++changes[std::string(reason)]; }
  void OnLateUpdate(absl::Duration lateness_now) override { lateness = lateness_now; }
  void OnLogError(absl::string_view operation) override { ++errors[std::string(operation)]; }
  void OnPhase(absl::string_view, absl::Duration) override {}
  std::map<std::string, int> errors, changes;
  std::optional<absl::Duration> lateness;
  int expected = 0, updates = 0, rounds = 0, mismatches = 0;
  uint64_t tokens = 0;
  absl::Duration latency;
  v1::RoundHeader last_header;
};

class RoundManagerTest : public ::testing::Test {
 protected:
  void Start(v1::RunConfig config) {
    manager_ = nullptr;
    run_ = testing::SmallRun(config);
    log_file_ = nullptr;
    log_file_ = *RoundLog::Open(folder_.File("rounds"), run_->layout.get(), 2, &disk_, &log_);
    admission_ = *AdmissionStore::Open(folder_.File("admission.pb"), &disk_);
    snapshots_ = *SnapshotStore::Open(folder_.path(), run_, &disk_, &log_);
    manager_ = *RoundManager::Create(run_, EpochId(++epoch_),
                                     {log_file_.get(), admission_.get(), snapshots_.get()}, &clock_,
                                     &log_, &observer_, options_);
  }
  void Step() { EXPECT_TRUE(manager_->Step().ok()); }
  v1::WorkerIdentity Identity(const std::string& name) {
    v1::WorkerIdentity identity;
    identity.set_name(name);
    identity.set_incarnation(incarnations_[name] + 1);
    return identity;
  }
  void Join(const std::string& name) {
    v1::JoinRequest request;
    *request.mutable_worker() = Identity(name);
    request.set_data_fingerprint("data");
    request.set_version(std::string(Version()));
    ASSERT_TRUE(manager_->Join(request).ok());
  }
  void Beat(const std::string& name) {
    const RunStatus status = manager_->status();
    v1::HeartbeatRequest request;
    *request.mutable_worker() = Identity(name);
    request.set_sequence(++sequence_);
    request.set_next_round(status.round.value());
    request.set_log_hash(status.log_hash);
    EXPECT_TRUE(manager_->Heartbeat(request).ok());
  }
  void Activate(const std::string& name) {
    Join(name);
    Beat(name);
  }
  absl::StatusOr<UploadTicket> Begin(const std::string& name, uint64_t round,
                                     uint64_t state_hash = testing::kInitialStateHash) {
    v1::UploadHeader header;
    *header.mutable_worker() = Identity(name);
    header.set_epoch(epoch_);
    header.set_round(round);
    header.set_state_hash(state_hash);
    return manager_->BeginUpload(header);
  }
  void Upload(const std::string& name, uint64_t round,
              uint64_t state_hash = testing::kInitialStateHash) {
    const auto ticket = Begin(name, round, state_hash);
    ASSERT_TRUE(ticket.ok()) << ticket.status();
    for (uint32_t s = 0; s < run_->layout->segments(); ++s) {
      const auto taken = manager_->AddPayload(
          *ticket, SegmentId(s), UpdatePayload(*run_->layout, RoundId(round), SegmentId(s), s));
      ASSERT_TRUE(taken.ok()) << taken.status();
    }
  }
  static v1::RunConfig Config(int start_workers) {
    v1::RunConfig config = SmallConfig();
    config.set_start_workers(start_workers);
    return config;
  }

  testing::ScratchFolder folder_;
  testing::FakeClock clock_;
  Log log_{LogLevel::kError, Clock::Real(), [](absl::string_view) {}};
  CountingObserver observer_;
  std::shared_ptr<const RunIdentity> run_;
  testing::FaultyDisk disk_;
  RoundManagerOptions options_{.suspect_after = Seconds(1000), .lease = Seconds(100)};
  std::unique_ptr<RoundLog> log_file_;
  std::unique_ptr<AdmissionStore> admission_;
  std::unique_ptr<SnapshotStore> snapshots_;
  std::unique_ptr<RoundManager> manager_;
  std::map<std::string, uint64_t> incarnations_;
  uint64_t epoch_ = 0;
  uint64_t sequence_ = 0;
};

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

TEST_F(RoundManagerTest, ADeadlineIsTheTimeOfTheNextStep) {
  v1::RunConfig config = Config(2);
  config.mutable_round_deadline()->set_seconds(30);
  Start(config);
  Activate("a");
  Activate("b");
  EXPECT_EQ(*manager_->Step(), Seconds(30));
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

TEST_F(RoundManagerTest, ALeaseThatEndsUnblocksTheRound) {
  Start(Config(2));
  Activate("a");
  Activate("b");
  Step();
  clock_.Advance(Seconds(60));
  Upload("a", 0);
  EXPECT_EQ(*manager_->Step(), Seconds(100));  // b's lease
  clock_.Advance(Seconds(40));
  Step();
  EXPECT_EQ(observer_.rounds, 1);
}

// The folder is moved away and back: writing fails in between, as on a disk that is gone or full.
TEST_F(RoundManagerTest, ADiskThatFailsHoldsTheCommitAndTheSameBytesAreTriedAgain) {
  Start(Config(1));
  Activate("a");
  Step();
  Upload("a", 0);
  const absl::Time first_attempt = clock_.WallNow();
  std::filesystem::rename(folder_.File("rounds"), folder_.File("away"));
  EXPECT_EQ(*manager_->Step(), Seconds(1));
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

TEST_F(RoundManagerTest, AnotherWriterOfTheLogIsFinal) {
  Start(Config(1));
  Activate("a");
  Step();
  auto other = *RoundLog::Open(folder_.File("rounds"), run_->layout.get(), 0, Disk::Real(), &log_);
  const testing::BuiltRound built =
      testing::BuildRound(*run_->layout, RoundId(0), other->HashBefore(RoundId(0)));
  auto writer = *other->Begin(RoundId(0));
  for (uint32_t s = 0; s < run_->layout->segments(); ++s)
    ASSERT_TRUE(writer->AddSegment(SegmentId(s), built.payloads[s]).ok());
  ASSERT_TRUE(writer->Commit(built.header_bytes()).ok());
  Upload("a", 0);
  EXPECT_EQ(manager_->Step().status().code(), StatusCode::kFailedPrecondition);
}

TEST_F(RoundManagerTest, AHashThatDiffersIsCountedAgainstTheTruthAndTheMajority) {
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
  EXPECT_EQ(*manager_->Step(), Seconds(100));
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

TEST_F(RoundManagerTest, ARoundWithoutAnybodyToGetSamplesIsNotCommitted) {
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
  EXPECT_EQ(*manager_->Step(), absl::InfiniteDuration());
  EXPECT_EQ(Begin("a", 2).status().code(), StatusCode::kUnavailable);
}

}  // namespace
}  // namespace distro::server
