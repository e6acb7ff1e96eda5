// Converts between absl::Status and grpc::Status; the only such conversion. Codes are the same. A
// message is truncated at kMaxStatusMessageBytes, so that it always fits into the trailers (8 KiB
// of metadata). The reason and the retry hint (common/base/reason.h) are sent as a v1::ErrorDetail
// in the binary details. Pure functions.
#pragma once

#include <cstddef>

#include "absl/status/status.h"
#include "grpcpp/support/status.h"

namespace distro {

inline constexpr size_t kMaxStatusMessageBytes = 1024;

grpc::Status ToGrpcStatus(const absl::Status& status);

// A code that absl does not know becomes Unknown. Details are untrusted: they are dropped unless
// they are an ErrorDetail with a reason of at most 64 characters of [a-z_].
absl::Status FromGrpcStatus(const grpc::Status& status);

}  // namespace distro
