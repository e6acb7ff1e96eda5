// Timing of transfers and waits, with times from the test instead of a clock.
#include "common/client/exchange/transfer_meter.h"

#include "gtest/gtest.h"

namespace distro {
namespace {

absl::Duration At(double seconds) { return absl::Seconds(seconds); }

TEST(TransferMeterTest, CountsRunningUpload) {
  TransferMeter meter;
  meter.BeginUpload(At(1));
  meter.AddSent(100'000);
  EXPECT_EQ(meter.stats(At(3)).upload_time, At(2));
  meter.EndUpload(At(5), true);
  EXPECT_EQ(meter.stats(At(9)).upload_time, At(4));
  EXPECT_EQ(meter.stats(At(9)).upload_bytes_per_second, 25'000);
  EXPECT_EQ(meter.stats(At(9)).upload_durations.sum_seconds(), 4);
}

TEST(TransferMeterTest, JoinsPartsOfBrokenUpload) {
  TransferMeter meter;
  meter.BeginUpload(At(0));
  meter.EndUpload(At(2), false);
  EXPECT_EQ(meter.stats(At(2)).upload_durations.buckets_size(), 0);
  meter.BeginUpload(At(7));
  meter.EndUpload(At(8), true);
  EXPECT_EQ(meter.stats(At(8)).upload_durations.sum_seconds(), 3);
}

TEST(TransferMeterTest, JoinsPartsOfResult) {
  TransferMeter meter;
  meter.AddReceived(1000, At(1), At(2));
  meter.AddReceived(1000, At(2), At(2.5));
  meter.EndResult();
  EXPECT_EQ(meter.stats(At(3)).download_durations.sum_seconds(), 1.5);
  EXPECT_EQ(meter.stats(At(3)).download_time, At(1.5));
}

TEST(TransferMeterTest, TransfersThatAreTooSmallToTellTheRateAreTakenTogether) {
  TransferMeter meter;
  meter.AddReceived(16'000, At(0), At(1));
  EXPECT_FALSE(meter.stats(At(1)).download_bytes_per_second.has_value());
  meter.AddReceived(16'000, At(1), At(2));
  EXPECT_EQ(meter.stats(At(2)).download_bytes_per_second, 16'000);
  meter.AddReceived(16'000, At(2), At(12));  // a slow one does not lower what the link can do
  meter.AddReceived(16'000, At(12), At(22));
  EXPECT_EQ(meter.stats(At(22)).download_bytes_per_second, 16'000);
}

TEST(TransferMeterTest, SplitsWaitByFlight) {
  TransferMeter meter;
  meter.BeginUpload(At(0));
  meter.BeginWait(At(1));
  meter.EndUpload(At(3), true);           // 1 to 3: upload
  meter.AddReceived(1000, At(6), At(8));  // 3 to 6: others; 6 to 8: download
  meter.EndWait(At(9));
  const TransferStats stats = meter.stats(At(20));
  EXPECT_EQ(stats.wait_in_upload, At(2));
  EXPECT_EQ(stats.wait_in_download, At(2));
  EXPECT_EQ(stats.wait_undecided, At(0));
}

TEST(TransferMeterTest, LeavesOutFlightBeforeWait) {
  TransferMeter meter;
  meter.BeginWait(At(5));
  meter.AddReceived(1000, At(1), At(6));
  meter.EndWait(At(6));
  meter.AddReceived(1000, At(6), At(9));
  EXPECT_EQ(meter.stats(At(9)).wait_in_download, At(1));
}

// Time that was reported as waiting for others is not reassigned later.
TEST(TransferMeterTest, KeepsDecidedWait) {
  TransferMeter meter;
  meter.AddReceived(1000, At(0), At(1));  // a frame takes a second: two stay undecided
  meter.BeginWait(At(10));
  absl::Duration others;
  for (double now = 10; now < 15; now += 0.25) {
    const TransferStats stats = meter.stats(At(now));
    const absl::Duration sum = stats.wait_in_upload + stats.wait_in_download + stats.wait_undecided;
    EXPECT_GE(At(now) - At(10) - sum, others) << now;
    EXPECT_LE(stats.wait_undecided, At(2)) << now;
    others = At(now) - At(10) - sum;
  }
  meter.AddReceived(1000, At(11), At(15));
  EXPECT_EQ(meter.stats(At(15)).wait_in_download, At(15) - At(12.75));
}

TEST(FlightTimeTest, DatesLateFrameLate) {
  FlightTime flight;
  constexpr double kAhead = 1000;                                           // our clock
  flight.Since(At(0), At(kAhead + 0.1));                                    // the fastest: latency
  EXPECT_EQ(flight.Since(At(5), At(kAhead + 7.1)), At(kAhead + 5.1));       // 2 s for its bytes
  EXPECT_EQ(flight.Since(At(5), At(kAhead + 9.1)), At(kAhead + 7.1));       // behind the one before
  EXPECT_EQ(flight.Since(At(20), At(kAhead + 20.05)), At(kAhead + 20.05));  // faster than any
}

TEST(FlightTimeTest, FramesOfTheLogFollowEachOther) {
  FlightTime flight;
  EXPECT_EQ(flight.Since(std::nullopt, At(3)), At(3));
  EXPECT_EQ(flight.Since(std::nullopt, At(4)), At(3));
  flight.Pause(At(10));
  EXPECT_EQ(flight.Since(std::nullopt, At(11)), At(10));
}

// The peer's clock readings may be arbitrary.
TEST(FlightTimeTest, NeverBeginsAfterTheArrival) {
  FlightTime flight;
  for (const double made : {0.0, 1e18, -1e18, 5.0}) {
    EXPECT_LE(flight.Since(absl::Seconds(made), At(1)), At(1)) << made;
  }
}

}  // namespace
}  // namespace distro
