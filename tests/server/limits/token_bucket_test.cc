#include "server/limits/token_bucket.h"

#include "gtest/gtest.h"

namespace distro::server {
namespace {

constexpr absl::Duration kNone = absl::ZeroDuration();

TEST(TokenBucketTest, GivesABurstAndThenTheRate) {
  TokenBucket bucket(100, 400, absl::Seconds(5));
  EXPECT_EQ(bucket.Take(400, absl::Seconds(5)), kNone);
  EXPECT_EQ(bucket.Take(50, absl::Seconds(5)), absl::Milliseconds(500));
  EXPECT_EQ(bucket.Take(50, absl::Milliseconds(5500)), kNone);
  EXPECT_EQ(bucket.Take(1, absl::Milliseconds(5500)), absl::Milliseconds(10));
}

TEST(TokenBucketTest, RefusesForFree) {
  TokenBucket bucket(100, 100, kNone);
  EXPECT_EQ(bucket.Take(60, kNone), kNone);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(bucket.Take(50, kNone), absl::Milliseconds(100));
  EXPECT_EQ(bucket.Take(40, kNone), kNone);
}

TEST(TokenBucketTest, SavesNoMoreThanABurst) {
  TokenBucket bucket(100, 200, kNone);
  EXPECT_TRUE(bucket.Full(kNone));
  EXPECT_EQ(bucket.Take(200, kNone), kNone);
  EXPECT_FALSE(bucket.Full(absl::Milliseconds(1990)));
  EXPECT_TRUE(bucket.Full(absl::Hours(1)));
  EXPECT_EQ(bucket.Take(200, absl::Hours(1)), kNone);
  EXPECT_GT(bucket.Take(1, absl::Hours(1)), kNone);
}

TEST(TokenBucketTest, PaysDebtByRate) {
  TokenBucket bucket(100, 200, kNone);
  bucket.Charge(500, kNone);
  EXPECT_TRUE(bucket.Empty(kNone));
  EXPECT_TRUE(bucket.Empty(absl::Seconds(3)));
  EXPECT_FALSE(bucket.Empty(absl::Milliseconds(3010)));
  EXPECT_EQ(bucket.Take(100, absl::Seconds(4)), kNone);
}

TEST(TokenBucketTest, RefillsUpToBurst) {
  TokenBucket bucket(100, 200, kNone);
  bucket.Charge(500, kNone);
  bucket.GiveBack(301, kNone);
  EXPECT_FALSE(bucket.Empty(kNone));
  bucket.GiveBack(1000, kNone);
  EXPECT_TRUE(bucket.Full(kNone));
  EXPECT_GT(bucket.Take(201, kNone), kNone);
}

}  // namespace
}  // namespace distro::server
