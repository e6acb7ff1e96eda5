// Checks of a pending update of deltas that is read from a file with correct checksums.
#include <cstdint>
#include <cstring>

#include "gtest/gtest.h"
#include "tests/testing/worker/delta_worker.h"

namespace distro::worker {
namespace {

using testing::DeltaWorker;
using testing::kSmallLlama;

class PendingDeltasTest : public ::testing::Test {
 protected:
  PendingDeltasTest() {
    worker_.TakeRound(RoundId(4), /*seed=*/1);
    segment_ = worker_.pending().segments[1];
  }
  uint16_t Position(size_t i) const {
    uint16_t position = 0;
    std::memcpy(&position, segment_[0].data() + i * sizeof(position), sizeof(position));
    return position;
  }
  void SetPosition(size_t i, int to) {
    const auto position = static_cast<uint16_t>(to);
    std::memcpy(segment_[0].data() + i * sizeof(position), &position, sizeof(position));
  }
  absl::StatusCode Checked() const { return worker_.kind.check(3, Borrow(segment_)).code(); }

  DeltaWorker worker_{kSmallLlama, /*segment_blocks=*/3};
  BlockBytes segment_;  // three blocks of K = 3
};

TEST_F(PendingDeltasTest, IsValidFromRule) {
  EXPECT_EQ(Checked(), absl::StatusCode::kOk);
  for (const BlockBytes& segment : worker_.pending().segments)
    EXPECT_EQ(worker_.kind.check(3, Borrow(segment)), absl::OkStatus());
}

TEST_F(PendingDeltasTest, PositionsAscendInsideTheBlock) {
  const uint16_t second = Position(4);
  for (const int bad : {int{Position(3)}, Position(3) - 1, 4096, 65535}) {
    SetPosition(4, bad);
    EXPECT_EQ(Checked(), absl::StatusCode::kInvalidArgument) << bad;
  }
  SetPosition(4, second);
  EXPECT_EQ(Checked(), absl::StatusCode::kOk);
}

TEST_F(PendingDeltasTest, SignsAreOneOrMinusOne) {
  for (const size_t entry : {3, 4, 5}) {
    const char sign = segment_[1][entry];
    for (const char bad : {0, 2, -2, 127}) {
      segment_[1][entry] = bad;
      EXPECT_EQ(Checked(), absl::StatusCode::kInvalidArgument) << entry;
    }
    segment_[1][entry] = sign;
  }
}

TEST_F(PendingDeltasTest, IsZeroIfEmpty) {
  segment_[0].replace(3 * 2, 3 * 2, 3 * 2, '\0');
  segment_[1].replace(3, 3, 3, '\0');
  segment_[2][1] = 0;
  EXPECT_EQ(Checked(), absl::StatusCode::kOk);
  segment_[2][1] = 9;
  EXPECT_EQ(Checked(), absl::StatusCode::kInvalidArgument);
  segment_[2][1] = 0;
  SetPosition(5, 1);
  EXPECT_EQ(Checked(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace distro::worker
