#include "server/round/closing.h"

#include "common/base/checksum.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/round/run_fixture.h"

namespace distro::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class ClosingTest : public ::testing::Test {
 protected:
  ClosingTest() {
    for (const char* name : {"a", "b"}) {
      v1::UploadHeader header;
      header.mutable_worker()->set_name(name);
      header.mutable_worker()->set_incarnation(1);
      EXPECT_TRUE(round_.BeginUpload(header, Restrictions{}).ok());
      for (const uint32_t s : {0u, 1u}) Put(header.worker(), s);
    }
  }
  void Put(const v1::WorkerIdentity& worker, uint32_t segment) {
    EXPECT_TRUE(round_
                    .Put(worker, SegmentId(segment),
                         ReceivedPayload(testing::UpdatePayload(*run_->layout, RoundId(4),
                                                                SegmentId(segment), 1)),
                         absl::Seconds(segment))
                    .ok());
  }
  static std::vector<v1::Slot> Slots() {
    std::vector<v1::Slot> slots(2);
    slots[0].set_worker("a");
    slots[1].set_worker("b");
    return slots;
  }

  std::shared_ptr<const RunIdentity> run_ = testing::SmallRun(testing::SmallConfig());
  Round round_{RoundId(4), run_->layout->segments(), Slots(), absl::Seconds(0), SegmentId(1)};
  std::vector<ClosedSegment> closed_;
};

TEST_F(ClosingTest, TakesSegmentsOutOfRound) {
  EXPECT_THAT(CloseSegments({SegmentId(1), SegmentId(0)}, &round_, &closed_), IsEmpty());
  ASSERT_THAT(closed_, SizeIs(2));
  EXPECT_EQ(closed_[0].last_in, absl::Seconds(1));
  EXPECT_THAT(closed_[0].payloads, SizeIs(2));
  EXPECT_THAT(closed_[0].audited, SizeIs(2));
  EXPECT_THAT(closed_[1].audited, IsEmpty());
}

TEST_F(ClosingTest, ResultsComeInTheGivenOrderAndAnErrorEndsThem) {
  CloseSegments({SegmentId(1), SegmentId(0)}, &round_, &closed_);
  std::vector<uint32_t> done;
  const absl::Status status =
      CombineClosed(*run_, RoundId(4), closed_, *Clock::Real(),
                    [&](const ClosedSegment& closed, const SegmentResult& result) {
                      done.push_back(closed.segment.value());
                      EXPECT_EQ(result.checksum, Xxh3(*result.payload));
                      return done.size() == 2 ? absl::AbortedError("enough") : absl::OkStatus();
                    });
  EXPECT_TRUE(absl::IsAborted(status));
  EXPECT_THAT(done, ElementsAre(1, 0));
}

TEST_F(ClosingTest, CallsBadPayloadDataLoss) {
  CloseSegments({SegmentId(0)}, &round_, &closed_);
  closed_[0].payloads[1].bytes = std::make_shared<const std::string>("not an update");
  const absl::Status status = CombineClosed(*run_, RoundId(4), closed_, *Clock::Real(),
                                            [](const ClosedSegment&, const SegmentResult&) {
                                              ADD_FAILURE() << "there is no result";
                                              return absl::OkStatus();
                                            });
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
}

}  // namespace
}  // namespace distro::server
