#include "worker/metrics.h"

#include <algorithm>
#include <limits>
#include <string>

#include "common/telemetry/serve_metrics.h"
#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/metrics_doc.h"

namespace distro::worker {
namespace {

using ::testing::IsEmpty;

bool Has(const prometheus::ClientMetric& metric, const std::string& value) {
  return value.empty() || std::any_of(metric.label.begin(), metric.label.end(),
                                      [&](const auto& label) { return label.value == value; });
}

// The value of the series that has a label of that value, or of the first; -1 when there is none.
double Value(WorkerMetrics* metrics, const std::string& name, const std::string& label = "",
             const std::string& other_label = "") {
  for (const prometheus::MetricFamily& family : metrics->Collect()) {
    if (family.name != "distro_worker_" + name) continue;
    for (const prometheus::ClientMetric& metric : family.metric) {
      if (!Has(metric, label) || !Has(metric, other_label)) continue;
      return family.type == prometheus::MetricType::Counter ? metric.counter.value
                                                            : metric.gauge.value;
    }
  }
  return -1;
}

TEST(WorkerMetricsTest, ThePageDescribesEveryMetric) {
  WorkerMetrics metrics;
  EXPECT_THAT(
      testing::MetricsDocFaults(testing::MetricsPage(), metrics.Collect(), "distro_worker_"),
      IsEmpty());
}

TEST(WorkerMetricsTest, EverySeriesIsThereFromTheStart) {
  WorkerMetrics metrics;
  for (int i = 0; i < kPhases; ++i) {
    EXPECT_EQ(Value(&metrics, "phase_seconds_total", std::string(PhaseName(static_cast<Phase>(i)))),
              0);
  }
  EXPECT_EQ(Value(&metrics, "sent_bytes_total", "update"), 0);
  EXPECT_EQ(Value(&metrics, "transfer_seconds_total", "download"), 0);
}

TEST(WorkerMetricsTest, TakesTheReadingsOfASummaryOver) {
  WorkerMetrics metrics;
  TrainSummary summary;
  summary.parameters = 100;
  summary.next_round = 7;
  summary.updates_sent = 3;
  summary.tokens = 640;
  summary.training_loss = 2.5;
  summary.last_evaluation_loss = 2.25;
  summary.transfer.sent_payload_bytes = 1000;
  summary.transfer.upload_time = absl::Seconds(2);
  summary.phases[static_cast<int>(Phase::kWait)] = absl::Seconds(4);
  metrics.Update(summary);
  summary.tokens = 1280;
  metrics.Update(summary);
  EXPECT_EQ(Value(&metrics, "round"), 7);
  EXPECT_EQ(Value(&metrics, "loss"), 2.5);
  EXPECT_EQ(Value(&metrics, "eval_loss"), 2.25);
  EXPECT_EQ(Value(&metrics, "tokens_total"), 1280);
  EXPECT_EQ(Value(&metrics, "updates_total"), 3);
  EXPECT_EQ(Value(&metrics, "gradient_bytes_total"), 4 * 100 * 3);
  EXPECT_EQ(Value(&metrics, "sent_bytes_total", "update"), 1000);
  EXPECT_EQ(Value(&metrics, "transfer_seconds_total", "upload"), 2);
  EXPECT_EQ(Value(&metrics, "phase_seconds_total", "wait"), 4);
}

TEST(WorkerMetricsTest, CountsByCauseWhatWasRepeatedOrExcluded) {
  WorkerMetrics metrics;
  TrainSummary summary;
  summary.resyncs = 2;
  summary.excluded[static_cast<int>(Exclusion::kProbation)] = 4;
  summary.transfer.retries[static_cast<int>(RetriedRpc::kUpload)]
                          [RetryCodeIndex(absl::StatusCode::kUnavailable)] = 5;
  summary.transfer
      .retries[static_cast<int>(RetriedRpc::kJoin)][RetryCodeIndex(absl::StatusCode::kDataLoss)] =
      6;
  metrics.Update(summary);
  EXPECT_EQ(Value(&metrics, "resyncs_total"), 2);
  EXPECT_EQ(Value(&metrics, "updates_excluded_total", "probation"), 4);
  EXPECT_EQ(Value(&metrics, "updates_excluded_total", "late"), 0);
  EXPECT_EQ(Value(&metrics, "retries_total", "upload", "unavailable"), 5);
  EXPECT_EQ(Value(&metrics, "retries_total", "join", "other"), 6);
  EXPECT_EQ(Value(&metrics, "retries_total", "heartbeat", "unavailable"), 0);
}

TEST(WorkerMetricsTest, ALossThatIsNotFiniteIsCountedAndNotExported) {
  WorkerMetrics metrics;
  TrainSummary summary;
  summary.training_loss = 2.5;
  metrics.Update(summary);
  summary.training_loss = std::numeric_limits<double>::quiet_NaN();
  metrics.Update(summary);
  EXPECT_EQ(Value(&metrics, "loss"), 2.5);
  EXPECT_EQ(Value(&metrics, "dropped_values_total"), 1);
}

TEST(WorkerMetricsTest, IsReadyOnceItHasJoined) {
  WorkerMetrics metrics;
  EXPECT_FALSE(metrics.Ready().ready);
  metrics.SetReady(true);
  EXPECT_TRUE(metrics.Ready().ready);
}

TEST(WorkerMetricsTest, NamesTheFlagOfABadAddress) {
  WorkerMetrics metrics;
  Log log(LogLevel::kError);
  const absl::Status status = ServeMetrics("nowhere", &metrics, &log).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(absl::StrContains(status.message(), "--http")) << status;
}

}  // namespace
}  // namespace distro::worker
