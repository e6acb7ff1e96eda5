#include "server/round/control.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "common/base/reason.h"
#include "gtest/gtest.h"
#include "tests/server/round/run_fixture.h"

namespace distro::server {
namespace {

using absl::Seconds;

class ControlTest : public ::testing::Test {
 protected:
  void OpenRound() { position_.Open(members_, absl::InfiniteDuration(), SegmentId(0), Seconds(0)); }
  int Lines(const std::string& text) const {
    return static_cast<int>(std::ranges::count_if(
        lines_, [&](const std::string& line) { return absl::StrContains(line, text); }));
  }

  std::vector<std::string> lines_;
  Log log_{LogLevel::kInfo, Clock::Real(),
           [this](absl::string_view line) { lines_.emplace_back(line); }};
  std::shared_ptr<const RunIdentity> run_ = testing::SmallRun(testing::SmallConfig());
  Membership members_{{.max_workers = 8, .lease = Seconds(30)}, &log_};
  RunPosition position_{run_.get(), EpochId(1), 8, RoundId(4)};
  Control control_{&position_, &log_};
};

TEST_F(ControlTest, ShowsPauseBetweenRounds) {
  OpenRound();
  control_.Set(v1::RUN_STATE_TRAINING, "all are in");
  control_.Pause("a new disk");
  EXPECT_TRUE(control_.paused());
  EXPECT_EQ(control_.state(), v1::RUN_STATE_TRAINING);
  EXPECT_TRUE(control_.CheckOpen(Seconds(0)).ok()) << "the open round goes on";
  position_.Finish({});
  control_.ShowPause();
  EXPECT_EQ(control_.state(), v1::RUN_STATE_PAUSED);
  EXPECT_EQ(control_.reason(), "paused: a new disk");
  EXPECT_EQ(ReasonOf(control_.CheckOpen(Seconds(0))), "paused");
  control_.Resume();
  EXPECT_EQ(control_.state(), v1::RUN_STATE_WAITING);
  EXPECT_EQ(ReasonOf(control_.CheckOpen(Seconds(0))), "not_open");
}

TEST_F(ControlTest, OnlyTheFirstDrainCounts) {
  control_.Drain(Seconds(30));
  control_.Drain(Seconds(99));
  EXPECT_EQ(control_.drain_ends(), Seconds(30));
  EXPECT_EQ(control_.visible_state(), v1::RUN_STATE_DRAINING);
  EXPECT_EQ(RetryAfterOf(control_.CheckOpen(Seconds(10))), Seconds(5));
  EXPECT_EQ(RetryAfterOf(control_.DrainingError(Seconds(27))), Seconds(3));
  EXPECT_EQ(RetryAfterOf(control_.DrainingError(Seconds(40))), Seconds(1));
}

TEST_F(ControlTest, LogsNoTicks) {
  control_.Set(v1::RUN_STATE_TRAINING, "2 of 8 are in");
  control_.Set(v1::RUN_STATE_TRAINING, "3 of 8 are in");
  EXPECT_EQ(Lines("RUN_STATE_TRAINING"), 1);
  EXPECT_EQ(Lines("round=4"), 1);
  control_.Set(v1::RUN_STATE_WAITING, "1 of 2");
  control_.Set(v1::RUN_STATE_WAITING, "0 of 2");
  control_.Set(v1::RUN_STATE_WAITING, "0 of 2");
  EXPECT_EQ(Lines("RUN_STATE_WAITING"), 2);
}

}  // namespace
}  // namespace distro::server
