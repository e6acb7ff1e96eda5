// The one conversion between absl::Status and grpc::Status. Codes are the same; a message is cut at
// kMaxStatusMessageBytes so that it always fits into the trailers (8 KiB of metadata). The reason
// and the retry hint (common/base/reason.h) travel as a v1::ErrorDetail in the binary details. Pure
// functions.
#pragma once

#include <cstddef>

#include "absl/status/status.h"
#include "grpcpp/support/status.h"

namespace distro {

inline constexpr size_t kMaxStatusMessageBytes = 1024;

grpc::Status ToGrpcStatus(const absl::Status& status);

// A code that absl does not know becomes Unknown. Details that are not an ErrorDetail of at most 64
// bytes of reason, [a-z_], are dropped: the peer may be anybody.
absl::Status FromGrpcStatus(const grpc::Status& status);

}  // namespace distro
