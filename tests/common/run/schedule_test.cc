#include "common/run/schedule.h"

#include "gtest/gtest.h"

namespace distro {
namespace {

TEST(AssignSlotsTest, GivesConsecutiveSamplesInTheOrderOfNames) {
  SamplePool pool({}, 100);
  const std::vector<v1::Slot> slots = AssignSlots({"a", "b", "c"}, 4, 8, &pool);
  ASSERT_EQ(slots.size(), 3);
  EXPECT_EQ(slots[0].worker(), "a");
  EXPECT_EQ(slots[0].first_sample(), 100);
  EXPECT_EQ(slots[1].worker(), "b");
  EXPECT_EQ(slots[1].first_sample(), 108);
  EXPECT_EQ(slots[2].first_sample(), 116);
  EXPECT_EQ(slots[2].samples(), 8);
  EXPECT_EQ(pool.next_sample(), 124);
}

TEST(AssignSlotsTest, RotatesWhoGetsReturned) {
  for (const uint64_t round : {3, 4, 5}) {
    SamplePool pool({}, 100);
    pool.GiveBack(ConsecutiveSamples(0, 8), 0);
    const std::vector<v1::Slot> slots = AssignSlots({"a", "b", "c"}, round, 8, &pool);
    for (size_t i = 0; i < slots.size(); ++i) {
      EXPECT_EQ(slots[i].worker(), std::string(1, static_cast<char>('a' + i)));
      EXPECT_EQ(slots[i].first_sample() == 0, i == round % 3);
    }
  }
}

TEST(AssignSlotsTest, GivesNothingToNobody) {
  SamplePool pool({}, 7);
  EXPECT_TRUE(AssignSlots({}, 4, 8, &pool).empty());
  EXPECT_EQ(pool.next_sample(), 7);
}

}  // namespace
}  // namespace distro
