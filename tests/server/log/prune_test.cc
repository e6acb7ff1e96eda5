// Dropping the payloads of old rounds: headers, hashes and later rounds stay, whatever happens
// meanwhile.
#include <errno.h>

#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/base/reason.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/log/record_format.h"
#include "tests/server/log/log_fixture.h"

namespace distro::server {
namespace {

using testing::DiskCall;
using ::testing::HasSubstr;

constexpr uint64_t kRounds = 6;
constexpr RoundId kFirstKept = RoundId(4);

class PruneTest : public LogFixture {
 protected:
  void SetUp() override {
    Fill(kRounds);
    rounds_ = *Open();
    for (uint64_t t = 0; t <= kRounds; ++t) hashes_.push_back(rounds_->HashBefore(RoundId(t)));
    for (uint64_t t = 0; t < kRounds; ++t) {
      headers_.push_back(rounds_->Header(RoundId(t))->SerializeAsString());
    }
  }

  uint64_t BytesOnDisk(const std::string& dir) const {
    uint64_t bytes = 0;
    for (const auto& entry : std::filesystem::directory_iterator(dir)) {
      if (entry.path().extension() == ".record") bytes += entry.file_size();
    }
    return bytes;
  }

  // All headers and hashes are as they were, and all payloads from first_round() on.
  void ExpectWhole(const RoundLog& log) {
    ASSERT_EQ(log.next_round(), RoundId(kRounds));
    for (uint64_t t = 0; t < kRounds; ++t) {
      EXPECT_EQ(log.HashBefore(RoundId(t)), hashes_[t]);
      EXPECT_EQ(log.Header(RoundId(t))->SerializeAsString(), headers_[t]);
      const auto record = log.OpenRecord(RoundId(t));
      if (RoundId(t) < log.first_round()) {
        EXPECT_EQ(record.status().code(), absl::StatusCode::kOutOfRange);
        EXPECT_EQ(ReasonOf(record.status()), "pruned");
      } else {
        ASSERT_TRUE(record.ok()) << record.status();
        EXPECT_TRUE((*record)->VerifyPayloads().ok());
      }
    }
    EXPECT_EQ(log.HashBefore(RoundId(kRounds)), hashes_[kRounds]);
  }

  std::unique_ptr<RoundLog> rounds_;
  std::vector<uint64_t> hashes_;      // before each round, and after the last
  std::vector<std::string> headers_;  // of each round
};

TEST_F(PruneTest, DropsPayloadsAndKeepsHeaders) {
  EXPECT_EQ(rounds_->first_round(), RoundId(0));
  const uint64_t before = BytesOnDisk(Dir());
  const absl::Status status = rounds_->Prune(kFirstKept);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(rounds_->first_round(), kFirstKept);
  ExpectWhole(*rounds_);
  EXPECT_LT(BytesOnDisk(Dir()), before);
  EXPECT_EQ(rounds_->bytes(), BytesOnDisk(Dir()));
  EXPECT_EQ(FilesThatEndWith(".tmp"), 0);
  EXPECT_EQ(FilesThatEndWith(".record"), 4) << "the start, a pack, two rounds";
  EXPECT_EQ(rounds_->files(), 4);
  EXPECT_THAT(std::string(rounds_->OpenRecord(RoundId(1)).status().message()),
              HasSubstr("the log goes on from round 4"));
}

TEST_F(PruneTest, DropsOthersDespiteDamage) {
  std::filesystem::remove(Dir() + "/" + RecordName(RoundId(0)));
  const absl::Status status = rounds_->Prune(kFirstKept);
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr(RecordName(RoundId(0))));
  for (uint64_t r = 1; r < kFirstKept.value(); ++r)
    EXPECT_EQ(ReasonOf(rounds_->OpenRecord(RoundId(r)).status()), "pruned") << r;
  EXPECT_LT(BytesOnDisk(Dir()), rounds_->bytes());
}

TEST_F(PruneTest, IsFoundAgainByAStart) {
  ASSERT_TRUE(rounds_->Prune(kFirstKept).ok());
  auto again = Open();
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ((*again)->first_round(), kFirstKept);
  EXPECT_EQ((*again)->bytes(), rounds_->bytes());
  ExpectWhole(**again);
  EXPECT_TRUE(Write(again->get()).ok());
}

TEST_F(PruneTest, NeedsNoPayloadsOfNewest) {
  ASSERT_TRUE(rounds_->Prune(RoundId(kRounds)).ok());
  auto again = Open(/*verify_payloads=*/3);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ((*again)->first_round(), RoundId(kRounds));
  EXPECT_TRUE(Write(again->get()).ok());
}

TEST_F(PruneTest, IsIdempotent) {
  ASSERT_TRUE(rounds_->Prune(kFirstKept).ok());
  const size_t before = disk_.calls().size();
  EXPECT_TRUE(rounds_->Prune(kFirstKept).ok());
  EXPECT_TRUE(rounds_->Prune(RoundId(1)).ok());
  EXPECT_EQ(disk_.calls().size(), before);
  EXPECT_EQ(rounds_->first_round(), kFirstKept);
}

TEST_F(PruneTest, RefusesRoundsBeyondTheLog) {
  EXPECT_EQ(rounds_->Prune(RoundId(kRounds + 1)).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(rounds_->Prune(RoundId(UINT64_MAX)).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(rounds_->first_round(), RoundId(0));
}

TEST_F(PruneTest, LetsReaderFinishRecord) {
  const auto record = *rounds_->OpenRecord(RoundId(1));
  ASSERT_TRUE(rounds_->Prune(kFirstKept).ok());
  EXPECT_TRUE(record->VerifyPayloads().ok());
  EXPECT_EQ(rounds_->OpenRecord(RoundId(1)).status().code(), absl::StatusCode::kOutOfRange);
}

// A reader that asked a moment before: the file is pruned already when it opens it.
TEST_F(PruneTest, TellsReaderOfPrunedFile) {
  auto looks = RoundLog::OpenReadOnly(Dir(), &layout_, 0);
  ASSERT_TRUE(looks.ok()) << looks.status();
  ASSERT_TRUE(rounds_->Prune(kFirstKept).ok());
  EXPECT_EQ((*looks)->first_round(), RoundId(0));
  EXPECT_EQ(ReasonOf((*looks)->OpenRecord(RoundId(1)).status()), "pruned");
  EXPECT_EQ((*looks)->Header(RoundId(1))->SerializeAsString(), headers_[1]);
}

TEST_F(PruneTest, LeavesWholeLogAfterKill) {
  std::vector<std::string> copies;
  disk_.SetHook([&](const DiskCall&, uint64_t n) {
    copies.push_back(folder_.File(absl::StrCat("killed", n)));
    std::filesystem::copy(Dir(), copies.back());
  });
  ASSERT_TRUE(rounds_->Prune(kFirstKept).ok());
  disk_.SetHook(nullptr);
  // A pack: create, write (prefix, four headers, tail), fsync, rename, fsync the folder; then the
  // records that it replaces, and the temporary name.
  ASSERT_EQ(copies.size(), 1 + 6 + 1 + 1 + 1 + 3 + 1);
  RoundId first;
  for (const std::string& copy : copies) {
    SCOPED_TRACE(copy);
    auto log = RoundLog::Open(copy, &layout_, 2, Disk::Real(), &log_);
    ASSERT_TRUE(log.ok()) << log.status();
    ExpectWhole(**log);
    EXPECT_GE((*log)->first_round(), first);
    first = (*log)->first_round();
    ASSERT_TRUE((*log)->Prune(kFirstKept).ok());
    EXPECT_EQ((*log)->bytes(), rounds_->bytes());
    ExpectWhole(**log);
  }
  EXPECT_EQ(first, kFirstKept);
}

TEST_F(PruneTest, RetriesOperations) {
  for (const bool half_done : {false, true}) {
    for (int n = 0;; ++n) {
      SCOPED_TRACE(n);
      rounds_.reset();
      std::filesystem::remove_all(Dir());
      hashes_.clear();
      headers_.clear();
      SetUp();
      disk_.Fail({.error_number = EIO, .after = n, .times = 1, .half_done = half_done});
      const size_t before = disk_.calls().size();
      const absl::Status status = rounds_->Prune(kFirstKept);
      const bool reached = disk_.calls().size() - before > static_cast<size_t>(n);
      EXPECT_TRUE(status.ok() || ReasonOf(status) == "disk") << status;
      disk_.Heal();
      ExpectWhole(*rounds_);
      ExpectWhole(**Open());
      ASSERT_TRUE(rounds_->Prune(kFirstKept).ok());
      EXPECT_EQ(rounds_->bytes(), BytesOnDisk(Dir()));
      if (HasFailure()) return;
      if (!reached) break;
    }
  }
}

// The names of a folder after a power failure: some renamed, some not.
TEST_F(PruneTest, PrunesWholeRoundAgain) {
  const std::string whole = *ReadFile(Path("0000000001.record"));
  ASSERT_TRUE(rounds_->Prune(kFirstKept).ok());
  ASSERT_TRUE(WriteFileAtomically(Path("0000000001.record"), whole).ok());
  auto again = *Open();
  EXPECT_EQ(again->first_round(), kFirstKept);
  ExpectWhole(*again);
  ASSERT_TRUE(again->Prune(kFirstKept).ok());
  EXPECT_EQ(again->bytes(), rounds_->bytes());
}

TEST_F(PruneTest, GoesOnWhileRoundsAreCommittedAndRead) {
  std::thread reader([&] {
    while (rounds_->next_round() < RoundId(20)) {
      const RoundId round = rounds_->first_round();
      const auto record = rounds_->OpenRecord(round);
      if (!record.ok()) {
        EXPECT_EQ(ReasonOf(record.status()), "pruned");
        continue;
      }
      EXPECT_TRUE((*record)->VerifyPayloads().ok());
    }
  });
  std::thread pruner([&] {
    while (rounds_->next_round() < RoundId(20)) {
      EXPECT_TRUE(rounds_->Prune(RoundId(rounds_->next_round().value() - 2)).ok());
    }
  });
  while (rounds_->next_round() < RoundId(20)) EXPECT_TRUE(Write(rounds_.get()).ok());
  reader.join();
  pruner.join();
  auto again = Open();
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ((*again)->bytes(), BytesOnDisk(Dir()));
}

}  // namespace
}  // namespace distro::server
