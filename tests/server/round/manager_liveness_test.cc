// Rounds that only workers on probation, or workers that resync, can complete: they always end.
#include "gmock/gmock.h"
#include "tests/server/round/manager_fixture.h"

namespace distro::server {
namespace {

using ::testing::HasSubstr;

class ManagerLivenessTest : public testing::ManagerTest {
 protected:
  // A run of a and b, of which both are needed, in round `round`.
  void OpenRound(uint64_t round) {
    v1::RunConfig config = Config(2);
    config.set_min_workers(2);
    config.set_probation_rounds(3);
    Start(config);
    for (const char* name : {"a", "b"}) Activate(name);
    Step();
    for (uint64_t r = 0; r < round; ++r) {
      for (const char* name : {"a", "b"}) Upload(name, r);
      Step();
    }
    ASSERT_EQ(manager_->status().round, RoundId(round));
  }
};

// c, on probation, has sent its update, and b, which was needed, never returns.
TEST_F(ManagerLivenessTest, UsesProbationUpdateWhenNeeded) {
  OpenRound(0);
  for (const char* name : {"a", "b"}) Upload(name, 0);
  Activate("c");
  Step();
  for (const char* name : {"a", "b"}) Upload(name, 1);
  Step();
  Upload("a", 2);
  Upload("c", 2);
  Step();
  ASSERT_EQ(manager_->status().round, RoundId(2)) << "c does not count yet";
  v1::LeaveRequest leave;
  *leave.mutable_worker() = Identity("b");
  manager_->Leave(leave);
  Step();
  EXPECT_EQ(manager_->status().round, RoundId(3));
  EXPECT_EQ(observer_.last_header.segments(0).included()[0], 0b101);
}

TEST_F(ManagerLivenessTest, TakesUpdateBeforeHeartbeat) {
  OpenRound(0);
  incarnations_["b"] = 7;
  Join("b");
  for (const char* name : {"a", "b"}) Upload(name, 0);
  Step();
  EXPECT_EQ(manager_->status().round, RoundId(0));
  EXPECT_THAT(manager_->status().reason, HasSubstr("1 of min_workers 2"));
  Beat("b");
  Step();
  EXPECT_EQ(manager_->status().round, RoundId(1));
}

TEST_F(ManagerLivenessTest, WhenAllResyncTheRunGoesOnWithoutProbation) {
  OpenRound(1);
  Upload("a", 1, 5);
  Upload("b", 1, 6);
  Step();
  ASSERT_EQ(manager_->status().round, RoundId(2));
  for (const char* name : {"a", "b"}) EXPECT_EQ(StateOf(name), v1::MEMBER_STATE_JOINING);
  EXPECT_THAT(manager_->status().reason, HasSubstr("a, b do not count yet"));
  for (const char* name : {"a", "b"}) Activate(name);
  for (const char* name : {"a", "b"}) Upload(name, 2, 7);
  Step();
  EXPECT_EQ(manager_->status().round, RoundId(3));
}

}  // namespace
}  // namespace distro::server
