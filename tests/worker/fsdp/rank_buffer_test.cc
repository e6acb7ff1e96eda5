#include "worker/fsdp/rank_buffer.h"

#include <cstdint>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

// Sanitizers end the program when an allocation is too large for them; the last test wants the
// error that follows.
extern "C" const char* __asan_default_options() { return "allocator_may_return_null=1"; }
extern "C" const char* __tsan_default_options() { return "allocator_may_return_null=1"; }

namespace distro::worker {
namespace {

using ::testing::HasSubstr;

TEST(MemoryCounterTest, KeepsThePeakOfEachCategory) {
  MemoryCounter counter;
  counter.Add(MemoryCategory::kGradients, 10);
  counter.Remove(MemoryCategory::kGradients, 10);
  counter.Add(MemoryCategory::kGathered, 7);
  EXPECT_EQ(counter.now(MemoryCategory::kGradients), 0);
  EXPECT_EQ(counter.peak(MemoryCategory::kGradients), 10);
  EXPECT_EQ(counter.peak(MemoryCategory::kGathered), 7);
}

TEST(RankBufferTest, IsZeroAlignedAndCountedWhileItLives) {
  MemoryCounter counter;
  {
    RankBuffer buffer =
        RankBuffer::Create(MemoryCategory::kMomentum, 33, at::kCPU, &counter).value();
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.floats().data()) % 64, 0u);
    EXPECT_THAT(buffer.floats(), ::testing::Each(0.0f));
    const RankBuffer moved = std::move(buffer);
    EXPECT_EQ(moved.elements(), 33);
    EXPECT_EQ(counter.now(MemoryCategory::kMomentum), 132);
  }
  EXPECT_EQ(counter.now(MemoryCategory::kMomentum), 0);
  EXPECT_EQ(counter.peak(MemoryCategory::kMomentum), 132);
}

TEST(RankBufferTest, MayBeEmpty) {
  MemoryCounter counter;
  RankBuffer buffer = RankBuffer::Create(MemoryCategory::kMomentum, 0, at::kCPU, &counter).value();
  EXPECT_TRUE(buffer.floats().empty());
}

TEST(RankBufferTest, KeepsAndClearsMemoryThatItIsGiven) {
  MemoryCounter counter;
  const auto floats = std::make_shared<std::vector<float>>(33, 1.0f);
  {
    const RankBuffer buffer =
        RankBuffer::Of(MemoryCategory::kMomentum, absl::MakeSpan(*floats), floats, &counter);
    EXPECT_EQ(floats.use_count(), 2);
    EXPECT_EQ(buffer.floats().data(), floats->data());
    EXPECT_THAT(*floats, ::testing::Each(0.0f));
    EXPECT_EQ(counter.now(MemoryCategory::kMomentum), 132);
  }
  EXPECT_EQ(floats.use_count(), 1);
  EXPECT_EQ(counter.now(MemoryCategory::kMomentum), 0);
}

TEST(RankBufferTest, NamesTheCategoryThatHasNoMemory) {
  MemoryCounter counter;
  const auto buffer =
      RankBuffer::Create(MemoryCategory::kMomentum, int64_t{1} << 48, at::kCPU, &counter);
  EXPECT_EQ(buffer.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(buffer.status().message(), HasSubstr("momentum"));
  EXPECT_EQ(counter.now(MemoryCategory::kMomentum), 0);
}

}  // namespace
}  // namespace distro::worker
