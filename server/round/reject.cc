#include "server/round/reject.h"

#include "absl/strings/cord.h"

namespace distro::server {
namespace {

constexpr absl::string_view kPayloadUrl = "distro/reject_reason";

}  // namespace

absl::Status RejectUpload(absl::StatusCode code, absl::string_view reason,
                          absl::string_view message) {
  absl::Status status(code, message);
  status.SetPayload(kPayloadUrl, absl::Cord(reason));
  return status;
}

std::string RejectReason(const absl::Status& status) {
  if (const auto reason = status.GetPayload(kPayloadUrl)) return std::string(*reason);
  return status.code() == absl::StatusCode::kInvalidArgument ? "malformed" : "no_session";
}

}  // namespace distro::server
