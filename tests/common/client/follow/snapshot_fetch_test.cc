#include "common/client/follow/snapshot_fetch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>

#include "common/base/checksum.h"
#include "common/base/file.h"
#include "common/base/reason.h"
#include "tests/common/client/follow/follow_fixture.h"
#include "tests/testing/scratch_folder.h"

namespace distro {
namespace {

class SnapshotFetchTest : public FollowTest {
 protected:
  SnapshotFetchTest() { Offer(std::string(kBytes)); }
  void Offer(const std::string& bytes) {
    const Sha256Digest digest = Sha256(bytes);
    snapshot_.set_sha256(digest.data(), digest.size());
    snapshot_.set_size_bytes(bytes.size());
    aggregator_.Change([&](AggregatorState& state) { state.snapshot = bytes; });
  }
  absl::Status Fetch() { return FetchSnapshot(follower_, connection_.get(), snapshot_, path_); }

  static constexpr absl::string_view kBytes = "the bytes of a snapshot";
  testing::ScratchFolder folder_;
  const std::string path_ = folder_.File("snapshot");
  v1::SnapshotInfo snapshot_;
};

TEST_F(SnapshotFetchTest, ReconnectsWhenFenced) {
  aggregator_.Change([this](AggregatorState& state) { state.snapshot_failures = {fenced_}; });
  ASSERT_TRUE(Fetch().ok());
  EXPECT_EQ(*ReadFile(path_), kBytes);
  ExpectAnotherConnection("DownloadSnapshot");
}

TEST_F(SnapshotFetchTest, GoesOnWhereACutStreamEnded) {
  aggregator_.Change([](AggregatorState& state) { state.snapshot_cuts = {7}; });
  ASSERT_TRUE(Fetch().ok());
  EXPECT_EQ(*ReadFile(path_), kBytes);
  EXPECT_EQ(aggregator_.state().downloads.at(1).offset(), 7u);
  EXPECT_EQ(meter_.stats(absl::ZeroDuration()).received_snapshot_bytes, kBytes.size());
}

// Such a process, stopped and continued, is not told that its link is too slow for the run.
TEST_F(SnapshotFetchTest, CountsLittleOfAnHourWithoutFrames) {
  class HourlyClock final : public Clock {
   public:
    absl::Duration MonotonicNow() const override { return absl::Hours(++looks_); }
    absl::Time WallNow() const override { return Clock::Real()->WallNow(); }

   private:
    mutable std::atomic<int> looks_ = 0;
  } clock;
  Offer(std::string(30'000, 'x'));  // ten frames
  Follower stopped = follower_;
  stopped.clock = &clock;
  ASSERT_TRUE(FetchSnapshot(stopped, connection_.get(), snapshot_, path_).ok());
  EXPECT_EQ(meter_.download_bytes_per_second(), 100u) << "of 30 s each";
}

TEST_F(SnapshotFetchTest, RefusesSizeWithoutRoom) {
  snapshot_.set_size_bytes(uint64_t{1} << 62);
  const absl::Status status = Fetch();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(status.message(), ::testing::HasSubstr("needs 4611686018427387904 bytes"));
  EXPECT_TRUE(aggregator_.state().downloads.empty());
}

TEST_F(SnapshotFetchTest, WithoutASessionARefusalIsTheEnd) {
  aggregator_.Change([](AggregatorState& state) {
    state.snapshot_failures = {Refusal(absl::StatusCode::kFailedPrecondition, "no_session"),
                               Refusal(absl::StatusCode::kNotFound, "")};
  });
  EXPECT_EQ(ReasonOf(Fetch()), "no_session");
  EXPECT_EQ(ReasonOf(Fetch()), "pruned");
  EXPECT_TRUE(Fetch().ok());
}

}  // namespace
}  // namespace distro
