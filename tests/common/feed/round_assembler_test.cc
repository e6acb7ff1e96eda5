#include "common/feed/round_assembler.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/round_builder.h"

namespace distro {
namespace {

using ::distro::testing::BuildRound;
using ::distro::testing::BuiltRound;
using ::distro::testing::Frames;
using ::distro::testing::MakeSegmentFrame;
using ::distro::testing::SmallLayout;
using ::testing::HasSubstr;
using Frame = v1::SubscribeRoundsResponse;

class RoundAssemblerTest : public ::testing::Test {
 protected:
  static Frame Open(uint64_t round, uint64_t epoch) {
    Frame frame;
    frame.set_round(round);
    frame.set_epoch(epoch);
    *frame.mutable_open()->mutable_step() =
        BuildRound(SmallLayout(), RoundId(round), 1).header.step();
    return frame;
  }

  // Adds frames up to the first error.
  absl::Status AddAll(const std::vector<Frame>& frames) {
    for (const Frame& frame : frames) {
      const auto event = assembler_.Add(frame);
      if (!event.ok()) return event.status();
      if (std::holds_alternative<CommittedRound>(*event)) {
        committed_.push_back(std::get<CommittedRound>(*event));
      }
    }
    return absl::OkStatus();
  }

  void ExpectRefused(const std::vector<Frame>& frames, absl::string_view message) {
    const absl::Status status = AddAll(frames);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << message;
    EXPECT_THAT(std::string(status.message()), HasSubstr(std::string(message)));
    EXPECT_TRUE(committed_.empty());
    EXPECT_EQ(assembler_.next_round(), RoundId(3));
    assembler_ = RoundAssembler(&layout_, RoundId(3));
  }

  const Layout layout_ = SmallLayout();
  const BuiltRound round_ = BuildRound(layout_, RoundId(3), 1);
  RoundAssembler assembler_{&layout_, RoundId(3)};
  std::vector<CommittedRound> committed_;
};

TEST_F(RoundAssemblerTest, GivesTheRoundThatWasSent) {
  ASSERT_TRUE(AddAll(Frames(round_)).ok());
  ASSERT_EQ(committed_.size(), 1);
  for (size_t i = 0; i < round_.payloads.size(); ++i) {
    EXPECT_EQ(*committed_[0].payloads[i], round_.payloads[i]);
  }
  EXPECT_EQ(committed_[0].header->SerializeAsString(), round_.header_bytes());
  EXPECT_EQ(assembler_.next_round(), RoundId(4));
  EXPECT_TRUE(AddAll(Frames(BuildRound(layout_, RoundId(4), committed_[0].hash))).ok());
  EXPECT_EQ(assembler_.next_round(), RoundId(5));
}

TEST_F(RoundAssemblerTest, TakesSegmentsInAnyOrder) {
  std::vector<Frame> frames = Frames(round_);
  std::reverse(frames.begin(), frames.end() - 1);
  EXPECT_TRUE(AddAll(frames).ok());
  EXPECT_EQ(committed_.size(), 1);
}

TEST_F(RoundAssemblerTest, TakesPayloadsInManySmallFramesThatInterleave) {
  std::vector<Frame> frames;
  const Frame commit = Frames(round_).back();
  for (size_t at = 0; at < 1000; at += 7) {
    for (uint32_t i = 0; i < round_.payloads.size(); ++i) {
      const std::string& payload = round_.payloads[i];
      if (at >= payload.size()) continue;
      frames.push_back(commit);
      *frames.back().mutable_segment() = MakeSegmentFrame(SegmentId(i), at, payload.size(),
                                                          absl::string_view(payload).substr(at, 7));
    }
  }
  frames.push_back(commit);
  EXPECT_TRUE(AddAll(frames).ok());
  EXPECT_EQ(committed_.size(), 1);
}

TEST_F(RoundAssemblerTest, AnnouncesAnOpenedRound) {
  const auto event = assembler_.Add(Open(3, 5));
  ASSERT_TRUE(event.ok()) << event.status();
  ASSERT_TRUE(std::holds_alternative<OpenedRound>(*event));
  EXPECT_EQ(std::get<OpenedRound>(*event).epoch, EpochId(5));
  EXPECT_EQ(std::get<OpenedRound>(*event).round, RoundId(3));
  EXPECT_EQ(std::get<OpenedRound>(*event).open.step().kept_per_block(), 4);
}

TEST_F(RoundAssemblerTest, RefusesABadOpen) {
  ExpectRefused({Open(3, 1), Open(3, 1)}, "round 3: open: comes twice");
  ExpectRefused({Frames(round_)[0], Open(3, 1)}, "round 3: open: comes after a segment");
  Frame frame = Open(3, 1);
  frame.mutable_open()->mutable_step()->set_beta(2);
  ExpectRefused({frame}, "round 3: open: step: beta");
  frame = Open(3, 1);
  frame.mutable_open()->mutable_deadline()->set_seconds(-1);
  ExpectRefused({frame}, "round 3: open: deadline");
  frame = Open(3, 1);
  frame.mutable_open()->add_slots()->set_worker("a");
  ExpectRefused({frame}, "round 3: open: slots: a: 0 samples");
}

TEST_F(RoundAssemblerTest, RefusesFramesOfOtherRounds) {
  ExpectRefused(Frames(BuildRound(layout_, RoundId(2), 1)), "round 2 where 3 is expected");
  ExpectRefused(Frames(BuildRound(layout_, RoundId(4), 1)), "round 4 where 3 is expected");
  std::vector<Frame> frames = Frames(round_);
  BuiltRound other = round_;
  other.header.set_round(4);
  frames.back().mutable_commit()->set_header(other.header_bytes());
  ExpectRefused(frames, "round 3: the commit's header is of round 4");
  Frame empty = Frames(round_)[0];
  empty.clear_frame();
  ExpectRefused({empty}, "round 3: the frame is empty");
}

TEST_F(RoundAssemblerTest, RefusesSegmentFramesThatDoNotFit) {
  std::vector<Frame> frames = Frames(round_);
  ExpectRefused({frames[0], frames[0]}, "round 3: segment 0: offset");
  Frame frame = frames[0];
  frame.mutable_segment()->set_segment(3);
  ExpectRefused({frame}, "round 3: segment 3: the layout has 3");
  frame = frames[0];
  frame.mutable_segment()->clear_data();
  ExpectRefused({frame}, "round 3: segment 0: data");
  frame = frames[0];
  frame.mutable_segment()->set_payload_bytes(uint64_t{1} << 50);
  ExpectRefused({frame}, "round 3: segment 0: payload_bytes");
  frame = frames[0];
  frame.mutable_segment()->set_data(frame.segment().data() + "x");
  ExpectRefused({frame}, "round 3: segment 0: data");
  frame = frames[0];
  frame.mutable_segment()->set_payload_bytes(600 * 1024);
  frame.mutable_segment()->set_data(std::string(512 * 1024 + 1, 'x'));
  ExpectRefused({frame}, "round 3: segment 0: ");
}

TEST_F(RoundAssemblerTest, RefusesACommitBeforeEverySegmentIsThere) {
  const std::vector<Frame> frames = Frames(round_);
  for (size_t missing = 0; missing + 1 < frames.size(); ++missing) {
    std::vector<Frame> rest = frames;
    rest.erase(rest.begin() + missing);
    ExpectRefused(rest, absl::StrCat("round 3: segment ", missing, ": the payload is missing"));
  }
  ExpectRefused({frames.back()}, "round 3: segment 0: the payload is missing");
}

TEST_F(RoundAssemblerTest, FlippedPayloadBytesNeverBecomeARound) {
  for (int segment = 0; segment < 3; ++segment) {
    for (size_t i = 0; i < round_.payloads[segment].size(); ++i) {
      std::vector<Frame> frames = Frames(round_);
      (*frames[segment].mutable_segment()->mutable_data())[i] ^= 0x10;
      ExpectRefused(frames, absl::StrCat("segment ", segment, ": the payload's checksum"));
    }
  }
}

// Every bit of every serialized frame: an error, or a round whose payloads are the ones that were
// sent.
TEST_F(RoundAssemblerTest, FlippedFramesNeverChangeAPayload) {
  const std::vector<Frame> frames = Frames(round_);
  for (size_t f = 0; f < frames.size(); ++f) {
    const std::string bytes = frames[f].SerializeAsString();
    for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
      std::string flipped = bytes;
      flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
      std::vector<Frame> damaged = frames;
      if (!damaged[f].ParseFromString(flipped)) continue;
      assembler_ = RoundAssembler(&layout_, RoundId(3));
      committed_.clear();
      if (!AddAll(damaged).ok()) continue;
      for (const CommittedRound& round : committed_) {
        for (int i = 0; i < 3; ++i) ASSERT_EQ(*round.payloads[i], round_.payloads[i]);
      }
    }
  }
}

TEST_F(RoundAssemblerTest, DropsStagedOnHigherEpoch) {
  const std::vector<Frame> old = Frames(round_, EpochId(1));
  ASSERT_TRUE(AddAll({Open(3, 1), old[0], old[1]}).ok());
  // The new epoch opens the round again and sends all of it.
  const BuiltRound again = BuildRound(layout_, RoundId(3), 1, EpochId(2));
  ASSERT_TRUE(AddAll({Open(3, 2)}).ok());
  ASSERT_TRUE(AddAll(Frames(again, EpochId(2))).ok());
  EXPECT_EQ(committed_.size(), 1);
}

TEST_F(RoundAssemblerTest, StagedSegmentsOfAnOldEpochAreNotUsed) {
  const std::vector<Frame> old = Frames(round_, EpochId(1));
  ASSERT_TRUE(AddAll({old[0], old[1], old[2]}).ok());
  const std::vector<Frame> commit = {Frames(round_, EpochId(2)).back()};
  ExpectRefused(commit, "round 3: segment 0: the payload is missing");
}

TEST_F(RoundAssemblerTest, FencesLowerEpoch) {
  ASSERT_TRUE(AddAll({Open(3, 2)}).ok());
  const absl::Status status = AddAll({Frames(round_, EpochId(1))[0]});
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("fenced"));
}

TEST_F(RoundAssemblerTest, RefusesImpossibleEpochs) {
  ExpectRefused({Open(3, 0)}, "epoch: is 0");
  const BuiltRound later = BuildRound(layout_, RoundId(3), 1, EpochId(9));
  ExpectRefused(Frames(later, EpochId(8)), "header of epoch 9 in a frame of epoch 8");
  ASSERT_TRUE(AddAll(Frames(later, EpochId(10))).ok());
}

// Gives the payloads of a round, or fails.
class RoundObjects final : public ObjectSource {
 public:
  explicit RoundObjects(const BuiltRound* round) : round_(round) {}
  absl::StatusOr<SharedBytes> Fetch(RoundId round, const v1::SegmentObject& object) override {
    EXPECT_EQ(round, RoundId(round_->header.round()));
    ++fetched;
    if (!fails.ok()) return fails;
    return std::make_shared<const std::string>(round_->payloads[object.segment()]);
  }

  absl::Status fails;
  int fetched = 0;

 private:
  const BuiltRound* const round_;
};

class ObjectAssemblerTest : public RoundAssemblerTest {
 protected:
  ObjectAssemblerTest() { assembler_ = RoundAssembler(&layout_, RoundId(3), &objects_); }
  // The frames of round_ with objects, and the commit.
  std::vector<Frame> ObjectFrames() const {
    std::vector<Frame> frames(round_.payloads.size(), Frames(round_).back());
    for (int i = 0; i < round_.header.segments_size(); ++i) {
      v1::SegmentObject* const object = frames[i].mutable_object();
      object->set_segment(i);
      object->set_payload_bytes(round_.payloads[i].size());
      object->set_sha256(round_.header.segments(i).sha256());
    }
    frames.push_back(Frames(round_).back());
    return frames;
  }
  void ExpectRefusedObjects(const std::vector<Frame>& frames, absl::string_view message) {
    ExpectRefused(frames, message);
    assembler_ = RoundAssembler(&layout_, RoundId(3), &objects_);
  }

  RoundObjects objects_{&round_};
};

TEST_F(ObjectAssemblerTest, GivesTheRoundThatWasFetched) {
  ASSERT_TRUE(AddAll(ObjectFrames()).ok());
  ASSERT_EQ(committed_.size(), 1u);
  for (size_t i = 0; i < round_.payloads.size(); ++i)
    EXPECT_EQ(*committed_[0].payloads[i], round_.payloads[i]);
}

TEST_F(ObjectAssemblerTest, TakesSomeSegmentsFromFrames) {
  std::vector<Frame> frames = ObjectFrames();
  frames[1] = Frames(round_)[1];
  EXPECT_TRUE(AddAll(frames).ok());
  EXPECT_EQ(objects_.fetched, 2);
}

TEST_F(ObjectAssemblerTest, PassesOnWhyItCouldNotBeFetched) {
  for (const absl::Status& status :
       {absl::UnavailableError("no mirror"), absl::CancelledError("closing")}) {
    objects_.fails = status;
    EXPECT_EQ(AddAll(ObjectFrames()).code(), status.code());
    EXPECT_EQ(assembler_.next_round(), RoundId(3));
  }
}

TEST_F(ObjectAssemblerTest, ComparesWhatWasFetchedWithTheHeader) {
  BuiltRound other = BuildRound(layout_, RoundId(3), 4711);
  std::swap(other.payloads[0], other.payloads[1]);
  RoundObjects wrong(&other);
  assembler_ = RoundAssembler(&layout_, RoundId(3), &wrong);
  ExpectRefusedObjects(ObjectFrames(), "round 3: segment 0: the payload");
}

TEST_F(ObjectAssemblerTest, RefusesObjectsThatDoNotFit) {
  const std::vector<Frame> frames = ObjectFrames();
  ExpectRefusedObjects({frames[0], frames[0]}, "round 3: segment 0: comes after its object");
  ExpectRefusedObjects({frames[0], Frames(round_)[0]},
                       "round 3: segment 0: comes after its object");
  ExpectRefusedObjects({Frames(round_)[0], frames[0]},
                       "round 3: segment 0: the object comes after frames");
  const int fetched = objects_.fetched;
  Frame frame = frames[0];
  frame.mutable_object()->set_segment(3);
  ExpectRefusedObjects({frame}, "round 3: segment 3: the layout has 3");
  frame = frames[0];
  frame.mutable_object()->set_payload_bytes(uint64_t{1} << 50);
  ExpectRefusedObjects({frame}, "round 3: segment 0: payload_bytes");
  frame = frames[0];
  frame.mutable_object()->clear_payload_bytes();
  ExpectRefusedObjects({frame}, "round 3: segment 0: payload_bytes");
  frame = frames[0];
  frame.mutable_object()->set_sha256(std::string(31, 'x'));
  ExpectRefusedObjects({frame}, "round 3: segment 0: sha256: 31 bytes");
  assembler_ = RoundAssembler(&layout_, RoundId(3));
  ExpectRefused({frames[0]}, "round 3: segment 0: an object was not asked for");
  EXPECT_EQ(objects_.fetched, fetched) << "nothing is fetched that does not fit";
}

}  // namespace
}  // namespace distro
