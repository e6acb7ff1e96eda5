#include "server/log/round_log.h"

#include <sys/resource.h>

#include <csignal>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/checksum.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/log/log_fixture.h"

namespace distro::server {
namespace {

using ::testing::HasSubstr;
using RoundLogTest = LogFixture;

TEST_F(RoundLogTest, StartsEmpty) {
  auto log = Open();
  ASSERT_TRUE(log.ok()) << log.status();
  EXPECT_FALSE((*log)->has_start());
  EXPECT_EQ((*log)->next_round(), RoundId(0));
  EXPECT_EQ((*log)->bytes(), 0);
  EXPECT_EQ((*log)->Begin(RoundId(0)).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(RoundLogTest, GivesBackWhatWasWritten) {
  Fill(3);
  auto log = Open();
  ASSERT_TRUE(log.ok()) << log.status();
  EXPECT_EQ((*log)->next_round(), RoundId(3));
  EXPECT_EQ((*log)->start().SerializeAsString(), Start().SerializeAsString());
  EXPECT_EQ((*log)->HashBefore(RoundId(0)), Xxh3(Start().SerializeAsString()));
  uint64_t hash = (*log)->HashBefore(RoundId(0));
  uint64_t bytes = std::filesystem::file_size(Path("start.record"));
  for (uint64_t t = 0; t < 3; ++t) {
    const testing::BuiltRound round = testing::BuildRound(layout_, RoundId(t), hash);
    const auto record = (*log)->OpenRecord(RoundId(t));
    ASSERT_TRUE(record.ok()) << record.status();
    EXPECT_EQ((*record)->header_bytes(), round.header_bytes());
    for (uint32_t s = 0; s < layout_.segments(); ++s) {
      ASSERT_EQ((*record)->payload_bytes(SegmentId(s)), round.payloads[s].size());
      EXPECT_EQ(*(*record)->Read(SegmentId(s), 0, round.payloads[s].size()), round.payloads[s]);
      EXPECT_EQ(*(*record)->Read(SegmentId(s), 3, 7), round.payloads[s].substr(3, 7));
    }
    EXPECT_EQ((*log)->Header(RoundId(t))->SerializeAsString(), round.header_bytes());
    hash = Xxh3(round.header_bytes());
    EXPECT_EQ((*log)->HashBefore(RoundId(t + 1)), hash);
    bytes += std::filesystem::file_size(Path(absl::StrCat("000000000", t, ".record")));
  }
  EXPECT_EQ((*log)->bytes(), bytes);
  EXPECT_TRUE(Write(log->get()).ok());
  EXPECT_EQ((*log)->next_round(), RoundId(4));
}

TEST_F(RoundLogTest, RefusesToReadBeyondAPayload) {
  Fill(1);
  auto log = Open();
  const auto record = (*log)->OpenRecord(RoundId(0));
  const uint64_t size = (*record)->payload_bytes(SegmentId(0));
  EXPECT_EQ((*record)->Read(SegmentId(0), size, 1).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ((*record)->Read(SegmentId(0), ~uint64_t{0}, 2).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ((*record)->Read(SegmentId(0), size, 0)->size(), 0);
}

// What a kill leaves at each step: nothing, part of a temporary file, all of it, or the final name.
TEST_F(RoundLogTest, LosesRoundOfKillBeforeLink) {
  Fill(1);
  auto log = Open();
  const testing::BuiltRound round = Next(**log);
  const uint64_t hash = (*log)->HashBefore(RoundId(1));
  for (size_t segments = 0; segments <= round.payloads.size(); ++segments) {
    {
      auto writer = (*log)->Begin(RoundId(1));
      ASSERT_TRUE(writer.ok()) << writer.status();
      for (size_t i = 0; i < segments; ++i) {
        ASSERT_TRUE(writer->AddSegment(SegmentId(i), round.payloads[i]).ok());
      }
      for (const auto& entry : std::filesystem::directory_iterator(Dir())) {
        if (entry.path().extension() != ".tmp") continue;
        std::filesystem::copy_file(entry, Path(absl::StrCat("killed", segments)));
      }
    }  // here the process would have cleaned up
    std::filesystem::rename(Path(absl::StrCat("killed", segments)), Path("1-1-1.tmp"));
    auto again = Open();
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ((*again)->next_round(), RoundId(1));
    EXPECT_EQ((*again)->HashBefore(RoundId(1)), hash);
    EXPECT_EQ(FilesThatEndWith(".tmp"), 0);
  }
}

TEST_F(RoundLogTest, KeepsRoundOfKillAfterLink) {
  Fill(1);
  std::filesystem::create_directory(folder_.File("copy"));
  std::filesystem::copy(Dir(), folder_.File("copy"));
  auto log = Open();
  ASSERT_TRUE(Write(log->get()).ok());
  // The final name is there and so is the temporary one.
  std::filesystem::copy_file(Path("0000000001.record"), folder_.File("copy/0000000001.record"));
  std::filesystem::copy_file(Path("0000000001.record"), folder_.File("copy/1-1-1.tmp"));
  auto copy = RoundLog::Open(folder_.File("copy"), &layout_, 1, Disk::Real(), &log_);
  ASSERT_TRUE(copy.ok()) << copy.status();
  EXPECT_EQ((*copy)->next_round(), RoundId(2));
  EXPECT_EQ((*copy)->HashBefore(RoundId(2)), (*log)->HashBefore(RoundId(2)));
}

TEST_F(RoundLogTest, RemovesUncommittedFile) {
  Fill(0);
  auto log = Open();
  {
    auto writer = (*log)->Begin(RoundId(0));
    ASSERT_TRUE(writer->AddSegment(SegmentId(0), "x").ok());
    EXPECT_EQ(FilesThatEndWith(".tmp"), 1);
  }
  EXPECT_EQ(FilesThatEndWith(".tmp"), 0);
}

TEST_F(RoundLogTest, FencesTheSecondWriterOfARound) {
  Fill(1);
  auto one = Open();
  auto two = Open();  // as a process would that did not get the folder's lock
  const testing::BuiltRound round = Next(**two);
  auto writer = (*two)->Begin(RoundId(1));
  for (uint32_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(writer->AddSegment(SegmentId(i), round.payloads[i]).ok());
  }
  ASSERT_TRUE(Write(one->get()).ok());
  const absl::Status status = (*two)->Commit(*std::move(writer), round.header_bytes());
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("0000000001.record: fenced"));
  EXPECT_EQ((*two)->next_round(), RoundId(1));
  EXPECT_EQ((*two)->WriteStart(Start()).code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(RoundLogTest, FencesTheSecondStart) {
  auto one = Open();
  auto two = Open();
  ASSERT_TRUE((*one)->WriteStart(Start()).ok());
  const absl::Status status = (*two)->WriteStart(Start());
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("fenced"));
}

TEST_F(RoundLogTest, WritesRoundsInTurnOnly) {
  Fill(1);
  auto log = Open();
  EXPECT_EQ((*log)->Begin(RoundId(0)).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ((*log)->Begin(RoundId(2)).status().code(), absl::StatusCode::kFailedPrecondition);
  auto first = (*log)->Begin(RoundId(1));
  ASSERT_TRUE(Write(log->get()).ok());
  EXPECT_EQ((*log)->Commit(*std::move(first), "").code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(RoundLogTest, RefusesAHeaderThatDoesNotBelong) {
  Fill(1);
  auto log = Open();
  const testing::BuiltRound good = Next(**log);
  const auto expect_refused = [&](const testing::BuiltRound& round, const std::string& message) {
    auto writer = (*log)->Begin(RoundId(1));
    for (uint32_t i = 0; i < round.payloads.size(); ++i) {
      ASSERT_TRUE(writer->AddSegment(SegmentId(i), round.payloads[i]).ok());
    }
    const absl::Status status = (*log)->Commit(*std::move(writer), round.header_bytes());
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << message;
    EXPECT_THAT(std::string(status.message()), HasSubstr(message));
  };
  testing::BuiltRound round = good;
  round.header.set_round(2);
  expect_refused(round, "is of round 2");
  round = good;
  round.header.set_predecessor_hash(1);
  expect_refused(round, "predecessor hash");
  round = good;
  round.header.mutable_segments(1)->set_checksum(1);
  expect_refused(round, "segment 1: size or checksum");
  round = good;
  round.payloads.pop_back();
  expect_refused(round, "segment 2: size or checksum");
  round = good;
  round.header.clear_segments();
  expect_refused(round, "segments: 0");
  EXPECT_EQ((*log)->next_round(), RoundId(1));
  EXPECT_TRUE(Write(log->get()).ok());
}

TEST_F(RoundLogTest, RefusesASegmentTwiceEmptyOrUnknown) {
  Fill(0);
  auto log = Open();
  auto writer = (*log)->Begin(RoundId(0));
  ASSERT_TRUE(writer->AddSegment(SegmentId(0), "x").ok());
  EXPECT_EQ(writer->AddSegment(SegmentId(0), "x").code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(writer->AddSegment(SegmentId(1), "").code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(writer->AddSegment(SegmentId(3), "x").code(), absl::StatusCode::kInvalidArgument);
}

// A file size limit stands for a full disk: the write fails in the middle, nothing is published,
// and the same bytes go into a new file once there is room.
TEST_F(RoundLogTest, RetriesFailedWrite) {
  Fill(1);
  auto log = Open();
  struct rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  auto* const old_handler = std::signal(SIGXFSZ, SIG_IGN);
  const testing::BuiltRound round = Next(**log);
  uint64_t payload_bytes = 0;
  for (const std::string& payload : round.payloads) payload_bytes += payload.size();
  for (const uint64_t limit : {uint64_t{20}, 16 + payload_bytes + 30}) {
    struct rlimit small = before;
    small.rlim_cur = limit;
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
    const absl::Status status = Write(log->get());
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
    EXPECT_EQ(FailedDiskOperation(status), DiskOperation::kWrite) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("write"));
    EXPECT_EQ((*log)->next_round(), RoundId(1));
    EXPECT_EQ(FilesThatEndWith(".tmp"), 0);
    EXPECT_EQ(FilesThatEndWith("1.record"), 0);
  }
  std::signal(SIGXFSZ, old_handler);
  ASSERT_TRUE(Write(log->get()).ok());
  EXPECT_EQ((*Open())->HashBefore(RoundId(2)), Xxh3(round.header_bytes()));
}

TEST_F(RoundLogTest, ReportsTheTimeOfEachFsync) {
  Fill(0);
  auto log = Open();
  int fsyncs = 0;
  (*log)->SetFsyncObserver([&](absl::Duration time) {
    EXPECT_GE(time, absl::ZeroDuration());
    ++fsyncs;
  });
  ASSERT_TRUE(Write(log->get()).ok());
  EXPECT_EQ(fsyncs, 2);  // the file and the folder
}

TEST_F(RoundLogTest, CanBeReadWhileItIsWritten) {
  Fill(1);
  auto log = Open();
  std::vector<std::thread> readers;
  for (int r = 0; r < 2; ++r) {
    readers.emplace_back([&] {
      for (uint64_t next = 0; next < 20; next = (*log)->next_round().value()) {
        const RoundId round((*log)->next_round().value() - 1);
        const auto record = (*log)->OpenRecord(round);
        ASSERT_TRUE(record.ok()) << record.status();
        ASSERT_TRUE((*record)->VerifyPayloads().ok());
        ASSERT_EQ(Xxh3((*record)->header_bytes()), (*log)->HashBefore(round.Next()));
      }
    });
  }
  while ((*log)->next_round() < RoundId(20)) EXPECT_TRUE(Write(log->get()).ok());
  for (std::thread& reader : readers) reader.join();
}

}  // namespace
}  // namespace distro::server
