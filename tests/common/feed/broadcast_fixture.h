// Sends rounds from a log and a broadcast to subscriptions, without a manager.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "common/base/file.h"
#include "common/feed/broadcast.h"
#include "common/feed/frame_ring.h"
#include "common/feed/subscription.h"
#include "gtest/gtest.h"
#include "server/log/record_format.h"
#include "server/log/served_log.h"
#include "tests/server/round/run_fixture.h"
#include "tests/testing/scratch_folder.h"

namespace distro::testing {

class BroadcastTest : public ::testing::Test {
 protected:
  // How many records are known to be damaged.
  uint64_t Damaged() const {
    return damaged_.Count([](RoundId) { return true; });
  }
  BroadcastTest() {
    log_file_ =
        *server::RoundLog::Open(folder_.File("rounds"), &layout_, 0, server::Disk::Real(), &log_);
    EXPECT_TRUE(log_file_->WriteStart({}).ok());
  }
  std::unique_ptr<Subscription> Subscribe(Broadcast* broadcast, uint64_t from,
                                          const std::string& name = "a",
                                          std::weak_ptr<Listener> listener = {},
                                          bool objects = false) {
    auto subscriber = std::make_shared<Subscriber>();
    subscriber->worker = name;
    subscriber->objects = objects;
    auto subscription = std::make_unique<Subscription>(
        subscriber, broadcast, std::make_unique<server::ServedLog>(log_file_.get(), &damaged_),
        layout_.segments(), EpochId(1), RoundId(from));
    subscription->Listen(std::move(listener));
    return subscription;
  }
  // Round r as the manager publishes it: open, segments, and the commit after the log has it.
  void OpenRound(Broadcast* broadcast, uint64_t r) {
    round_ = BuildRound(layout_, RoundId(r), log_file_->HashBefore(RoundId(r)));
    broadcast->Open(MakeOpenFrame(EpochId(1), RoundId(r), {}));
  }
  // As an aggregator that serves objects.
  void SendObject(Broadcast* broadcast, uint64_t r, uint32_t segment) {
    const v1::CommittedSegment& listed = round_.header.segments(static_cast<int>(segment));
    broadcast->Add({MakeObjectFrame(EpochId(1), RoundId(r), SegmentId(segment),
                                    listed.payload_bytes(), listed.sha256())});
  }
  void SendSegment(Broadcast* broadcast, uint64_t r, uint32_t segment) {
    broadcast->Add(
        MakeSegmentFrames(EpochId(1), RoundId(r), SegmentId(segment), round_.payloads[segment]));
  }
  void CommitRound(Broadcast* broadcast, uint64_t r) {
    auto writer = *log_file_->Begin(RoundId(r));
    for (uint32_t s = 0; s < layout_.segments(); ++s)
      ASSERT_TRUE(writer.AddSegment(SegmentId(s), round_.payloads[s]).ok());
    ASSERT_TRUE(log_file_->Commit(std::move(writer), round_.header_bytes()).ok());
    broadcast->Commit(MakeCommitFrame(EpochId(1), RoundId(r), round_.header_bytes()));
  }
  void WholeRound(Broadcast* broadcast, uint64_t r) {
    OpenRound(broadcast, r);
    for (const uint32_t s : {2u, 0u, 1u}) SendSegment(broadcast, r, s);
    CommitRound(broadcast, r);
  }
  void WholeRoundWithObjects(Broadcast* broadcast, uint64_t r) {
    OpenRound(broadcast, r);
    for (const uint32_t s : {2u, 0u, 1u}) {
      SendObject(broadcast, r, s);
      SendSegment(broadcast, r, s);
    }
    CommitRound(broadcast, r);
  }
  // Reads the available frames; one character for each: o, the segment's number, c. The number of
  // an object comes after "@".
  std::string Drain(Subscription* subscription) {
    std::string kinds;
    while (true) {
      const auto next = subscription->Next();
      if (!next.ok()) return kinds + "!";
      if (*next == nullptr) return kinds;
      v1::SubscribeRoundsResponse frame;
      EXPECT_TRUE(frame.ParseFromString(**next));
      kinds += frame.has_open()     ? "o"
               : frame.has_commit() ? "c"
               : frame.has_object() ? absl::StrCat("@", frame.object().segment())
                                    : absl::StrCat(frame.segment().segment());
    }
  }

  // Changes one byte of a record's payload, or changes it back.
  void Flip(uint64_t r, uint32_t segment, uint64_t at = 0) {
    const std::string path = folder_.File("rounds/" + server::RecordName(RoundId(r)));
    const auto record = *server::RecordReader::Open(path, server::RecordKind::kRound);
    std::string bytes = *ReadFile(path);
    bytes.at(record->entries()[segment].offset + at) ^= 1;
    ASSERT_TRUE(WriteFileAtomically(path, bytes).ok());
  }
  int Lines(const std::string& text) const {
    return static_cast<int>(std::ranges::count_if(
        lines_, [&](const std::string& line) { return absl::StrContains(line, text); }));
  }

  ScratchFolder folder_;
  Layout layout_ = SmallLayout();
  std::vector<std::string> lines_;
  Log log_{LogLevel::kInfo, Clock::Real(),
           [this](absl::string_view line) { lines_.emplace_back(line); }};
  std::unique_ptr<server::RoundLog> log_file_;
  BuiltRound round_;
  server::DamagedRecords damaged_{&log_};
};

}  // namespace distro::testing
