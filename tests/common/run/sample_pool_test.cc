#include "common/run/sample_pool.h"

#include <random>
#include <set>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace distro {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Ranges = std::vector<std::pair<uint64_t, uint64_t>>;

Ranges Pairs(const google::protobuf::RepeatedPtrField<v1::SampleRange>& ranges) {
  Ranges pairs;
  for (const v1::SampleRange& range : ranges)
    pairs.emplace_back(range.first_sample(), range.samples());
  return pairs;
}
Ranges Of(const v1::Slot& slot) { return Pairs(RangesOf(slot)); }
Ranges UnreadOf(const SamplePool& pool) { return Pairs(pool.Unread()); }

std::vector<uint64_t> IndicesOf(const v1::Slot& slot) {
  std::vector<uint64_t> indices;
  ForEachRange(slot, [&](uint64_t first, uint64_t samples) {
    for (uint64_t i = 0; i < samples; ++i) indices.push_back(first + i);
  });
  return indices;
}

TEST(SamplePoolTest, GivesOutFromTheFirstIndexOn) {
  SamplePool pool({}, 100);
  EXPECT_EQ(Of(pool.Take("a", 8)), (Ranges{{100, 8}}));
  EXPECT_EQ(Of(pool.Take("b", 4)), (Ranges{{108, 4}}));
  EXPECT_EQ(pool.next_sample(), 112u);
  EXPECT_THAT(UnreadOf(pool), IsEmpty());
}

TEST(SamplePoolTest, GivesReturnedFirst) {
  SamplePool pool;
  const v1::Slot a = pool.Take("a", 8), b = pool.Take("b", 8), c = pool.Take("c", 8);
  pool.GiveBack(c, 6);
  pool.GiveBack(a, 2);
  EXPECT_EQ(UnreadOf(pool), (Ranges{{2, 6}, {22, 2}}));
  EXPECT_EQ(Of(pool.Take("b", 7)), (Ranges{{2, 6}, {22, 1}}));
  EXPECT_EQ(Of(pool.Take("d", 3)), (Ranges{{23, 1}, {24, 2}}));
  EXPECT_EQ(pool.next_sample(), 26u);
}

TEST(SamplePoolTest, NeighboursAreJoined) {
  SamplePool pool;
  std::vector<v1::Slot> slots;
  for (int i = 0; i < 5; ++i) slots.push_back(pool.Take("w", 4));
  for (const int i : {0, 4, 2, 3, 1}) pool.GiveBack(slots[i], 0);
  EXPECT_EQ(UnreadOf(pool), (Ranges{{0, 20}}));
}

TEST(SamplePoolTest, TakesNothingBackOfReadSlot) {
  SamplePool pool;
  pool.GiveBack(pool.Take("a", 8), 8);
  EXPECT_THAT(UnreadOf(pool), IsEmpty());
}

TEST(SamplePoolTest, GoesOnFromWhatARecordLists) {
  SamplePool pool;
  const v1::Slot a = pool.Take("a", 8);
  pool.Take("b", 8);
  pool.GiveBack(a, 3);
  SamplePool later(pool.Unread(), pool.next_sample());
  EXPECT_EQ(later.Take("c", 12).SerializeAsString(), pool.Take("c", 12).SerializeAsString());
}

TEST(SlotTest, CutsPart) {
  SamplePool pool;
  const v1::Slot a = pool.Take("a", 6);
  pool.Take("b", 6);
  pool.GiveBack(a, 2);
  const v1::Slot slot = pool.Take("c", 10);  // 2..5, 12..17
  EXPECT_EQ(SamplesOf(slot), 10u);
  EXPECT_EQ(Of(PartOf(slot, 0, 4)), (Ranges{{2, 4}}));
  EXPECT_EQ(Of(PartOf(slot, 3, 3)), (Ranges{{5, 1}, {12, 2}}));
  EXPECT_EQ(Of(PartOf(slot, 9, 1)), (Ranges{{17, 1}}));
  EXPECT_EQ(PartOf(slot, 9, 1).worker(), "c");
  EXPECT_THAT(IndicesOf(slot), ElementsAre(2, 3, 4, 5, 12, 13, 14, 15, 16, 17));
}

// Two rounds are out while a third is given; workers read a part, all or nothing of what they have.
TEST(SamplePoolTest, GivesSamplesOnceInFewRanges) {
  constexpr int kWorkers = 7, kSteps = 6, kStep = 4;
  std::mt19937 random(1);
  SamplePool pool;
  std::multiset<uint64_t> read;
  std::vector<std::vector<v1::Slot>> out(2);
  for (int round = 0; round < 300; ++round) {
    for (const v1::Slot& slot : out[round % 2]) {
      const uint64_t steps = round < 290 ? random() % (kSteps + 1) : kSteps;
      const std::vector<uint64_t> indices = IndicesOf(slot);
      read.insert(indices.begin(), indices.begin() + static_cast<std::ptrdiff_t>(steps * kStep));
      pool.GiveBack(slot, steps * kStep);
    }
    out[round % 2].clear();
    const uint64_t workers = round < 288 ? 1 + random() % kWorkers : kWorkers;
    size_t ranges = 0;
    for (uint64_t w = 0; w < workers; ++w) {
      out[round % 2].push_back(pool.Take("w", kSteps * kStep));
      ranges += Of(out[round % 2].back()).size();
    }
    EXPECT_LE(ranges + UnreadOf(pool).size(), size_t{2 * kWorkers * kSteps}) << round;
  }
  uint64_t missing = 0;
  for (uint64_t i = 0; i < pool.next_sample(); ++i) {
    EXPECT_LE(read.count(i), 1u) << i;
    missing += read.count(i) == 0;
  }
  EXPECT_LE(missing, uint64_t{2 * kWorkers * kSteps * kStep}) << "what two rounds have";
}

}  // namespace
}  // namespace distro
