#include "server/status/worker_rates.h"

#include "gtest/gtest.h"

namespace distro::server {
namespace {

WorkerReport ReportAt(int second, uint64_t incarnation = 1) {
  auto telemetry = std::make_shared<v1::WorkerTelemetry>();
  telemetry->set_tokens(100 * second);
  telemetry->set_sent_bytes(10 * second);
  telemetry->set_received_bytes(50 * second);
  telemetry->mutable_transfer()->set_upload_seconds(0.5 * second);
  telemetry->mutable_transfer()->set_download_seconds(0.25 * second);
  telemetry->mutable_phases()->set_upload(0.2 * second);
  telemetry->mutable_phases()->set_wait(0.1 * second);
  telemetry->mutable_phases()->set_download(0.05 * second);
  telemetry->mutable_phases()->set_forward_backward(0.65 * second);
  return {.worker = "a",
          .incarnation = incarnation,
          .sequence = 1,
          .next_round = 0,
          .received_at = absl::UnixEpoch(),
          .received_on = absl::Seconds(second),
          .telemetry = telemetry};
}

TEST(WorkerRatesTest, RatesAreDifferencesOfTwoReports) {
  WorkerRates rates;
  rates.Take({ReportAt(10)});
  EXPECT_EQ(rates.Of("a").tokens_per_second, std::nullopt);
  rates.Take({ReportAt(12)});
  const WorkerRate rate = rates.Of("a");
  EXPECT_DOUBLE_EQ(*rate.tokens_per_second, 100);
  EXPECT_DOUBLE_EQ(*rate.up_bytes_per_second, 10);
  EXPECT_DOUBLE_EQ(*rate.down_bytes_per_second, 50);
  EXPECT_DOUBLE_EQ(*rate.up_goodput, 20);
  EXPECT_DOUBLE_EQ(*rate.down_goodput, 200);
  EXPECT_NEAR(*rate.upload_ratio, 0.2, 1e-12);
  EXPECT_NEAR(*rate.wait_ratio, 0.1, 1e-12);
  EXPECT_NEAR(*rate.download_ratio, 0.05, 1e-12);
  EXPECT_EQ(rates.Of("b").tokens_per_second, std::nullopt);
}

TEST(WorkerRatesTest, OmitsGoodputOfNothing) {
  WorkerRates rates;
  WorkerReport first = ReportAt(10), second = ReportAt(20);
  second.telemetry = first.telemetry;
  rates.Take({first});
  rates.Take({second});
  EXPECT_EQ(rates.Of("a").tokens_per_second, 0);
  EXPECT_EQ(rates.Of("a").up_goodput, std::nullopt);
}

TEST(WorkerRatesTest, LooksBackAboutAMinute) {
  WorkerRates rates;
  for (int second = 0; second <= 600; second += 2) {
    WorkerReport report = ReportAt(second);
    auto telemetry = std::make_shared<v1::WorkerTelemetry>(*report.telemetry);
    if (second < 500) telemetry->set_tokens(0);
    if (second >= 500) telemetry->set_tokens(7 * (second - 500));
    report.telemetry = telemetry;
    rates.Take({report});
  }
  EXPECT_DOUBLE_EQ(*rates.Of("a").tokens_per_second, 7);
}

TEST(WorkerRatesTest, RestartsWithProcessAndSilence) {
  WorkerRates rates;
  rates.Take({ReportAt(10)});
  rates.Take({ReportAt(12)});
  rates.Take({ReportAt(14, 2)});
  EXPECT_EQ(rates.Of("a").tokens_per_second, std::nullopt);
  rates.Take({ReportAt(16, 2)});
  EXPECT_NE(rates.Of("a").tokens_per_second, std::nullopt);
  rates.Take({ReportAt(1000, 2)});
  EXPECT_EQ(rates.Of("a").tokens_per_second, std::nullopt);
  rates.Take({});
  EXPECT_EQ(rates.Of("a").tokens_per_second, std::nullopt);
}

}  // namespace
}  // namespace distro::server
