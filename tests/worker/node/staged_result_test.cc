// A round's result on a device whose queues use every freedom (tests/kernels/emulation/device.h).
#include "worker/node/staged_result.h"

#include <gtest/gtest.h>

#include <utility>
#include <variant>

#include "tests/kernels/emulated_cuda.h"
#include "tests/kernels/forwarding_device.h"
#include "tests/testing/round_builder.h"

namespace distro::worker {
namespace {

using distro::testing::BuildDeltaRound;
using distro::testing::BuildRound;
using distro::testing::BuiltRound;
using distro::testing::Committed;
using distro::testing::SmallLayout;

// Counts copies from the host by the memory that they come from.
class CountingDevice final : public distro::testing::ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;

  absl::StatusOr<void*> AllocateHost(size_t bytes) override {
    absl::StatusOr<void*> memory = ForwardingDevice::AllocateHost(bytes);
    if (memory.ok()) locked_ = {static_cast<char*>(*memory), bytes};
    return memory;
  }
  void CopyIn(const void* host, size_t bytes, void* device) override {
    ++in_turn;
    ForwardingDevice::CopyIn(host, bytes, device);
  }
  void CopyInBeside(const void* host, size_t bytes, void* device) override {
    const auto* const begin = static_cast<const char*>(host);
    const bool is_locked = begin >= locked_.data() && begin + bytes <= locked_.end();
    ++(is_locked ? beside : pageable);
    ForwardingDevice::CopyInBeside(host, bytes, device);
  }

  int in_turn = 0, beside = 0, pageable = 0;

 private:
  absl::Span<char> locked_;  // the last one
};

// The arrays of all segments, as enqueued work reads them.
class StagedResultTest : public ::testing::Test {
 protected:
  DecodedRound Decoded(const BuiltRound& round) const {
    return *distro::testing::Decode(layout_, Committed(layout_, round));
  }
  std::vector<SegmentId> AllSegments() const {
    std::vector<SegmentId> order;
    for (uint32_t i = 0; i < layout_.segments(); ++i) order.push_back(SegmentId(i));
    return order;
  }
  template <typename T>
  void Read(absl::Span<const T> on_device, std::vector<T>* to) {
    to->resize(on_device.size());
    device_.CopyOut(on_device.data(), on_device.size() * sizeof(T), to->data());
  }
  std::vector<Votes> ReadVotes(StagedResult* result) { return ReadVotes(result, AllSegments()); }
  std::vector<Votes> ReadVotes(StagedResult* result, const std::vector<SegmentId>& pass) {
    std::vector<Votes> read(layout_.segments());
    for (const SegmentId segment : pass) {
      for (int times = 0; times < 2; ++times) {  // as two tensors that share it ask
        const VotesView view = result->Of<Votes>(segment).view;
        Votes& votes = read[segment.value()];
        Read(view.offsets, &votes.offsets);
        Read(view.positions, &votes.positions);
        Read(view.values, &votes.values);
      }
    }
    EXPECT_TRUE(device_.Finish().ok());
    return read;
  }
  std::vector<DeltaResult> ReadDeltas(StagedResult* result) {
    std::vector<DeltaResult> read(layout_.segments());
    for (const SegmentId segment : AllSegments()) {
      const DeltasView view = result->DeltasOf(segment).view;
      DeltaResult& deltas = read[segment.value()];
      Read(view.offsets, &deltas.offsets);
      Read(view.positions, &deltas.positions);
      Read(view.signs, &deltas.signs);
      Read(view.levels, &deltas.levels);
      Read(view.codes, &deltas.codes);
    }
    EXPECT_TRUE(device_.Finish().ok());
    return read;
  }

  const Layout layout_ = SmallLayout();
  CountingDevice device_{distro::testing::MakeEmulatedGpu()};
};

TEST_F(StagedResultTest, BringsSegmentBeforeItIsRead) {
  StagedResult result(&device_, AllSegments());
  for (const uint64_t seed : {1, 2}) {  // the second round uses the first one's memory
    const DecodedRound decoded = Decoded(BuildRound(layout_, RoundId(seed), 0));
    ASSERT_TRUE(result.Take(&decoded, /*threads=*/2).ok());
    EXPECT_EQ(ReadVotes(&result), std::get<std::vector<Votes>>(decoded));
    const DecodedRound deltas = Decoded(BuildDeltaRound(layout_, RoundId(seed), 0));
    ASSERT_TRUE(result.Take(&deltas, /*threads=*/2).ok());
    EXPECT_EQ(ReadDeltas(&result), std::get<std::vector<DeltaResult>>(deltas));
  }
}

TEST_F(StagedResultTest, CopiesSegmentsOnceFromPinnedMemory) {
  StagedResult result(&device_, AllSegments());
  const DecodedRound decoded = Decoded(BuildRound(layout_, RoundId(1), 0));
  ASSERT_TRUE(result.Take(&decoded, /*threads=*/1).ok());
  ReadVotes(&result);
  EXPECT_EQ(device_.beside, layout_.segments());
  EXPECT_EQ(device_.in_turn, 0);
  EXPECT_EQ(device_.pageable, 0);
}

TEST_F(StagedResultTest, BringsSegmentsTwice) {
  StagedResult result(&device_, AllSegments());
  const DecodedRound decoded = Decoded(BuildRound(layout_, RoundId(1), 0));
  ASSERT_TRUE(result.Take(&decoded, /*threads=*/1).ok());
  for (int pass = 1; pass <= 2; ++pass) {
    EXPECT_EQ(ReadVotes(&result), std::get<std::vector<Votes>>(decoded));
    EXPECT_EQ(device_.beside, pass * layout_.segments());
  }
  EXPECT_EQ(device_.pageable, 0);
}

// They do not include the worker, or another rank has its blocks of them.
TEST_F(StagedResultTest, SkipsSegments) {
  StagedResult result(&device_, AllSegments());
  const DecodedRound decoded = Decoded(BuildRound(layout_, RoundId(1), 0));
  ASSERT_TRUE(result.Take(&decoded, /*threads=*/1).ok());
  const std::vector<SegmentId> all = AllSegments();
  for (const auto& pass :
       std::vector<std::vector<SegmentId>>{{all[0], all[2]}, {all[1]}, {all[0]}}) {
    const std::vector<Votes> read = ReadVotes(&result, pass);
    for (const SegmentId s : pass)
      EXPECT_EQ(read[s.value()], std::get<std::vector<Votes>>(decoded)[s.value()]);
  }
}

TEST_F(StagedResultTest, DiesOnForeignSegment) {
  StagedResult result(&device_, {SegmentId(0), SegmentId(1)});
  const DecodedRound decoded = Decoded(BuildRound(layout_, RoundId(1), 0));
  ASSERT_TRUE(result.Take(&decoded, /*threads=*/1).ok());
  EXPECT_DEATH(result.Of<Votes>(SegmentId(2)), "does not have");
  EXPECT_TRUE(device_.Finish().ok());  // before the result's memory goes
}

TEST_F(StagedResultTest, SharesArraysWithHostDevice) {
  const std::unique_ptr<Device> host = MakeHostDevice();
  StagedResult result(host.get(), AllSegments());
  const DecodedRound decoded = Decoded(BuildRound(layout_, RoundId(1), 0));
  ASSERT_TRUE(result.Take(&decoded, /*threads=*/1).ok());
  EXPECT_EQ(result.Of<Votes>(SegmentId(2)).view.positions.data(),
            std::get<std::vector<Votes>>(decoded)[2].positions.data());
}

}  // namespace
}  // namespace distro::worker
