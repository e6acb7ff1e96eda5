#include "tools/archiver/metrics.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/fake_clock.h"
#include "tests/testing/metrics_doc.h"

namespace distro::tools {
namespace {

using ::testing::IsEmpty;

TEST(ArchiverMetricsTest, IsDocumented) {
  ArchiverMetrics metrics;
  for (Gauge* gauge : {metrics.round, metrics.lag_rounds, metrics.snapshot_round}) gauge->Set(0);
  EXPECT_THAT(
      testing::MetricsDocFaults(testing::MetricsPage(), metrics.Collect(), "distro_archiver_"),
      IsEmpty());
}

TEST(ArchiverMetricsTest, TimesPhaseByScope) {
  ArchiverMetrics metrics;
  testing::FakeClock clock;
  {
    const ArchiverPhaseScope scope(&metrics, &clock, ArchiverPhase::kSave);
    clock.Advance(absl::Seconds(3));
  }
  EXPECT_EQ(metrics.phases[static_cast<int>(ArchiverPhase::kSave)]->value(), 3);
  EXPECT_EQ(metrics.phases[static_cast<int>(ArchiverPhase::kApply)]->value(), 0);
}

// An archiver that falls behind still serves its folders: it stays ready, and ?verbose names it.
TEST(ArchiverMetricsTest, ReadyOnceItFollows) {
  ArchiverMetrics metrics;
  EXPECT_FALSE(metrics.Ready().ready);
  metrics.ready = true;
  metrics.falls_behind = true;
  EXPECT_TRUE(metrics.Ready().ready);
  EXPECT_FALSE(metrics.Ready().checks[1].ok);
}

TEST(ArchiverMetricsTest, IsNotReadyWhileTheAggregatorIsSilent) {
  testing::FakeClock clock;
  ArchiverMetrics metrics(&clock);
  metrics.ready = true;
  clock.Advance(absl::Hours(1));
  metrics.Answered();
  clock.Advance(absl::Seconds(59));
  EXPECT_TRUE(metrics.Ready().ready);
  clock.Advance(absl::Seconds(1));
  EXPECT_FALSE(metrics.Ready().ready);
  EXPECT_EQ(metrics.Ready().checks[2].detail, "no answer for 60 s");
  metrics.Answered();
  EXPECT_TRUE(metrics.Ready().ready);
}

}  // namespace
}  // namespace distro::tools
