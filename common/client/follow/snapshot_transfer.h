// A snapshot over gRPC into a file that grows, one stream at a time: who calls tries again, and the next stream goes on
// where the last one ended (docs/protocol.md). Blocking.
#pragma once

#include <functional>

#include "absl/status/status.h"
#include "common/base/part_file.h"
#include "distro/v1/aggregator.grpc.pb.h"
#include "distro/v1/snapshot.pb.h"
#include "grpcpp/client_context.h"

namespace distro {

// How one stream ended.
struct SnapshotStream {
  // OK: all bytes are there. FailedPrecondition, reason "pruned": the aggregator has dropped this snapshot.
  absl::Status status;
  // The failure is that of the disk or of a bad frame: no reason to try again.
  bool ours = false;
};

// Appends to `part` what is missing of `snapshot`. `context` is fresh; cancelling it ends the call. `on_frame` is called after
// each frame.
SnapshotStream ReceiveSnapshot(v1::AggregatorService::StubInterface* stub,
                               grpc::ClientContext* context, const v1::SnapshotInfo& snapshot,
                               PartFile* part, const std::function<void()>& on_frame = nullptr);

}  // namespace distro
