#include "server/limits/call_rates.h"

#include "absl/strings/str_cat.h"
#include "common/base/reason.h"
#include "gtest/gtest.h"
#include "tests/testing/fake_clock.h"

namespace distro::server {
namespace {

constexpr uint64_t kRate = 50;
constexpr int kBurst = 4 * kRate;

class CallRatesTest : public ::testing::Test {
 protected:
  // Calls until one is refused.
  int CallsOf(const std::string& name, uint64_t cost = kLightCall) {
    int calls = 0;
    while (rates_.Take(name, cost).ok()) ++calls;
    return calls;
  }

  testing::FakeClock clock_;
  CallRates rates_{kRate, &clock_};
};

TEST_F(CallRatesTest, AllowsBurstThenRate) {
  EXPECT_EQ(CallsOf("a"), kBurst);
  clock_.Advance(absl::Seconds(1));
  EXPECT_EQ(CallsOf("a"), static_cast<int>(kRate));
}

TEST_F(CallRatesTest, SaysWhenToRetry) {
  EXPECT_EQ(CallsOf("a", kHeavyCall), kBurst / static_cast<int>(kHeavyCall));
  const absl::Status status = rates_.Take("a", kHeavyCall);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ReasonOf(status), "limit");
  EXPECT_EQ(RetryAfterOf(status), absl::Milliseconds(400));
  clock_.Advance(*RetryAfterOf(status));
  EXPECT_TRUE(rates_.Take("a", kHeavyCall).ok());
}

TEST_F(CallRatesTest, NamesDoNotTakeFromEachOther) {
  CallsOf("a");
  EXPECT_EQ(CallsOf("b"), kBurst);
  EXPECT_EQ(CallsOf(""), kBurst) << "of those without a name";
}

// With --insecure a client can invent names.
TEST_F(CallRatesTest, InventedNamesShareARateAndAreForgotten) {
  CallsOf("honest");
  clock_.Advance(absl::Seconds(1));
  for (size_t i = 0; i < 2 * kMaxRatedNames; ++i) (void)rates_.Take(absl::StrCat("n", i), 1);
  EXPECT_EQ(rates_.names(), kMaxRatedNames);
  EXPECT_FALSE(rates_.Take("one-more", 1).ok());
  EXPECT_EQ(CallsOf("honest"), static_cast<int>(kRate)) << "its bucket was lost";
  clock_.Advance(absl::Seconds(10));
  EXPECT_TRUE(rates_.Take("one-more", 1).ok());
  EXPECT_EQ(rates_.names(), 1u);
}

TEST(CallsPerSecondTest, RisesForShortHeartbeats) {
  const ServiceLimits limits;
  EXPECT_EQ(CallsPerSecond(limits, absl::Seconds(2)), limits.calls_per_second);
  EXPECT_EQ(CallsPerSecond(limits, absl::Hours(1)), limits.calls_per_second);
  EXPECT_EQ(CallsPerSecond(limits, absl::Milliseconds(10)), 2000u);
}

}  // namespace
}  // namespace distro::server
