#include "common/net/rpc/status.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/base/reason.h"
#include "common/base/utf8.h"
#include "common/net/wire/proto_time.h"
#include "distro/v1/error.pb.h"

namespace distro {
namespace {

constexpr size_t kMaxReasonBytes = 64;
constexpr size_t kMaxDetailBytes = 1024;
// A peer may ask for more. Asking it again is cheap, and it may have been replaced meanwhile.
constexpr absl::Duration kLongestRetryAfter = absl::Minutes(1);

absl::string_view Shorten(absl::string_view message) {
  if (message.size() <= kMaxStatusMessageBytes) return message;
  message = message.substr(0, kMaxStatusMessageBytes);
  const size_t whole = ValidUtf8Prefix(message);
  return message.size() - whole < 4 ? message.substr(0, whole) : message;
}

std::string DetailsOf(const absl::Status& status) {
  v1::ErrorDetail detail;
  detail.set_reason(ReasonOf(status));
  if (const auto retry_after = RetryAfterOf(status)) {
    detail.mutable_retry_after()->set_seconds(absl::ToInt64Seconds(*retry_after));
    detail.mutable_retry_after()->set_nanos(
        static_cast<int32_t>((*retry_after % absl::Seconds(1)) / absl::Nanoseconds(1)));
  }
  return detail.SerializeAsString();
}

bool IsReason(absl::string_view reason) {
  return !reason.empty() && reason.size() <= kMaxReasonBytes &&
         reason.find_first_not_of("abcdefghijklmnopqrstuvwxyz_") == absl::string_view::npos;
}

}  // namespace

grpc::Status ToGrpcStatus(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  return grpc::Status(static_cast<grpc::StatusCode>(status.raw_code()),
                      std::string(Shorten(status.message())), DetailsOf(status));
}

absl::Status FromGrpcStatus(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  int code = status.error_code();
  if (code < 1 || code > 16) code = static_cast<int>(absl::StatusCode::kUnknown);
  const std::string text = status.error_message();
  // Of a peer: as it may be shown, whoever shows it.
  const std::string message = ShownText(Shorten(text), kMaxStatusMessageBytes);
  v1::ErrorDetail detail;
  const std::string details = status.error_details();
  if (details.size() > kMaxDetailBytes || !detail.ParseFromString(details)) detail.Clear();
  absl::Status result =
      IsReason(detail.reason())
          ? ErrorWithReason(static_cast<absl::StatusCode>(code), detail.reason(), message)
          : absl::Status(static_cast<absl::StatusCode>(code), message);
  const auto& retry_after = detail.retry_after();
  if (!detail.has_retry_after() || retry_after.seconds() < 0 || retry_after.nanos() < 0)
    return result;
  return WithRetryAfter(std::move(result), std::min(FromProto(retry_after), kLongestRetryAfter));
}

}  // namespace distro
