// Broadcast bytes as a gRPC message without a copy: every subscriber's slice counts on the same string.
#pragma once

#include "common/round_log/committed_round.h"
#include "grpcpp/support/byte_buffer.h"

namespace distro::server {

grpc::ByteBuffer ShareBytes(const SharedBytes& bytes);

}  // namespace distro::server
