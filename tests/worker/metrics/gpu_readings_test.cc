#include "worker/metrics/gpu_readings.h"

#include "gtest/gtest.h"

namespace distro::worker {
namespace {

TEST(GpuReaderTest, ReadsWhatTheDriverTells) {
  const auto reader = GpuReader::Open(DISTRO_FAKE_NVML);
  ASSERT_NE(reader, nullptr);
  const std::vector<GpuReading> gpus = reader->Read();
  ASSERT_EQ(gpus.size(), 2u);
  EXPECT_EQ(gpus[0].index, 0u);
  EXPECT_EQ(gpus[0].memory_used_bytes, 30'000u);
  EXPECT_EQ(gpus[0].memory_total_bytes, 80'000u);
  EXPECT_EQ(gpus[0].utilization, 0.75);
  EXPECT_EQ(gpus[1].index, 2u);
  EXPECT_EQ(gpus[1].memory_used_bytes, 90'000u);
  EXPECT_FALSE(gpus[1].utilization.has_value());
}

TEST(GpuReaderTest, WithoutADriverThereAreNone) {
  EXPECT_EQ(GpuReader::Open("libno-such-driver.so.1"), nullptr);
  EXPECT_EQ(GpuReader::Open("libc.so.6"), nullptr);  // something else
}

TEST(GpuReaderTest, ReadsThisMachine) {
  const auto reader = GpuReader::Open();
  if (reader == nullptr) GTEST_SKIP() << "no NVIDIA driver here";
  for (const GpuReading& gpu : reader->Read()) {
    EXPECT_GT(gpu.memory_total_bytes.value_or(0), uint64_t{1} << 30);
    EXPECT_LE(gpu.memory_used_bytes.value_or(0), gpu.memory_total_bytes.value_or(0));
    EXPECT_LE(gpu.utilization.value_or(0), 1.0);
  }
}

}  // namespace
}  // namespace distro::worker
