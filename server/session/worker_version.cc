#include "server/session/worker_version.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/reason.h"

namespace distro::server {
namespace {

constexpr size_t kMaxVersionBytes = 32;

struct MajorMinor {
  uint32_t major = 0;
  uint32_t minor = 0;
};

bool IsNumber(absl::string_view part, uint32_t* number) {
  return !part.empty() && std::ranges::all_of(part, absl::ascii_isdigit) &&
         absl::SimpleAtoi(part, number);
}

std::optional<MajorMinor> Parse(absl::string_view version) {
  const std::vector<absl::string_view> parts = absl::StrSplit(version, '.');
  MajorMinor parsed;
  uint32_t patch = 0;
  if (version.size() > kMaxVersionBytes || parts.size() != 3 ||
      !IsNumber(parts[0], &parsed.major) || !IsNumber(parts[1], &parsed.minor) ||
      !IsNumber(parts[2], &patch)) {
    return std::nullopt;
  }
  return parsed;
}

}  // namespace

absl::Status CheckWorkerVersion(absl::string_view theirs, absl::string_view ours) {
  const std::optional<MajorMinor> worker = Parse(theirs);
  const std::optional<MajorMinor> own = Parse(ours);
  if (!worker) return absl::InvalidArgumentError("version: not \"major.minor.patch\"");
  if (own && worker->major == own->major &&
      (worker->minor == own->minor || uint64_t{worker->minor} + 1 == own->minor)) {
    return absl::OkStatus();
  }
  return ErrorWithReason(
      absl::StatusCode::kFailedPrecondition, "version",
      absl::StrCat("version: this worker's is ", theirs, ", the aggregator's is ", ours,
                   ": it takes its own minor version and the one before"));
}

}  // namespace distro::server
