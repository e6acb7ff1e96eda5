// DownloadSnapshot: sends a file from an offset, one frame at a time. Cancels a reader that stalls.
// Deletes itself when gRPC is done with it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "common/base/file_calls.h"
#include "common/base/log.h"
#include "distro/v1/snapshot.pb.h"
#include "grpcpp/support/server_callback.h"
#include "server/call/observers.h"
#include "server/limits/stream_limiter.h"
#include "server/round/snapshot_transfers.h"
#include "server/service/raw_message.h"

namespace distro::server {

class DownloadReactor final : public RawWriteReactor {
 public:
  // Answers `request`, a serialized DownloadSnapshotRequest, of the credential `caller` (empty:
  // none). All others are borrowed and outlive the stream. `snapshots` is nullptr while there is no
  // run.
  DownloadReactor(grpc::CallbackServerContext* context, const std::string& caller,
                  SnapshotTransfers* snapshots, StreamLimiter* limiter, TransferObserver* observer,
                  Log* log, const grpc::ByteBuffer& request);

  void OnWriteDone(bool ok) override;
  void OnDone() override { delete this; }

 private:
  absl::Status OpenFile(SnapshotTransfers* snapshots, const grpc::ByteBuffer& request);
  absl::Status ReadFrame();
  absl::Status DiskError(const absl::Status& status) const;
  void WriteNext();

  TransferObserver* const observer_;
  Log* const log_;
  std::string path_;
  FileHandle file_;
  uint64_t offset_ = 0;
  uint64_t size_ = 0;
  v1::DownloadSnapshotResponse frame_;
  grpc::ByteBuffer message_;               // in flight
  std::unique_ptr<LimitedStream> stream_;  // destroyed first: no stop afterwards
};

}  // namespace distro::server
