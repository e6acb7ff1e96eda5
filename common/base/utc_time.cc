#include "common/base/utc_time.h"

namespace distro {
namespace {

constexpr char kFormat[] = "%Y-%m-%dT%H:%M:%SZ";

}  // namespace

std::string UtcText(absl::Time time) {
  return absl::FormatTime(kFormat, time, absl::UTCTimeZone());
}

std::string DateText(absl::Time time) {
  return absl::FormatTime("%Y-%m-%d %H:%M UTC", time, absl::UTCTimeZone());
}

std::optional<absl::Time> ParseUtcText(absl::string_view text) {
  absl::Time time;
  if (!absl::ParseTime(kFormat, text, &time, nullptr)) return std::nullopt;
  return time;
}

}  // namespace distro
