#include "common/rpc/status.h"

#include <string>

#include "absl/strings/string_view.h"
#include "common/base/utf8.h"

namespace distro {
namespace {

absl::string_view Shorten(absl::string_view message) {
  if (message.size() <= kMaxStatusMessageBytes) return message;
  message = message.substr(0, kMaxStatusMessageBytes);
  const size_t whole = ValidUtf8Prefix(message);
  return message.size() - whole < 4 ? message.substr(0, whole) : message;
}

}  // namespace

grpc::Status ToGrpcStatus(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  return grpc::Status(static_cast<grpc::StatusCode>(status.raw_code()),
                      std::string(Shorten(status.message())));
}

absl::Status FromGrpcStatus(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  int code = status.error_code();
  if (code < 1 || code > 16) code = static_cast<int>(absl::StatusCode::kUnknown);
  return absl::Status(static_cast<absl::StatusCode>(code), Shorten(status.error_message()));
}

}  // namespace distro
