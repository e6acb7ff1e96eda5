#include "server/limits/service_limits.h"

#include <functional>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace distro::server {
namespace {

TEST(ServiceLimitsTest, IsValid) { EXPECT_TRUE(ServiceLimits().Validate().ok()); }

TEST(ServiceLimitsTest, ValuesOutsideTheirRangeAreNamed) {
  const struct {
    std::function<void(ServiceLimits&)> change;
    const char* name;
  } cases[] = {
      {[](ServiceLimits& limits) { limits.inflight_bytes = 1000; }, "--inflight_bytes_limit"},
      {[](ServiceLimits& limits) { limits.worker_bytes_per_second = 0; }, "--worker_rate_limit"},
      {[](ServiceLimits& limits) { limits.streams = 0; }, "--max_streams"},
      {[](ServiceLimits& limits) { limits.snapshot_streams = -1; }, "snapshot_streams"},
      {[](ServiceLimits& limits) { limits.calls_per_second = 0; }, "calls_per_second"},
      {[](ServiceLimits& limits) { limits.stall_timeout = absl::ZeroDuration(); },
       "--stall_timeout"},
      {[](ServiceLimits& limits) { limits.stall_timeout = absl::InfiniteDuration(); },
       "--stall_timeout"},
      {[](ServiceLimits& limits) { limits.stall_bytes = 0; }, "stall_bytes"},
  };
  for (const auto& c : cases) {
    ServiceLimits limits;
    c.change(limits);
    const absl::Status status = limits.Validate();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), ::testing::StartsWith(c.name));
  }
}

}  // namespace
}  // namespace distro::server
