#include "worker/train/workload.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/reason.h"
#include "common/base/utf8.h"

namespace distro::worker {

bool HasTensorsOf(const v1::JoinResponse& run, const Manifest& manifest) {
  return std::ranges::equal(run.manifest_hash(), manifest.hash(),
                            [](char a, uint8_t b) { return static_cast<uint8_t>(a) == b; });
}

absl::Status CheckInvitedRun(const std::string& invited, const v1::RunConfig& config) {
  if (invited.empty() || config.name() == invited) return absl::OkStatus();
  return ErrorWithReason(
      absl::StatusCode::kFailedPrecondition, "other_run",
      absl::StrCat("--invite: is for run ", invited, ", and the aggregator at its address holds ",
                   ShownText(config.name())));
}

}  // namespace distro::worker
