#include "server/round/recorder.h"

#include "common/base/reason.h"
#include "gtest/gtest.h"
#include "server/log/disk.h"
#include "tests/testing/round_builder.h"
#include "tests/testing/scratch_folder.h"
#include "tests/testing/server/faulty_disk.h"

namespace distro::server {
namespace {

class RecorderTest : public ::testing::Test {
 protected:
  RecorderTest() {
    EXPECT_TRUE(rounds_->WriteStart({}).ok());
    built_ = testing::BuildRound(layout_, RoundId(0), rounds_->HashBefore(RoundId(0)));
    recorder_.Open(RoundId(0));
  }
  absl::Status Add(uint32_t segment) {
    return recorder_.Add(SegmentId(segment),
                         std::make_shared<const std::string>(built_.payloads[segment]));
  }

  testing::ScratchFolder folder_;
  testing::FaultyDisk disk_;
  const Layout layout_ = testing::SmallLayout();
  Log log_{LogLevel::kError, Clock::Real(), [](absl::string_view) {}};
  std::unique_ptr<RoundLog> rounds_ =
      *RoundLog::Open(folder_.File("rounds"), &layout_, 0, &disk_, &log_);
  testing::BuiltRound built_;
  Recorder recorder_{rounds_.get(), layout_.segments()};
};

TEST_F(RecorderTest, WritesSegmentsAsTheyCloseAndTheHeaderAtTheEnd) {
  for (const uint32_t s : {2u, 0u, 1u}) ASSERT_TRUE(Add(s).ok());
  EXPECT_FALSE(recorder_.has_header());
  recorder_.SetHeader(built_.header_bytes());
  ASSERT_TRUE(recorder_.Commit().ok());
  EXPECT_EQ(rounds_->next_round(), RoundId(1));
  recorder_.Clear();
  EXPECT_FALSE(recorder_.has_header());
}

TEST_F(RecorderTest, AfterAnErrorTheCommitWritesAllSegmentsAgain) {
  ASSERT_TRUE(Add(0).ok());
  disk_.Fail({.operation = DiskOperation::kWrite, .times = 1});
  EXPECT_TRUE(IsDiskError(Add(1)));
  const int writes = disk_.count(DiskOperation::kWrite);
  EXPECT_TRUE(Add(2).ok()) << "kept for the commit";
  EXPECT_EQ(disk_.count(DiskOperation::kWrite), writes);
  recorder_.SetHeader(built_.header_bytes());
  ASSERT_TRUE(recorder_.Commit().ok());
  EXPECT_EQ(rounds_->next_round(), RoundId(1));
}

TEST_F(RecorderTest, RetriesCommit) {
  for (const uint32_t s : {0u, 1u, 2u}) ASSERT_TRUE(Add(s).ok());
  recorder_.SetHeader(built_.header_bytes());
  disk_.Fail({.operation = DiskOperation::kLink, .times = 2});
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(IsDiskError(recorder_.Commit()));
  EXPECT_TRUE(recorder_.has_header());
  ASSERT_TRUE(recorder_.Commit().ok());
  EXPECT_EQ(rounds_->next_round(), RoundId(1));
}

// No disk is at fault: who would try again would do so for ever.
TEST_F(RecorderTest, GivesUpRefusedRecord) {
  for (const uint32_t s : {0u, 1u, 2u}) ASSERT_TRUE(Add(s).ok());
  built_.header.set_predecessor_hash(1);
  recorder_.SetHeader(built_.header_bytes());
  EXPECT_EQ(recorder_.Commit().code(), absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace distro::server
