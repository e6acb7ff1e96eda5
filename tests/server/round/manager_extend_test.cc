// Extending a run: durable before the answer, in every later record, and unchanged by a restart.
#include <filesystem>

#include "common/method/signs/step.h"
#include "gmock/gmock.h"
#include "tests/server/round/manager_fixture.h"

namespace distro::server {
namespace {

using absl::StatusCode;
using ::testing::HasSubstr;

class ManagerExtendTest : public testing::ManagerTest {
 protected:
  v1::RunConfig Rounds(uint64_t rounds) {
    v1::RunConfig config = Config(1);
    config.set_rounds(rounds);
    config.set_warmup_rounds(0);
    return config;
  }
  // Rounds [first, end) of worker "a".
  void Train(uint64_t first, uint64_t end) {
    for (uint64_t round = first; round < end; ++round) {
      Upload("a", round);
      Step();
      Beat("a");
      Step();
    }
  }
  void BeginRun(uint64_t rounds) {
    Start(Rounds(rounds));
    Activate("a");
    Step();
  }
  uint32_t EtaOf(uint64_t round) { return log_file_->Header(RoundId(round))->step().eta_bits(); }
};

TEST_F(ManagerExtendTest, InTheMiddleEveryRecordFromThenOnSaysIt) {
  BeginRun(4);
  Train(0, 1);
  const auto extension = manager_->decisions().Extend(8);
  ASSERT_TRUE(extension.ok()) << extension.status();
  EXPECT_EQ(extension->from_round(), 2u) << "round 1 is open: its rate is told";
  EXPECT_EQ(manager_->status().rounds, 8u);
  Train(1, 8);
  EXPECT_EQ(manager_->status().state, v1::RUN_STATE_DONE);
  EXPECT_EQ(manager_->status().round, RoundId(8));
  EXPECT_FALSE(log_file_->Header(RoundId(0))->has_extension());
  for (uint64_t round = 1; round < 8; ++round) {
    const v1::RoundHeader header = *log_file_->Header(RoundId(round));
    EXPECT_EQ(header.extension().SerializeAsString(), extension->SerializeAsString()) << round;
    EXPECT_EQ(EtaOf(round), SignStep(Rounds(4), RoundId(round), &*extension).eta_bits()) << round;
  }
  EXPECT_EQ(EtaOf(1), SignStep(Rounds(4), RoundId(1)).eta_bits());
  EXPECT_NE(EtaOf(3), SignStep(Rounds(4), RoundId(3)).eta_bits());
}

TEST_F(ManagerExtendTest, OpensRoundsOfDoneRun) {
  BeginRun(2);
  Train(0, 2);
  ASSERT_EQ(manager_->status().state, v1::RUN_STATE_DONE);
  ASSERT_TRUE(manager_->decisions().Extend(4).ok());
  EXPECT_EQ(manager_->status().state, v1::RUN_STATE_WAITING);
  EXPECT_THAT(manager_->status().reason, HasSubstr("extended to 4 rounds"));
  Activate("a");
  Step();
  EXPECT_EQ(manager_->status().state, v1::RUN_STATE_TRAINING);
  Train(2, 4);
  EXPECT_EQ(manager_->status().state, v1::RUN_STATE_DONE);
  EXPECT_EQ(log_file_->next_round(), RoundId(4));
  EXPECT_EQ(EtaOf(3), SignStep(Rounds(2), RoundId(2)).eta_bits()) << "the lowest rate";
}

TEST_F(ManagerExtendTest, SurvivesRestart) {
  BeginRun(2);
  Train(0, 2);
  ASSERT_TRUE(manager_->decisions().Extend(4).ok());
  Start(Rounds(2));  // before a record has it
  EXPECT_EQ(manager_->status().rounds, 4u);
  Activate("a");
  Step();
  Train(2, 3);
  std::filesystem::remove(folder_.File("admission.pb"));
  Start(Rounds(2));  // the records have it
  EXPECT_EQ(manager_->status().rounds, 4u);
  const auto joined = manager_->Join(JoinOf("a"));
  ASSERT_TRUE(joined.ok());
  EXPECT_EQ(joined->config().rounds(), 4u) << "what a worker is told";
}

TEST_F(ManagerExtendTest, TakesRepeatAndRefusesFewer) {
  BeginRun(4);
  EXPECT_EQ(manager_->decisions().Extend(4).status().code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(manager_->decisions().Extend(3).status().code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(manager_->decisions().Extend((uint64_t{1} << 32) + 1).status().code(),
            StatusCode::kInvalidArgument);
  const auto first = manager_->decisions().Extend(8);
  ASSERT_TRUE(first.ok());
  Train(0, 2);
  const auto again = manager_->decisions().Extend(8);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->SerializeAsString(), first->SerializeAsString());
  EXPECT_EQ(manager_->decisions().Extend(7).status().code(), StatusCode::kFailedPrecondition);
}

TEST_F(ManagerExtendTest, DropsUnstored) {
  BeginRun(2);
  disk_.Fail({.path_part = "admission"});
  EXPECT_EQ(ReasonOf(manager_->decisions().Extend(4).status()), "disk");
  EXPECT_EQ(manager_->status().rounds, 2u);
  Train(0, 2);
  EXPECT_EQ(manager_->status().state, v1::RUN_STATE_DONE);
}

TEST_F(ManagerExtendTest, RefusesRateOfZero) {
  v1::RunConfig config = Rounds(1);
  config.set_min_learning_rate(0);
  Start(config);
  Activate("a");
  Step();
  Train(0, 1);
  const absl::Status status = manager_->decisions().Extend(4).status();
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("min_learning_rate is 0"));
}

TEST_F(ManagerExtendTest, SubscriptionsFollowAgainAfterTheEnd) {
  BeginRun(1);
  Train(0, 1);
  v1::SubscribeRoundsRequest request;
  request.set_run_id(run_->run_id);
  request.set_from_round(1);
  request.set_last_hash(manager_->status().log_hash);
  const auto ended = manager_->Subscribe(request);
  ASSERT_TRUE(ended.ok()) << ended.status();
  EXPECT_EQ((*ended)->Next().status().code(), StatusCode::kOutOfRange);
  ASSERT_TRUE(manager_->decisions().Extend(3).ok());
  Activate("a");
  Step();
  const auto goes_on = manager_->Subscribe(request);
  ASSERT_TRUE(goes_on.ok());
  const auto next = (*goes_on)->Next();
  EXPECT_TRUE(next.ok()) << "round 1 is open: " << next.status();
}

}  // namespace
}  // namespace distro::server
