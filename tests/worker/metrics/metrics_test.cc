#include "worker/metrics/metrics.h"

#include <algorithm>
#include <limits>
#include <string>

#include "absl/strings/match.h"
#include "common/net/telemetry/serve_metrics.h"
#include "gtest/gtest.h"
#include "tests/testing/fake_clock.h"
#include "tests/testing/metrics_doc.h"

namespace distro::worker {
namespace {

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

class WorkerMetricsTest : public ::testing::Test {
 protected:
  testing::FakeClock clock_;
  PhaseClock phases_{&clock_};
  WorkerMetrics metrics_{&phases_};
};

// tests/common/net/telemetry/worker_families_test.cc compares the page of all that the table can
// show.
TEST_F(WorkerMetricsTest, IsDocumented) {
  for (const std::string& fault :
       testing::MetricsDocFaults(testing::MetricsPage(), metrics_.Collect(), "distro_worker_")) {
    EXPECT_TRUE(absl::StrContains(fault, "has a row but is not exported")) << fault;
  }
}

TEST_F(WorkerMetricsTest, ShowsCountersFromStart) {
  for (const char* phase : {"idle", "data", "forward_backward", "compress", "upload", "wait",
                            "download", "apply", "evaluate", "checkpoint"}) {
    EXPECT_EQ(Value(&metrics_, "phase_seconds_total", phase), 0) << phase;
  }
  EXPECT_EQ(Value(&metrics_, "sent_bytes_total", "update"), 0);
  EXPECT_EQ(Value(&metrics_, "transfer_seconds_total", "download"), 0);
  EXPECT_EQ(Value(&metrics_, "loss"), -1);
}

TEST_F(WorkerMetricsTest, CollectivesAreShownByOperation) {
  TrainSummary summary;
  summary.collectives = {absl::Seconds(3), absl::Seconds(4), absl::Seconds(6), absl::Seconds(5)};
  metrics_.Update(summary);
  EXPECT_EQ(Value(&metrics_, "collective_seconds_total", "all_gather"), 3);
  EXPECT_EQ(Value(&metrics_, "collective_seconds_total", "reduce_scatter"), 4);
  EXPECT_EQ(Value(&metrics_, "collective_seconds_total", "all_to_all"), 6);
  EXPECT_EQ(Value(&metrics_, "collective_seconds_total", "barrier"), 5);
}

TEST_F(WorkerMetricsTest, FailedWritesAreShownByKind) {
  EXPECT_EQ(Value(&metrics_, "failed_writes", "state"), 0);
  TrainSummary summary;
  summary.failed_checkpoints = 3;
  summary.failed_saves = 2;
  metrics_.Update(summary);
  EXPECT_EQ(Value(&metrics_, "failed_writes", "checkpoint"), 3);
  EXPECT_EQ(Value(&metrics_, "failed_writes", "state"), 2);
}

TEST_F(WorkerMetricsTest, TakesTheReadingsOfASummaryOver) {
  TrainSummary summary;
  summary.parameters = 100;
  summary.next_round = 7;
  summary.updates_sent = 3;
  summary.tokens = 640;
  summary.training_loss = 2.5;
  summary.last_evaluation_loss = 2.25;
  metrics_.Update(summary);
  summary.tokens = 1280;
  metrics_.Update(summary);
  metrics_.SetCompute({.flops_per_token = 10, .peak_flops_per_second = 99});
  EXPECT_EQ(Value(&metrics_, "round"), 7);
  EXPECT_EQ(Value(&metrics_, "loss"), 2.5);
  EXPECT_EQ(Value(&metrics_, "eval_loss"), 2.25);
  EXPECT_EQ(Value(&metrics_, "tokens_total"), 1280);
  EXPECT_EQ(Value(&metrics_, "updates_total"), 3);
  EXPECT_EQ(Value(&metrics_, "gradient_bytes_total"), 4 * 100 * 3);
  EXPECT_EQ(Value(&metrics_, "model_flops_total"), 12800);
  EXPECT_EQ(Value(&metrics_, "peak_flops_per_second"), 99);
  EXPECT_EQ(metrics_.Telemetry().tokens(), 1280u);
}

TEST_F(WorkerMetricsTest, ReadingsOfDeltasAreShownOnceTheyAreKnown) {
  metrics_.Update(TrainSummary());
  EXPECT_EQ(Value(&metrics_, "inner_steps_total"), 0);
  EXPECT_EQ(Value(&metrics_, "delta_norm"), -1);
  TrainSummary summary;
  summary.deltas = DeltaReadings{
      .inner_steps = 6, .delta_norm = 0.25, .energy_kept = 0.5, .capped = 0.125, .cancelled = {}};
  metrics_.Update(summary);
  EXPECT_EQ(Value(&metrics_, "inner_steps_total"), 6);
  EXPECT_EQ(Value(&metrics_, "delta_norm"), 0.25);
  EXPECT_EQ(Value(&metrics_, "delta_energy_ratio"), 0.5);
  EXPECT_EQ(Value(&metrics_, "delta_capped_ratio"), 0.125);
  EXPECT_EQ(Value(&metrics_, "delta_cancelled_ratio"), -1);
  summary.deltas->cancelled = 0.75;
  metrics_.Update(summary);
  EXPECT_EQ(Value(&metrics_, "delta_cancelled_ratio"), 0.75);
}

TEST_F(WorkerMetricsTest, TransfersAreThoseOfTheMoment) {
  TransferStats stats;
  metrics_.SetTransfers([&stats] { return stats; });
  stats.sent_payload_bytes = 1000;
  stats.upload_time = absl::Seconds(2);
  stats.round_trip = absl::Milliseconds(250);
  stats.last_report = absl::UnixEpoch() + absl::Seconds(77);
  EXPECT_EQ(Value(&metrics_, "sent_bytes_total", "update"), 1000);
  EXPECT_EQ(Value(&metrics_, "transfer_seconds_total", "upload"), 2);
  EXPECT_EQ(Value(&metrics_, "rtt_seconds"), 0.25);
  EXPECT_EQ(Value(&metrics_, "last_report_timestamp_seconds"), 77);
}

TEST_F(WorkerMetricsTest, WaitingIsSplitByWhatTheNetworkDid) {
  TransferStats stats;
  metrics_.SetTransfers([&stats] { return stats; });
  phases_.Switch(Phase::kWait);
  clock_.Advance(absl::Seconds(10));
  stats.wait_in_upload = absl::Seconds(2);
  stats.wait_in_download = absl::Seconds(3);
  stats.wait_undecided = absl::Seconds(1);
  EXPECT_EQ(Value(&metrics_, "phase_seconds_total", "upload"), 2);
  EXPECT_EQ(Value(&metrics_, "phase_seconds_total", "download"), 3);
  EXPECT_EQ(Value(&metrics_, "phase_seconds_total", "wait"), 4);
  stats.wait_undecided = absl::ZeroDuration();
  EXPECT_EQ(Value(&metrics_, "phase_seconds_total", "wait"), 5);
}

TEST_F(WorkerMetricsTest, CountsByCauseWhatWasRepeatedOrExcluded) {
  TrainSummary summary;
  summary.resyncs = 2;
  summary.excluded[static_cast<int>(Exclusion::kProbation)] = 4;
  metrics_.Update(summary);
  TransferStats stats;
  stats.retries[static_cast<int>(RetriedRpc::kUpload)]
               [RetryCodeIndex(absl::StatusCode::kUnavailable)] = 5;
  stats.retries[static_cast<int>(RetriedRpc::kJoin)][RetryCodeIndex(absl::StatusCode::kDataLoss)] =
      6;
  metrics_.SetTransfers([&stats] { return stats; });
  EXPECT_EQ(Value(&metrics_, "resyncs_total"), 2);
  EXPECT_EQ(Value(&metrics_, "updates_excluded_total", "probation"), 4);
  EXPECT_EQ(Value(&metrics_, "updates_excluded_total", "late"), 0);
  EXPECT_EQ(Value(&metrics_, "retries_total", "upload", "unavailable"), 5);
  EXPECT_EQ(Value(&metrics_, "retries_total", "join", "other"), 6);
  EXPECT_EQ(Value(&metrics_, "retries_total", "heartbeat", "unavailable"), 0);
}

TEST_F(WorkerMetricsTest, DropsNonFiniteLoss) {
  TrainSummary summary;
  summary.tokens = 1;
  summary.training_loss = 2.5;
  metrics_.Update(summary);
  summary.training_loss = std::numeric_limits<double>::quiet_NaN();
  metrics_.Update(summary);
  EXPECT_EQ(Value(&metrics_, "loss"), 2.5);
  EXPECT_EQ(Value(&metrics_, "dropped_values_total"), 1);
}

TEST_F(WorkerMetricsTest, IsReadyOnceItHasJoined) {
  EXPECT_FALSE(metrics_.Ready().ready);
  metrics_.SetReady(true);
  EXPECT_TRUE(metrics_.Ready().ready);
}

TEST_F(WorkerMetricsTest, IsNotReadyWhileTheAggregatorIsSilent) {
  TransferStats stats;
  metrics_.SetTransfers([&stats] { return stats; });
  metrics_.SetReady(true);
  stats.last_answer = clock_.MonotonicNow();
  clock_.Advance(absl::Seconds(59));
  EXPECT_TRUE(metrics_.Ready().ready);
  clock_.Advance(absl::Seconds(1));
  EXPECT_FALSE(metrics_.Ready().ready);
  EXPECT_EQ(metrics_.Ready().checks[1].detail, "no heartbeat was answered for 60 s");
}

TEST_F(WorkerMetricsTest, SaysThatItsWorkDoesNotCount) {
  TrainSummary summary;
  metrics_.Update(summary);
  EXPECT_TRUE(metrics_.Ready().checks[2].ok);
  summary.uncounted = "16 of its last 16 rounds did not count";
  metrics_.Update(summary);
  EXPECT_FALSE(metrics_.Ready().checks[2].ok);
  EXPECT_EQ(metrics_.Ready().checks[2].detail, summary.uncounted);
}

TEST_F(WorkerMetricsTest, NamesTheFlagOfABadAddress) {
  Log log(LogLevel::kError);
  const absl::Status status = ServeMetrics("nowhere", &metrics_, &log).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(absl::StrContains(status.message(), "--http")) << status;
}

}  // namespace
}  // namespace distro::worker
