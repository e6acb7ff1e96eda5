#include "worker/train/summary.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace distro::worker {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(SummaryTest, OmitsDeltasOfSigns) {
  const TrainSummary summary;
  EXPECT_TRUE(nlohmann::json::parse(SummaryJson(summary))["deltas"].is_null());
  EXPECT_THAT(SummaryText(summary), Not(HasSubstr("deltas")));
}

TEST(SummaryTest, OmitsLossBeforeFirstStep) {
  const nlohmann::json summary = nlohmann::json::parse(SummaryJson(TrainSummary()));
  EXPECT_TRUE(summary["training_loss"].is_null());
  EXPECT_TRUE(summary["learning_rate"].is_null());
}

TEST(SummaryTest, ReadingsOfDeltasAreShownAsFarAsTheyAreKnown) {
  TrainSummary summary;
  summary.deltas = DeltaReadings{
      .inner_steps = 6, .delta_norm = 0.25, .energy_kept = 0.5, .capped = 0.125, .cancelled = {}};
  const nlohmann::json deltas = nlohmann::json::parse(SummaryJson(summary))["deltas"];
  EXPECT_EQ(deltas["inner_steps"], 6);
  EXPECT_EQ(deltas["delta_norm"], 0.25);
  EXPECT_EQ(deltas["energy_kept"], 0.5);
  EXPECT_EQ(deltas["capped"], 0.125);
  EXPECT_TRUE(deltas["cancelled"].is_null());
  EXPECT_THAT(SummaryText(summary),
              HasSubstr("6 inner steps; last update: norm 0.25, 50.0 % of the energy, 12.5 % at "
                        "the cap, - cancelled\n"));
}

}  // namespace
}  // namespace distro::worker
