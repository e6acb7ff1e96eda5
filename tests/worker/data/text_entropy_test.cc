#include "worker/data/text_entropy.h"

#include <cmath>
#include <string>

#include "gtest/gtest.h"

namespace distro::worker {
namespace {

TEST(TextFloorTest, CountsWithOneAdded) {
  // Training: a 2, b 2 of 4; after a always b (twice), after b once a. Held out: b then a.
  const auto floor = ComputeTextFloor("abab", "ba");
  ASSERT_TRUE(floor.ok()) << floor.status();
  EXPECT_DOUBLE_EQ(floor->byte_entropy, std::log(260.0 / 3));
  EXPECT_DOUBLE_EQ(floor->bigram_cross_entropy, std::log(257.0 / 2));
}

TEST(TextFloorTest, WithoutTrainingTextEveryByteIsEquallyLikely) {
  const auto floor = ComputeTextFloor("", "some text \xff");
  ASSERT_TRUE(floor.ok()) << floor.status();
  EXPECT_NEAR(floor->byte_entropy, std::log(256.0), 1e-12);
  EXPECT_NEAR(floor->bigram_cross_entropy, std::log(256.0), 1e-12);
}

TEST(TextFloorTest, OrderLowersTheBigramFloorOnly) {
  std::string text;
  for (int i = 0; i < 20000; ++i) text += static_cast<char>('a' + i % 16);
  const auto floor = ComputeTextFloor(text, text);
  ASSERT_TRUE(floor.ok()) << floor.status();
  EXPECT_NEAR(floor->byte_entropy, std::log(16.0), 0.05);
  EXPECT_LT(floor->bigram_cross_entropy, 0.25);
}

TEST(TextFloorTest, RefusesTextWithNothingToPredict) {
  EXPECT_EQ(ComputeTextFloor("abc", "a").status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace distro::worker
