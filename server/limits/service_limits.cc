#include "server/limits/service_limits.h"

#include "absl/strings/str_cat.h"

namespace distro::server {
namespace {

constexpr uint64_t kMinBytesPerSecond = 64 << 10;
constexpr uint64_t kMinInflightBytes = 1 << 20;
constexpr int kMaxStreams = 1 << 20;
constexpr uint64_t kMaxCallsPerSecond = 1'000'000'000;

absl::Status Refuse(absl::string_view what, absl::string_view value, absl::string_view range) {
  return absl::InvalidArgumentError(absl::StrCat(what, ": ", value, " is outside ", range));
}

}  // namespace

absl::Status ServiceLimits::Validate() const {
  if (inflight_bytes < kMinInflightBytes)
    return Refuse("--inflight_bytes_limit", absl::StrCat(inflight_bytes), "1 MiB and above");
  if (worker_bytes_per_second < kMinBytesPerSecond)
    return Refuse("--worker_rate_limit", absl::StrCat(worker_bytes_per_second), "64 KiB and above");
  if (streams < 1 || streams > kMaxStreams)
    return Refuse("--max_streams", absl::StrCat(streams), "1..1048576");
  if (snapshot_streams < 1 || snapshot_streams > kMaxStreams)
    return Refuse("snapshot_streams", absl::StrCat(snapshot_streams), "1..1048576");
  if (calls_per_second < 1 || calls_per_second > kMaxCallsPerSecond)
    return Refuse("calls_per_second", absl::StrCat(calls_per_second), "1..1000000000");
  if (stall_timeout < absl::Milliseconds(100) || stall_timeout > absl::Hours(1))
    return Refuse("--stall_timeout", absl::FormatDuration(stall_timeout), "100ms to 1h");
  if (stall_bytes < 1) return Refuse("stall_bytes", absl::StrCat(stall_bytes), "1 and above");
  return absl::OkStatus();
}

}  // namespace distro::server
