// TLS of a client: what OpenChannel hands to gRPC. Thread-safe.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "common/client/channel_options.h"
#include "grpcpp/security/credentials.h"

namespace distro {

// Checks the files first, and says what is wrong by their names: InvalidArgument, NotFound, PermissionDenied. Requires
// ValidateClientTls(false, tls).
absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> TlsChannelCredentials(
    const ClientTls& tls);

}  // namespace distro
