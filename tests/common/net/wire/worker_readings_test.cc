#include "common/net/wire/worker_readings.h"

#include <limits>
#include <string>

#include "google/protobuf/unknown_field_set.h"
#include "gtest/gtest.h"

namespace distro {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(RepairTelemetryTest, LeavesGoodReadingsAlone) {
  v1::WorkerTelemetry before;
  before.set_tokens(5);
  v1::WorkerTelemetry now = before;
  now.set_loss(2.5);
  now.set_version("0.1.0");
  AddDuration(absl::Seconds(3), now.mutable_transfer()->mutable_upload_durations());
  const std::string bytes = now.SerializeAsString();
  EXPECT_EQ(RepairTelemetry(before, &now), 0);
  EXPECT_EQ(now.SerializeAsString(), bytes);
}

TEST(RepairTelemetryTest, KeepsLastStateOverNan) {
  v1::WorkerTelemetry before;
  before.set_loss(2.5);
  v1::WorkerTelemetry now;
  now.set_loss(kNan);
  now.set_gradient_norm(-1);
  now.mutable_transfer()->set_rtt_seconds(std::numeric_limits<double>::infinity());
  EXPECT_EQ(RepairTelemetry(before, &now), 3);
  EXPECT_EQ(now.loss(), 2.5);
  EXPECT_FALSE(now.has_gradient_norm());
  EXPECT_FALSE(now.transfer().has_rtt_seconds());
}

TEST(RepairTelemetryTest, KeepsCountersRising) {
  v1::WorkerTelemetry before;
  before.set_tokens(10);
  before.mutable_phases()->set_wait(4);
  before.mutable_updates()->set_sent(3);
  v1::WorkerTelemetry now;
  now.set_tokens(9);
  now.mutable_phases()->set_wait(kNan);
  EXPECT_EQ(RepairTelemetry(before, &now), 3);  // a message that is not there any more is zeros
  EXPECT_EQ(now.tokens(), 10u);
  EXPECT_EQ(now.phases().wait(), 4);
  EXPECT_EQ(now.updates().sent(), 3u);
}

TEST(RepairTelemetryTest, HistogramsKeepTheirBuckets) {
  v1::WorkerTelemetry before;
  auto* durations = before.mutable_transfer()->mutable_download_durations();
  AddDuration(absl::Milliseconds(70), durations);
  AddDuration(absl::Seconds(1000), durations);
  for (const int size : {0, 12, 14, 100'000}) {
    v1::WorkerTelemetry now;
    auto* sent = now.mutable_transfer()->mutable_download_durations();
    sent->mutable_buckets()->Resize(size, 1'000);
    sent->set_sum_seconds(2'000);
    EXPECT_EQ(RepairTelemetry(before, &now), 1) << size;
    ASSERT_EQ(sent->buckets_size(), kDurationBuckets);
    EXPECT_EQ(sent->buckets(1), 1u);
    EXPECT_EQ(sent->buckets(kDurationBuckets - 1), 1u);
  }
}

TEST(RepairTelemetryTest, CountsOfAHistogramAddUp) {
  v1::WorkerTelemetry before;
  AddDuration(absl::Seconds(3), before.mutable_transfer()->mutable_upload_durations());
  v1::WorkerTelemetry now = before;
  auto* sent = now.mutable_transfer()->mutable_upload_durations();
  sent->set_buckets(0, uint64_t{1} << 63);
  sent->set_buckets(12, uint64_t{1} << 63);
  EXPECT_EQ(RepairTelemetry(before, &now), 1);
  EXPECT_EQ(sent->buckets(0), 0u);
  EXPECT_EQ(sent->buckets(12), 0u);
  sent->set_buckets(12, std::numeric_limits<uint64_t>::max() - 1);  // with the one above: just so
  EXPECT_EQ(RepairTelemetry(before, &now), 0);
}

TEST(RepairTelemetryTest, DropsFieldsThatItDoesNotKnow) {
  v1::WorkerTelemetry now;
  now.set_tokens(5);
  now.add_gpus()->set_index(1);
  const size_t size = now.ByteSizeLong();
  const std::string filler(100'000, 'x');
  now.GetReflection()->MutableUnknownFields(&now)->AddLengthDelimited(1000, filler);
  auto* durations = now.mutable_transfer()->mutable_upload_durations();
  durations->GetReflection()->MutableUnknownFields(durations)->AddLengthDelimited(1000, filler);
  auto* gpu = now.mutable_gpus(0);
  gpu->GetReflection()->MutableUnknownFields(gpu)->AddLengthDelimited(1000, filler);
  EXPECT_EQ(RepairTelemetry({}, &now), 0);
  EXPECT_LT(now.ByteSizeLong(), size + 10);
  EXPECT_EQ(now.tokens(), 5u);
}

TEST(RepairTelemetryTest, TakesAFewGpusWithNumbersOfTheirOwn) {
  v1::WorkerTelemetry now;
  for (int i = 0; i < 100; ++i) now.add_gpus()->set_index(static_cast<uint32_t>(i / 2));
  EXPECT_EQ(RepairTelemetry({}, &now), 50);
  EXPECT_EQ(now.gpus_size(), 50);
  for (int i = 0; i < 100; ++i) now.add_gpus()->set_index(static_cast<uint32_t>(1000 + i));
  EXPECT_EQ(RepairTelemetry({}, &now), 86);
  EXPECT_EQ(now.gpus_size(), 64);
}

TEST(RepairTelemetryTest, DropsBadVersion) {
  for (const char* bad : {"a b", "\"}", "1.2.3\n", "123456789012345678901234567890123"}) {
    v1::WorkerTelemetry now;
    now.set_version(bad);
    EXPECT_EQ(RepairTelemetry({}, &now), 1) << bad;
    EXPECT_EQ(now.version(), "");
  }
}

}  // namespace
}  // namespace distro
