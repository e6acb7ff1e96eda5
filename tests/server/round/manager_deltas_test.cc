// A run of deltas at the aggregator: caps that follow the workers, updates that break them, and a
// worker that opposes the others.
#include "common/base/status_macros.h"
#include "common/method/deltas/payload.h"
#include "common/run/run_config.h"
#include "gmock/gmock.h"
#include "tests/server/round/manager_fixture.h"

namespace distro::server {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Lt;

constexpr int kKept = 64;
constexpr uint8_t kCode = 100;
constexpr const char* kHonest[] = {"a", "b", "c"};

class ManagerDeltasTest : public testing::ManagerTest {
 protected:
  v1::RunConfig Deltas(int start_workers) {
    workers_ = start_workers;
    v1::RunConfig config = Config(start_workers);
    config.set_method(v1::METHOD_DELTAS);
    config.clear_beta();
    config.clear_overlap();
    config.set_rounds(1000);
    config.set_kept_per_block(kKept);
    config.set_local_steps(1);
    return config;
  }
  // The same of every worker, but for its sign and its scale; empty records with sign 0.
  SharedBytes Payload(RoundId round, SegmentId segment, int sign, uint8_t code) const {
    DeltaUpdate update{.k = kKept, .positions = {}, .signs = {}, .codes = {}};
    for (int64_t block = 0; block < run_->layout->SegmentBlocks(segment); ++block) {
      for (int i = 0; i < kKept; ++i) {
        update.positions.push_back(static_cast<uint16_t>(sign == 0 ? 0 : i));
        update.signs.push_back(static_cast<int8_t>(i % 3 == 0 ? -sign : sign));
      }
      update.codes.push_back(code);
    }
    return std::make_shared<const std::string>(
        EncodeDeltaUpdate(IdentifyPayload(*run_->layout, round, segment), update));
  }
  // Of a worker's slot, in a run in which all updates are included.
  absl::StatusOr<UploadTicket> BeginWithSlot(const std::string& name) {
    const uint64_t round = manager_->status().round.value();
    const uint64_t index = name == "mallory" ? 3 : name[0] - 'a';
    v1::UploadHeader header = HeaderOf(name, round);
    header.set_first_sample(run_->config.samples_per_worker() * (round * workers_ + index));
    return manager_->BeginUpload(header);
  }
  absl::Status Send(const std::string& name, int sign = 1, uint8_t code = kCode) {
    const RoundId round = manager_->status().round;
    DISTRO_ASSIGN_OR_RETURN(const UploadTicket ticket, BeginWithSlot(name));
    for (SegmentId s(0); s.value() < run_->layout->segments(); s = s.Next()) {
      const SharedBytes payload = Payload(round, s, sign, code);
      DISTRO_RETURN_IF_ERROR(run_->method->CheckUpdate(*payload, {round, s}, ticket.step));
      DISTRO_RETURN_IF_ERROR(manager_->AddPayload(ticket, s, ReceivedPayload(payload)).status());
    }
    return absl::OkStatus();
  }
  absl::Status SendNothing(const std::string& name) { return Send(name, /*sign=*/0, /*code=*/0); }
  // Of at most 100 rounds.
  int RoundsUntilMalloryIsOut() {
    int rounds = 0;
    for (; StateOf("mallory") == v1::MEMBER_STATE_ACTIVE && rounds < 100; ++rounds) {
      for (const char* name : kHonest) EXPECT_EQ(Send(name), absl::OkStatus());
      EXPECT_EQ(Send("mallory", -1), absl::OkStatus());
      Step();
    }
    return rounds;
  }
  std::string Caps(const std::string& name) { return BeginWithSlot(name)->step.deltas().caps(); }

  uint64_t workers_ = 0;
};

TEST_F(ManagerDeltasTest, SetsCapsTwoCodesAboveMedian) {
  OpenRound(Deltas(3), {"a", "b", "c"});
  const std::string first = Caps("a");
  ASSERT_EQ(Send("a", 1, 190), absl::OkStatus());
  ASSERT_EQ(Send("b", 1, 180), absl::OkStatus());
  ASSERT_EQ(Send("c", 1, 170), absl::OkStatus());
  Step();
  ASSERT_EQ(observer_.rounds, 1);
  EXPECT_THAT(observer_.last_header.scale_medians(), Each(181u)) << "1 + the code";
  EXPECT_EQ(observer_.last_header.step().deltas().caps(), first);
  EXPECT_THAT(Caps("a"), Each(static_cast<char>(182)));
  Start(Deltas(3));
  for (const char* name : {"a", "b", "c"}) Activate(name);
  Step();
  EXPECT_THAT(Caps("a"), Each(static_cast<char>(182))) << "the log has them";
}

TEST_F(ManagerDeltasTest, KeepsCapsDespiteEmptyRecords) {
  OpenRound(Deltas(3), {"a", "b", "c"});
  for (const char* name : {"a", "b", "c"}) ASSERT_EQ(Send(name, 1, 180), absl::OkStatus());
  Step();
  for (int pair = 0; pair < 3; ++pair) {
    for (const char* name : {"a", "b"}) ASSERT_EQ(Send(name, 1, 180), absl::OkStatus());
    ASSERT_EQ(SendNothing("c"), absl::OkStatus());
    Step();
    ASSERT_THAT(Caps("a"), Each(static_cast<char>(182)));
    for (const char* name : {"a", "b"}) ASSERT_EQ(Send(name, 1, 180), absl::OkStatus());
    ASSERT_EQ(Send("c", 1, 182), absl::OkStatus());
    Step();
    ASSERT_THAT(Caps("a"), Each(static_cast<char>(182)));
  }
}

TEST_F(ManagerDeltasTest, RaisesCapsWithTwoOfThree) {
  OpenRound(Deltas(3), {"a", "b", "c"});
  for (const char* name : {"a", "b", "c"}) ASSERT_EQ(Send(name, 1, 174), absl::OkStatus());
  for (int cap = 176; cap <= 184; cap += 2) {
    Step();
    ASSERT_THAT(Caps("a"), Each(static_cast<char>(cap)));
    for (const char* name : {"a", "b"})
      ASSERT_EQ(Send(name, 1, static_cast<uint8_t>(cap)), absl::OkStatus());
    ASSERT_EQ(SendNothing("c"), absl::OkStatus());
  }
}

TEST_F(ManagerDeltasTest, RefusesUpdateOfOtherSlot) {
  OpenRound(Deltas(2), {"a", "b"});
  v1::UploadHeader header = HeaderOf("b", 0);
  EXPECT_TRUE(manager_->BeginUpload(header).ok()) << "it does not say which";
  header.set_first_sample(4);
  const absl::Status refused = manager_->BeginUpload(header).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("the slot of b begins at 2"));
  EXPECT_EQ(StateOf("b"), v1::MEMBER_STATE_ACTIVE);
  EXPECT_EQ(Send("b"), absl::OkStatus());
}

TEST_F(ManagerDeltasTest, WithFewerThanThreeWorkersTheCapsStayAtTheRates) {
  OpenRound(Deltas(2), {"a", "b"});
  const std::string first = Caps("a");
  for (const char* name : {"a", "b"}) ASSERT_EQ(Send(name), absl::OkStatus());
  Step();
  EXPECT_THAT(observer_.last_header.scale_medians(), Each(0u));
  EXPECT_GE(static_cast<uint8_t>(Caps("a")[0]), static_cast<uint8_t>(first[0])) << "warm-up";
}

TEST_F(ManagerDeltasTest, QuarantinesOpponent) {
  OpenRound(Deltas(4), {"a", "b", "c", "mallory"});
  EXPECT_THAT(RoundsUntilMalloryIsOut(), Lt(30));
  EXPECT_EQ(StateOf("mallory"), v1::MEMBER_STATE_QUARANTINED);
  for (const char* name : kHonest) EXPECT_EQ(StateOf(name), v1::MEMBER_STATE_ACTIVE);
  EXPECT_EQ(ReasonOf(Send("mallory", -1)), "quarantined");
}

TEST_F(ManagerDeltasTest, KeepsOpponentWithLocalData) {
  v1::RunConfig config = Deltas(4);
  config.set_data(v1::DATA_LOCAL);
  OpenRound(config, {"a", "b", "c", "mallory"});
  EXPECT_EQ(RoundsUntilMalloryIsOut(), 100);
}

TEST_F(ManagerDeltasTest, KeepsOpponentWithAnyData) {
  v1::RunConfig config = Deltas(4);
  config.set_data_fingerprint(std::string(kAnyData));
  OpenRound(config, {"a", "b", "c", "mallory"});
  EXPECT_EQ(RoundsUntilMalloryIsOut(), 100);
}

}  // namespace
}  // namespace distro::server
