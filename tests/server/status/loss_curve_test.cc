#include "server/status/loss_curve.h"

#include <cmath>

#include "gtest/gtest.h"

namespace distro::server {
namespace {

TEST(LossCurveTest, KeepsEveryValueWhileThereIsRoom) {
  LossCurve curve(4);
  for (uint64_t round = 0; round < 3; ++round) curve.Add(round, 10.0 - static_cast<double>(round));
  ASSERT_EQ(curve.Points().size(), 3u);
  EXPECT_EQ(curve.Points()[2].round, 2u);
  EXPECT_EQ(curve.Points()[2].value, 8);
  EXPECT_EQ(curve.values_per_point(), 1u);
}

TEST(LossCurveTest, MergesNeighboursIntoTheirMeanWhenItIsFull) {
  LossCurve curve(4);
  for (const double value : {1.0, 3.0, 5.0, 9.0, 2.0}) curve.Add(curve.Points().size(), value);
  const auto points = curve.Points();
  ASSERT_EQ(points.size(), 3u);
  EXPECT_EQ(points[0].value, 2);
  EXPECT_EQ(points[0].round, 1u);
  EXPECT_EQ(points[1].value, 7);
  EXPECT_EQ(points[2].value, 2);  // of one value so far
}

TEST(LossCurveTest, StaysBoundedAndCoversTheWholeRun) {
  LossCurve curve(8);
  for (uint64_t round = 0; round < 100'000; ++round) curve.Add(round, static_cast<double>(round));
  const auto points = curve.Points();
  ASSERT_LE(points.size(), 8u);
  ASSERT_GE(points.size(), 4u);
  EXPECT_EQ(points.back().round, 99'999u);
  const auto n = static_cast<double>(curve.values_per_point());
  EXPECT_EQ(points[0].value, (n - 1) / 2);
}

TEST(LossCurveTest, LeavesOutWhatIsNotFinite) {
  LossCurve curve(4);
  curve.Add(0, NAN);
  curve.Add(1, INFINITY);
  EXPECT_TRUE(curve.Points().empty());
}

}  // namespace
}  // namespace distro::server
