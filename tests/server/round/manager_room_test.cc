// Rounds too large for any record: refused, or made smaller.
#include <utility>

#include "absl/strings/str_format.h"
#include "common/run/record/header_bound.h"
#include "gmock/gmock.h"
#include "tests/server/round/manager_fixture.h"

namespace distro::server {
namespace {

using absl::StatusCode;
using ::testing::HasSubstr;

class ManagerRoomTest : public testing::ManagerTest {
 protected:
  static v1::RunConfig ForTooMany() {
    v1::RunConfig config = Config(1);
    config.set_kept_per_block(1);
    config.set_max_workers(32'767);
    return config;
  }
  static std::string Name(uint32_t i) { return absl::StrFormat("w%05d", i); }
  // A sample for each of so many workers.
  static google::protobuf::RepeatedPtrField<v1::Slot> Slots(uint32_t count) {
    google::protobuf::RepeatedPtrField<v1::Slot> slots;
    for (uint32_t i = 0; i < count; ++i) {
      slots.Add()->set_worker(Name(i));
      slots.Mutable(static_cast<int>(i))->set_samples(1);
    }
    return slots;
  }
  // The start record of a run in which all of them take part.
  void WriteStart(google::protobuf::RepeatedPtrField<v1::Slot> slots) {
    v1::StartHeader start;
    const Sha256Digest& manifest = run_->layout->manifest().hash();
    start.set_manifest_hash(std::string(manifest.begin(), manifest.end()));
    start.set_data_fingerprint("data");
    *start.mutable_slots() = slots;
    *start.mutable_next_slots() = slots;
    start.set_next_sample(1 << 20);
    ASSERT_TRUE(log_file_->WriteStart(start).ok());
  }
  // The first worker comes back alone, and its update closes the round.
  void RunRound(uint64_t round) {
    Activate(Name(0));
    clock_.Advance(options_.lease);
    Beat(Name(0));
    Step();
    const auto result = Begin(Name(0), round);
    ASSERT_TRUE(result.ok()) << result.status();
    for (uint32_t s = 0; s < run_->layout->segments(); ++s) {
      const auto payload =
          testing::UpdatePayload(*run_->layout, RoundId(round), SegmentId(s), s, /*k=*/1);
      ASSERT_TRUE(manager_->AddPayload(*result, SegmentId(s), ReceivedPayload(payload)).ok());
    }
    Step();
  }
};

// Its samples were given to a name that no header may have, so the log refuses the record, whatever
// the disk does.
TEST_F(ManagerRoomTest, EndsWhenLogRefusesRecord) {
  Start(Config(1));
  auto slots = Slots(2);
  slots.Mutable(0)->set_worker("No Name");
  slots.Mutable(1)->set_worker("a");
  WriteStart(slots);
  Start(Config(1));
  Activate("a");
  clock_.Advance(options_.lease);
  Beat("a");
  Step();
  Upload("a", 0);
  const absl::Status ended = manager_->round_thread().Step().status();
  EXPECT_EQ(ended.code(), StatusCode::kInternal) << ended;
  EXPECT_THAT(std::string(ended.message()), HasSubstr("a round that cannot be stored"));
  EXPECT_EQ(manager_->status().disk_error, "");
  EXPECT_TRUE(observer_.errors.empty());
}

// Of an earlier version, which took any configuration.
TEST_F(ManagerRoomTest, RefusesUnstorableRun) {
  v1::RunConfig config = Config(1);
  config.set_segment_blocks(1);
  auto run = std::make_shared<RunIdentity>(*testing::SmallRun(config));
  run->layout = std::make_shared<const Layout>(
      *Layout::Create(*Manifest::Create({{"a", {64 * 65'536, 64}}}), 1));
  auto rounds = *RoundLog::Open(folder_.File("large"), run->layout.get(), 0, &disk_, &log_);
  auto admission = *AdmissionStore::Open(folder_.File("admission.pb"), &disk_);
  auto snapshots = *SnapshotStore::Open(folder_.path(), run, &disk_, &log_);
  const absl::Status refused =
      RoundManager::Create({run,
                            EpochId(1),
                            {rounds.get(), admission.get(), snapshots.get()},
                            &clock_,
                            &log_,
                            &observer_,
                            options_})
          .status();
  EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("65536 segments"));
}

TEST_F(ManagerRoomTest, TakesWorkersThatFit) {
  Start(ForTooMany());
  const uint32_t most = MostMembers({.segments = run_->layout->segments()});
  WriteStart(Slots(most + 1));
  Start(ForTooMany());
  RunRound(0);
  ASSERT_EQ(observer_.rounds, 1);
  EXPECT_EQ(observer_.last_header.members_size(), static_cast<int>(most));
}

// Its names are shorter than they might be, so there was room.
TEST_F(ManagerRoomTest, TakesWorkersOfNewestRecord) {
  Start(ForTooMany());
  const uint32_t count = MostMembers({.segments = run_->layout->segments()}) + 50;
  WriteStart(Slots(count));
  testing::BuiltRound round =
      testing::BuildRound(*run_->layout, RoundId(0), log_file_->HashBefore(RoundId(0)));
  round.header.clear_members();
  for (uint32_t i = 0; i < count; ++i) {
    v1::Member& member = *round.header.add_members();
    member.set_name(Name(i));
    member.set_weight(1);
    member.set_state(v1::MEMBER_STATE_ACTIVE);
  }
  for (v1::CommittedSegment& segment : *round.header.mutable_segments())
    segment.set_included(std::string((count + 7) / 8, '\0'));
  round.header.set_next_sample(1 << 20);
  auto writer = *log_file_->Begin(RoundId(0));
  for (uint32_t s = 0; s < run_->layout->segments(); ++s)
    ASSERT_TRUE(writer.AddSegment(SegmentId(s), round.payloads[s]).ok());
  ASSERT_TRUE(log_file_->Commit(std::move(writer), round.header_bytes()).ok());
  Start(ForTooMany());
  RunRound(1);
  ASSERT_EQ(observer_.rounds, 1);
  EXPECT_EQ(observer_.last_header.members_size(), static_cast<int>(count));
}

}  // namespace
}  // namespace distro::server
