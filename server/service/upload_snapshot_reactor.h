// UploadSnapshot: receives a header, then the file from the offset in the answer, then sends the
// result of the check (docs/protocol.md, "Snapshots"). During the check it reads nothing, and the
// stream stays open.
//
// Cancels a sender that stalls. Deletes itself when gRPC is done with it.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "common/base/log.h"
#include "distro/v1/snapshot.pb.h"
#include "grpcpp/support/server_callback.h"
#include "server/call/observers.h"
#include "server/connections/connection_table.h"
#include "server/limits/stream_limiter.h"
#include "server/round/snapshot_transfers.h"
#include "server/service/raw_message.h"

namespace distro::server {

class UploadSnapshotReactor final : public RawBidiReactor {
 public:
  // `caller` is the credential's name (empty: none). All others are borrowed and outlive the
  // stream. `snapshots` is nullptr while there is no run.
  UploadSnapshotReactor(grpc::CallbackServerContext* context, const std::string& caller,
                        SnapshotTransfers* snapshots, StreamLimiter* limiter,
                        TransferObserver* observer, ConnectionTable* connections, Log* log);

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnDone() override { delete this; }

 private:
  absl::Status Handle(const v1::UploadSnapshotRequest& request);
  absl::Status OnHeader(const v1::UploadSnapshotHeader& header);
  absl::Status OnFrame(const v1::SnapshotFrame& frame);
  // Continues after a successful step.
  void Proceed();
  void Read();
  void Write(const v1::UploadSnapshotResponse& response);
  void End(const absl::Status& status);

  SnapshotTransfers* const snapshots_;
  TransferObserver* const observer_;
  ConnectionTable* const connections_;
  const std::string endpoint_;  // of the peer
  Log* const log_;
  grpc::ByteBuffer message_;              // read last
  grpc::ByteBuffer answer_;               // in flight
  std::optional<SnapshotTicket> ticket_;  // after the header
  bool offset_told_ = false;
  bool verdict_told_ = false;
  std::unique_ptr<LimitedStream> stream_;  // destroyed first: no stop afterwards
};

}  // namespace distro::server
