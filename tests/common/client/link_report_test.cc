#include "common/client/link_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace distro {
namespace {

using ::testing::HasSubstr;

// 10 Mbit/s up and 100 down, as the report has them; a little less together.
LinkMeasurement Measurement() {
  LinkMeasurement link;
  link.round_trip_seconds = 0.05;
  link.up_alone = {.bytes = 1'250'000, .seconds = 1};
  link.down_alone = {.bytes = 12'500'000, .seconds = 1};
  link.up_together = {.bytes = 1'000'000, .seconds = 1};
  link.down_together = {.bytes = 10'000'000, .seconds = 1};
  link.update_bytes = 2'000'000;
  link.result_bytes = 10'000'000;
  link.needs.set_update_bytes(2'000'000);
  link.needs.set_overlap(1);
  link.needs.set_workers(7);
  return link;
}

TEST(LinkReportTest, PredictsWithTheSlowerRates) {
  const LinkPrediction prediction = PredictLink(Measurement());
  EXPECT_DOUBLE_EQ(prediction.upload_seconds, 2.05);
  EXPECT_DOUBLE_EQ(prediction.download_seconds, 1.05);
  EXPECT_DOUBLE_EQ(prediction.exchange_seconds, 2.05);
}

TEST(LinkReportTest, AddsTheDirectionsWithoutOverlap) {
  LinkMeasurement link = Measurement();
  link.needs.set_overlap(0);
  EXPECT_DOUBLE_EQ(PredictLink(link).exchange_seconds, 3.1);
}

TEST(LinkReportTest, NamesStragglerByRoundTime) {
  LinkMeasurement link = Measurement();
  link.needs.mutable_round_duration()->set_seconds(2);
  EXPECT_TRUE(PredictLink(link).straggler);
  EXPECT_THAT(LinkText(link), HasSubstr("with 7 active workers: this link would be the straggler"));
  link.needs.mutable_round_duration()->set_nanos(100'000'000);
  EXPECT_FALSE(PredictLink(link).straggler);
  EXPECT_THAT(LinkText(link), HasSubstr("keeps up"));
}

TEST(LinkReportTest, WithoutARoundThereIsNothingToCompareWith) {
  const LinkMeasurement link = Measurement();
  EXPECT_FALSE(PredictLink(link).straggler);
  EXPECT_THAT(LinkText(link), HasSubstr("no round has closed yet"));
  EXPECT_FALSE(LinkJson(link).contains("round_seconds"));
}

TEST(LinkReportTest, CallsStalledLinkStraggler) {
  LinkMeasurement link = Measurement();
  link.needs.mutable_round_duration()->set_seconds(2);
  link.up_alone = link.up_together = {};
  EXPECT_TRUE(PredictLink(link).straggler);
  EXPECT_THAT(LinkText(link), HasSubstr("would be the straggler"));
}

}  // namespace
}  // namespace distro
