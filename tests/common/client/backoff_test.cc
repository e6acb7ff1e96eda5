#include "common/client/backoff.h"

#include <gtest/gtest.h>

#include <vector>

namespace distro {
namespace {

const BackoffOptions kOptions = {absl::Milliseconds(100), absl::Seconds(2)};

TEST(BackoffTest, DoublesUpToTheLongestDelayWithinTheJitter) {
  Backoff backoff(kOptions, 7);
  absl::Duration longest = kOptions.initial;
  for (int attempt = 0; attempt < 100; ++attempt) {
    const absl::Duration delay = backoff.Next();
    EXPECT_GE(delay, longest / 2) << attempt;
    EXPECT_LT(delay, longest) << attempt;
    longest = std::min(2 * longest, kOptions.max);
  }
}

TEST(BackoffTest, StartsOverAfterASuccess) {
  Backoff backoff(kOptions, 7);
  for (int attempt = 0; attempt < 10; ++attempt) backoff.Next();
  backoff.Reset();
  EXPECT_LT(backoff.Next(), kOptions.initial);
}

TEST(BackoffTest, FollowsItsSeed) {
  Backoff a(kOptions, 1), b(kOptions, 1), c(kOptions, 2);
  int equal = 0;
  for (int attempt = 0; attempt < 20; ++attempt) {
    const absl::Duration delay = a.Next();
    EXPECT_EQ(delay, b.Next());
    equal += delay == c.Next();
  }
  EXPECT_EQ(equal, 0);
}

TEST(DelayAfterTest, ComesAfterWhatTheStatusAsksFor) {
  const BackoffOptions options{absl::Milliseconds(100), absl::Seconds(1)};
  Backoff backoff(options, 1);
  const absl::Duration alone = DelayAfter(absl::UnavailableError(""), &backoff);
  EXPECT_GE(alone, absl::Milliseconds(50));
  EXPECT_LT(alone, absl::Milliseconds(100));
  Backoff again(options, 1);
  EXPECT_EQ(DelayAfter(WithRetryAfter(absl::UnavailableError(""), absl::Seconds(7)), &again),
            absl::Seconds(7) + alone);
}

}  // namespace
}  // namespace distro
