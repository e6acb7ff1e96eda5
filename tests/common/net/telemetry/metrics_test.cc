#include "common/net/telemetry/metrics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/net/http/http_endpoint.h"
#include "common/net/http/http_get.h"
#include "common/net/telemetry/metric_families.h"
#include "common/net/telemetry/process_metrics.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/metrics_doc.h"

namespace distro {
namespace {

using ::distro::testing::MetricsDocFaults;
using ::distro::testing::MetricsPage;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(MetricsRegistryTest, ExportsWhatWasCounted) {
  MetricsRegistry registry("distro_test_");
  Counter* up = registry.AddCounter("bytes_total", "Bytes.", {{"direction", "up"}});
  registry.AddCounter("bytes_total", "Bytes.", {{"direction", "down"}});
  Gauge* round = registry.AddGauge("round", "The round.");
  Histogram* seconds = registry.AddHistogram("step_seconds", "Time.", {0.5, 1});
  up->Increment();
  up->Increment(2.5);
  round->Set(5);
  seconds->Observe(0.75);
  const std::string text = MetricsText(registry.Collect());
  EXPECT_THAT(text, HasSubstr("# HELP distro_test_bytes_total Bytes.\n"
                              "# TYPE distro_test_bytes_total counter\n"));
  EXPECT_THAT(text, HasSubstr("distro_test_bytes_total{direction=\"up\"} 3.5\n"));
  EXPECT_THAT(text, HasSubstr("distro_test_bytes_total{direction=\"down\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("distro_test_round 5\n"));
  EXPECT_THAT(text, HasSubstr("distro_test_step_seconds_bucket{le=\"0.5\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("distro_test_step_seconds_bucket{le=\"1\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("distro_test_step_seconds_sum 0.75\n"));
}

TEST(MetricsRegistryTest, DropsAndCountsWhatWouldPoisonASeries) {
  MetricsRegistry registry("distro_test_");
  Counter* counter = registry.AddCounter("a_total", "A.");
  Gauge* gauge = registry.AddGauge("b", "B.");
  Histogram* histogram = registry.AddHistogram("c_seconds", "C.", RoundSecondsBuckets());
  counter->Increment(2);
  gauge->Set(3);
  for (const double bad : {kNan, kInfinity, -kInfinity}) {
    counter->Increment(bad);
    gauge->Set(bad);
    histogram->Observe(bad);
  }
  counter->Increment(-1);
  EXPECT_EQ(counter->value(), 2);
  EXPECT_EQ(gauge->value(), 3);
  std::string text = MetricsText(registry.Collect());
  EXPECT_THAT(text, HasSubstr("distro_test_dropped_values_total 10\n"));
  EXPECT_THAT(text, HasSubstr("distro_test_c_seconds_count 0\n"));
  EXPECT_THAT(text, Not(HasSubstr("an\n")));
  EXPECT_THAT(MetricsText(registry.Collect()), HasSubstr("distro_test_dropped_values_total 10\n"));
}

TEST(MetricsRegistryTest, OmitsUnknownGauge) {
  MetricsRegistry registry("distro_test_");
  Gauge* loss = registry.AddGauge("loss", "Loss.");
  Gauge* lag = registry.AddGauge("lag", "Lag.", {{"kind", "a"}});
  registry.AddGauge("lag", "Lag.", {{"kind", "b"}});
  EXPECT_THAT(MetricsText(registry.Collect()), Not(HasSubstr("distro_test_l")));
  loss->Set(0);
  lag->Set(3);
  EXPECT_THAT(MetricsText(registry.Collect()), HasSubstr("distro_test_loss 0\n"));
  EXPECT_THAT(MetricsText(registry.Collect()), HasSubstr("distro_test_lag{kind=\"a\"} 3\n"));
  EXPECT_THAT(MetricsText(registry.Collect()), Not(HasSubstr("kind=\"b\"")));
  loss->Clear();
  EXPECT_THAT(MetricsText(registry.Collect()), Not(HasSubstr("distro_test_loss")));
  EXPECT_THAT(MetricsText(registry.Collect()), HasSubstr("distro_test_dropped_values_total 0\n"));
}

TEST(MetricsRegistryTest, HasBucketOfDays) {
  const std::vector<double> bounds = RoundSecondsBuckets();
  EXPECT_TRUE(std::ranges::is_sorted(bounds, std::ranges::less_equal()));
  EXPECT_EQ(bounds.front(), 0.05);
  EXPECT_EQ(bounds.back(), 7 * 86400);
  MetricsRegistry registry("distro_test_");
  registry.AddHistogram("round_seconds", "R.", bounds)->Observe(6 * 86400);
  const std::string text = MetricsText(registry.Collect());
  EXPECT_THAT(text, HasSubstr("distro_test_round_seconds_bucket{le=\"345600\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("distro_test_round_seconds_bucket{le=\"604800\"} 1\n"));
}

TEST(MetricsRegistryTest, CountsFromManyThreads) {
  MetricsRegistry registry("distro_test_");
  Counter* counter = registry.AddCounter("a_total", "A.");
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int j = 0; j < 1000; ++j) counter->Increment();
      registry.Collect();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(counter->value(), 4000);
}

TEST(MetricsRegistryDeathTest, OurOwnBugsEndTheProcess) {
  MetricsRegistry registry("distro_test_");
  registry.AddCounter("a_total", "A.");
  EXPECT_DEATH(registry.AddGauge("a_total", "A."), "distro_test_a_total");
  EXPECT_DEATH(registry.AddGauge("Bad", "A."), "distro_test_Bad: name");
  EXPECT_DEATH(registry.AddGauge("a", "two\nlines"), "help text");
  EXPECT_DEATH(registry.AddGauge("a", "A.", {{"kind", ""}}), "label kind");
}

TEST(CheckMetricTest, TakesWhatPrometheusTakes) {
  EXPECT_TRUE(CheckMetric("a_b1", "Help \xc3\xa4.", {{"kind", "x y"}}).ok());
  const std::vector<absl::Status> refused = {
      CheckMetric("", "h", {}),           CheckMetric("1a", "h", {}),
      CheckMetric("a-b", "h", {}),        CheckMetric("a", "", {}),
      CheckMetric("a", "x\ny", {}),       CheckMetric("a", "\xff", {}),
      CheckMetric("a", "h", {{"l", ""}}), CheckMetric("a", "h", {{"l", "\xff"}}),
      CheckMetric("a", "h", {{"L", "x"}})};
  for (const absl::Status& status : refused) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  }
}

TEST(FamilyBuilderTest, LeavesOutWhatAPeerMadeUnreadable) {
  FamilyBuilder families;
  families.AddGauge("loss", "Loss.", {{"worker", "a"}}, 2.5);
  families.AddGauge("loss", "Loss.", {{"worker", "b"}}, kNan);
  families.AddGauge("loss", "Loss.", {{"worker", "\xff"}}, 1);
  families.AddCounter("tokens_total", "Tokens.", {{"worker", "a"}}, 12);
  EXPECT_EQ(MetricsText(families.Take()),
            "# HELP loss Loss.\n# TYPE loss gauge\nloss{worker=\"a\"} 2.5\n"
            "# HELP tokens_total Tokens.\n# TYPE tokens_total counter\n"
            "tokens_total{worker=\"a\"} 12\n");
}

TEST(ProcessMetricsTest, IsDocumented) {
  const auto families = ProcessMetrics();
  EXPECT_THAT(MetricsDocFaults(MetricsPage(), families, "process_"), IsEmpty());
  for (const auto& family : families) {
    ASSERT_EQ(family.metric.size(), 1);
    EXPECT_GE(family.metric[0].gauge.value + family.metric[0].counter.value, 0) << family.name;
  }
}

TEST(MetricsDocTest, FindsEveryDifference) {
  const std::string page =
      "| `x_a_total` | counter `kind` | A. More words. |\n"
      "| `x_b` | gauge | B. |\n| `x_gone` | gauge | Gone. |\n| `y_other` | gauge | O. |\n";
  MetricsRegistry registry("x_");
  registry.AddCounter("a_total", "A.", {{"kind", "k"}});
  const auto faults = MetricsDocFaults(page, registry.Collect(), "x_");
  EXPECT_THAT(faults, ElementsAre(HasSubstr("x_dropped_values_total: has no row"),
                                  "x_b: has a row but is not exported",
                                  "x_gone: has a row but is not exported"));
  FamilyBuilder families;
  families.AddGauge("x_a_total", "Other help.", {{"other", "k"}}, 1);
  EXPECT_THAT(MetricsDocFaults(page, families.Take(), "x_a"),
              ElementsAre("x_a_total: is a gauge, the page says counter",
                          "x_a_total: its row does not begin with its help text: Other help.",
                          "x_a_total: its row does not name the label `other`"));
}

TEST(MetricsRouteTest, ServesTheFamiliesAsText) {
  MetricsRegistry registry("distro_test_");
  registry.AddGauge("round", "The round.")->Set(7);
  const auto endpoint = HttpEndpoint::Start(
      "127.0.0.1", 0, {MetricsRoute("/metrics", [&] { return registry.Collect(); })});
  ASSERT_TRUE(endpoint.ok()) << endpoint.status();
  const auto answer = HttpGet(absl::StrCat("127.0.0.1:", (*endpoint)->port()), "/metrics",
                              absl::Seconds(30), /*max_bytes=*/1 << 20);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->status, 200);
  EXPECT_EQ(answer->content_type, "text/plain; version=0.0.4; charset=utf-8");
  EXPECT_THAT(answer->body, HasSubstr("# TYPE distro_test_round gauge\ndistro_test_round 7\n"));
}

}  // namespace
}  // namespace distro
