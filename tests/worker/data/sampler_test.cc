#include "worker/data/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace distro::worker {
namespace {

std::vector<int64_t> Epoch(const Sampler& sampler, int64_t samples, uint64_t epoch) {
  std::vector<int64_t> order;
  for (int64_t i = 0; i < samples; ++i) order.push_back(sampler.SampleAt(epoch * samples + i));
  return order;
}

void ExpectPermutation(std::vector<int64_t> order) {
  std::sort(order.begin(), order.end());
  for (size_t i = 0; i < order.size(); ++i) ASSERT_EQ(order[i], static_cast<int64_t>(i));
}

TEST(SplitSamplesTest, DropsTheRestAndHoldsOutTheEnd) {
  const auto split = SplitSamples(101, 10, 0.25);  // samples 0..9: the last has tokens 90..100
  ASSERT_TRUE(split.ok()) << split.status();
  EXPECT_EQ(split->training_samples, 7);
  EXPECT_EQ(split->held_out_samples, 3);
  EXPECT_EQ(SplitSamples(100, 10, 0)->training_samples, 9);
  EXPECT_EQ(SplitSamples(100, 10, 0)->held_out_samples, 0);
  EXPECT_EQ(SplitSamples(1 << 20, 256, 1e-9)->held_out_samples, 1);
}

TEST(SplitSamplesTest, RefusesWhatLeavesNothing) {
  for (const auto& [tokens, length, fraction] : std::vector<std::tuple<int64_t, int, double>>{
           {0, 10, 0},
           {10, 10, 0},
           {21, 10, 0.6},
           {100, 0, 0},
           {100, -1, 0},
           {100, 10, 1},
           {100, 10, -0.1},
           {100, 10, std::numeric_limits<double>::quiet_NaN()}}) {
    EXPECT_EQ(SplitSamples(tokens, length, fraction).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
}

TEST(SamplerTest, PermutesSamples) {
  for (int64_t samples : {1, 2, 3, 4, 5, 15, 16, 17, 64, 65, 1000, 4097}) {
    const Sampler sampler(samples, 5);
    for (uint64_t epoch = 0; epoch < 4; ++epoch) ExpectPermutation(Epoch(sampler, samples, epoch));
  }
}

TEST(SamplerTest, EpochsDifferAndFollowTheSeed) {
  const Sampler sampler(1000, 5), next_seed(1000, 6);
  EXPECT_NE(Epoch(sampler, 1000, 0), Epoch(sampler, 1000, 1));
  EXPECT_NE(Epoch(sampler, 1000, 1), Epoch(sampler, 1000, 2));
  EXPECT_EQ(Epoch(sampler, 1000, 1), Epoch(next_seed, 1000, 0));
}

TEST(SamplerTest, SeedsNearTheEndWrapAround) {
  const Sampler sampler(100, UINT64_MAX), zero(100, 0);
  EXPECT_EQ(Epoch(sampler, 100, 1), Epoch(zero, 100, 0));
}

// Over many epochs each sample comes first, and each follows each, about equally often
// (chi-squared, 5 deviations).
TEST(SamplerTest, OrdersAreSpreadEvenly) {
  constexpr int64_t kSamples = 20, kEpochs = 20000;
  const Sampler sampler(kSamples, 11);
  std::vector<double> first(kSamples), follows(kSamples * kSamples);
  for (uint64_t epoch = 0; epoch < kEpochs; ++epoch) {
    const std::vector<int64_t> order = Epoch(sampler, kSamples, epoch);
    ++first[order[0]];
    ++follows[order[6] * kSamples + order[7]];
  }
  const auto chi_squared = [](const std::vector<double>& counts, double expected) {
    double sum = 0;
    for (double count : counts)
      sum += count == 0 ? 0 : (count - expected) * (count - expected) / expected;
    return sum;
  };
  EXPECT_LT(chi_squared(first, kEpochs / 20.0), 19 + 5 * std::sqrt(2 * 19.0));
  EXPECT_LT(chi_squared(follows, kEpochs / 380.0), 379 + 5 * std::sqrt(2 * 379.0));
}

// The order that every machine must produce.
TEST(SamplerTest, OrderIsFixed) {
  EXPECT_THAT(Epoch(Sampler(10, 1), 10, 0), ::testing::ElementsAre(3, 2, 9, 6, 4, 8, 0, 1, 7, 5));
  EXPECT_EQ(Sampler(int64_t{1} << 62, 1).SampleAt(12345), 4166443193584571200);
}

}  // namespace
}  // namespace distro::worker
