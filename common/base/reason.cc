#include "common/base/reason.h"

#include <cstdint>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace distro {
namespace {

constexpr absl::string_view kReasonUrl = "distro/reason";
constexpr absl::string_view kRetryAfterUrl = "distro/retry_after_ms";

}  // namespace

absl::Status ErrorWithReason(absl::StatusCode code, absl::string_view reason,
                             absl::string_view message) {
  absl::Status status(code, message);
  status.SetPayload(kReasonUrl, absl::Cord(reason));
  return status;
}

std::string ReasonOf(const absl::Status& status) {
  const auto reason = status.GetPayload(kReasonUrl);
  return reason ? std::string(*reason) : "";
}

absl::Status WithRetryAfter(absl::Status status, absl::Duration retry_after) {
  status.SetPayload(kRetryAfterUrl,
                    absl::Cord(absl::StrCat(absl::ToInt64Milliseconds(retry_after))));
  return status;
}

std::optional<absl::Duration> RetryAfterOf(const absl::Status& status) {
  const auto text = status.GetPayload(kRetryAfterUrl);
  int64_t milliseconds = 0;
  if (!text || !absl::SimpleAtoi(std::string(*text), &milliseconds)) return std::nullopt;
  return absl::Milliseconds(milliseconds);
}

}  // namespace distro
