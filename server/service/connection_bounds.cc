#include "server/service/connection_bounds.h"

#include <algorithm>
#include <cstddef>

#include "common/rpc/frames.h"
#include "grpcpp/resource_quota.h"

namespace distro::server {
namespace {

constexpr int kMaxMetadataBytes = 8 * 1024;
constexpr int kMaxStreamsOfConnection = 32;
constexpr int kHandshakeTimeoutMs = 10'000;
// Of a stream: at a round trip of 100 ms 40 MB/s.
constexpr int kReadAheadBytes = 4 << 20;
// Only server reflection is served by threads, one for each stream.
constexpr int kMaxThreads = 32;
constexpr size_t kMinQuotaBytes = 256 << 20;  // below it gRPC ends streams that do no harm

}  // namespace

void BoundConnections(const ServiceLimits& limits, grpc::ServerBuilder* builder) {
  builder->SetMaxReceiveMessageSize(kMaxMessageBytes);
  builder->AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, kMaxMetadataBytes);
  builder->AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMaxStreamsOfConnection);
  builder->AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeTimeoutMs);
  // Half a megabyte of a compressed message is half a gigabyte before any limit is asked: our messages are never compressed.
  builder->AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
  builder->SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_DEFLATE, false);
  builder->SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_GZIP, false);
  // What may be on its way to handlers is bounded by this and not by how fast a link is (docs/security.md, "Connections").
  builder->AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, kReadAheadBytes);
  builder->SetSyncServerOption(grpc::ServerBuilder::SyncServerOption::NUM_CQS, 1);
  // gRPC's buffers may have as much again as the payloads that are arriving.
  grpc::ResourceQuota quota("distro-aggregator");
  quota.Resize(std::max<size_t>(limits.inflight_bytes, kMinQuotaBytes));
  quota.SetMaxThreads(kMaxThreads);
  builder->SetResourceQuota(quota);
}

}  // namespace distro::server
