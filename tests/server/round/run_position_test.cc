// The Open frame of a round of deltas follows from the previous record, also after a restart.
#include "server/round/run_position.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/method/deltas/caps.h"
#include "common/method/deltas/rounds.h"
#include "common/method/deltas/step.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/log/disk.h"
#include "tests/server/round/run_fixture.h"
#include "tests/testing/scratch_folder.h"
#include "tests/testing/server/faulty_disk.h"

namespace distro::server {
namespace {

using ::distro::testing::BuildDeltaRound;
using ::distro::testing::BuiltRound;
using ::testing::ElementsAre;

// A median of code 150 lies between floor and ceiling of the caps at this rate.
v1::RunConfig DeltaConfig() {
  v1::RunConfig config = testing::SmallConfig();
  config.set_method(v1::METHOD_DELTAS);
  config.clear_beta();
  config.clear_overlap();
  config.set_peak_learning_rate(1e-5);
  config.set_min_learning_rate(1e-6);
  config.set_local_steps(2);
  return *CompleteRunConfig(config);
}

class RunPositionTest : public ::testing::Test {
 protected:
  RunPositionTest() {
    run_.run_id = "small-0001";
    run_.config = DeltaConfig();
    run_.layout = std::make_shared<const Layout>(testing::SmallLayout());
    run_.method = MakeDeltaRounds(run_.config, run_.layout, {true, false, false});
    log_file_ = Reopen();
    EXPECT_TRUE(log_file_->WriteStart(StartHeader()).ok());
  }
  // No worker has samples, because this test is not about them.
  v1::StartHeader StartHeader() const {
    return MakeStartHeader({.run_id = run_.run_id, .data_fingerprint = "data", .state_hash = 1},
                           *run_.layout, run_.config, {});
  }
  std::unique_ptr<RoundLog> Reopen() {
    return *RoundLog::Open(folder_.File("rounds"), run_.layout.get(), 1, &disk_, &log_);
  }
  // The next round into the log, with these medians; its header.
  v1::RoundHeader Commit(const std::vector<uint32_t>& medians) {
    const RoundId round = log_file_->next_round();
    BuiltRound built = BuildDeltaRound(*run_.layout, round, log_file_->HashBefore(round));
    built.header.clear_scale_medians();
    for (const uint32_t median : medians) built.header.add_scale_medians(median);
    auto writer = *log_file_->Begin(round);
    for (uint32_t s = 0; s < built.payloads.size(); ++s)
      EXPECT_TRUE(writer.AddSegment(SegmentId(s), built.payloads[s]).ok());
    EXPECT_EQ(log_file_->Commit(std::move(writer), built.header_bytes()), absl::OkStatus());
    return built.header;
  }
  // As a process that was there from the start, or one that has the log alone.
  RunPosition Begun() const {
    RunPosition position(&run_, EpochId(1), 8, RoundId(0));
    position.Start(StartHeader());
    return position;
  }
  RunPosition Restored() {
    log_file_ = nullptr;
    log_file_ = Reopen();
    RunPosition position(&run_, EpochId(2), 8, log_file_->next_round());
    EXPECT_TRUE(position.Restore(*log_file_, [](const v1::RoundHeader&) {}).ok());
    return position;
  }
  v1::StepParameters OpenStep(RunPosition* position) {
    position->Open(members_, absl::InfiniteDuration(), SegmentId(0), absl::ZeroDuration());
    return position->MakeOpen(absl::ZeroDuration()).step();
  }
  std::string CapsOf(uint64_t round, const std::vector<uint32_t>& medians) const {
    return DeltaCaps(LocalRates(run_.config, RoundId(round)), medians, 3);
  }

  testing::ScratchFolder folder_;
  testing::FaultyDisk disk_;
  Log log_{LogLevel::kError, Clock::Real(), [](absl::string_view) {}};
  Membership members_{
      {.max_workers = 8, .lease = absl::Seconds(30), .min_workers = 2, .probation_rounds = 2},
      &log_};
  RunIdentity run_;
  std::unique_ptr<RoundLog> log_file_;
};

TEST_F(RunPositionTest, CapsFollowTheRecordBefore) {
  RunPosition position = Begun();
  EXPECT_EQ(OpenStep(&position).deltas().caps(), CapsOf(0, {}));
  position.Finish(Commit({0, 151, 141}));
  const std::string caps = OpenStep(&position).deltas().caps();
  EXPECT_EQ(caps, CapsOf(1, {0, 151, 141}));
  EXPECT_EQ(static_cast<uint8_t>(caps[0]), DeltaCap(LocalRates(run_.config, RoundId(1)), {}));
  EXPECT_EQ(static_cast<uint8_t>(caps[1]), 152);
  EXPECT_EQ(static_cast<uint8_t>(caps[2]), 142);
}

// Records of earlier versions may be without a median that the one before them had.
TEST_F(RunPositionTest, CapsFollowTheRecordBeforeAlone) {
  RunPosition position = Begun();
  OpenStep(&position);
  position.Finish(Commit({151, 151, 151}));
  OpenStep(&position);
  position.Finish(Commit({0, 0, 0}));
  EXPECT_EQ(OpenStep(&position).deltas().caps(), CapsOf(2, {}));
}

TEST_F(RunPositionTest, KeepsMediansWithoutCodes) {
  RunPosition position = Begun();
  OpenStep(&position);
  position.Finish(Commit({0, 151, 141}));
  RunPosition restored = Restored();
  for (RunPosition* each : {&position, &restored}) {
    OpenStep(each);
    EXPECT_THAT(each->MakeHeader(members_, 0, /*paused=*/false, *Clock::Real()).scale_medians(),
                ElementsAre(0, 151, 141));
  }
}

TEST_F(RunPositionTest, OpensEqualStepAfterRestart) {
  RunPosition position = Begun();
  for (const std::vector<uint32_t>& medians :
       std::vector<std::vector<uint32_t>>{{0, 151, 141}, {150, 0, 145}, {0, 0, 0}}) {
    OpenStep(&position);
    position.Finish(Commit(medians));
    const std::string step = OpenStep(&position).SerializeAsString();
    RunPosition restored = Restored();
    EXPECT_EQ(restored.head(), position.head());
    EXPECT_EQ(OpenStep(&restored).SerializeAsString(), step);
  }
}

TEST_F(RunPositionTest, BeforeAnyRoundARestartOpensWithTheCeilings) {
  RunPosition restored = Restored();
  EXPECT_EQ(OpenStep(&restored).deltas().caps(), CapsOf(0, {}));
}

}  // namespace
}  // namespace distro::server
