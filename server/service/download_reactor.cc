#include "server/service/download_reactor.h"

#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "common/net/rpc/status.h"
#include "common/net/wire/frames.h"
#include "server/service/call_checks.h"

namespace distro::server {

DownloadReactor::DownloadReactor(grpc::CallbackServerContext* context, const std::string& caller,
                                 SnapshotTransfers* snapshots, StreamLimiter* limiter,
                                 TransferObserver* observer, Log* log,
                                 const grpc::ByteBuffer& request)
    : observer_(observer), log_(log) {
  // Whenever it is stopped a write is in progress, so no status can be sent.
  auto stream = limiter->Open(StreamKind::kSnapshot,
                              [context](const absl::Status& /*why*/) { context->TryCancel(); });
  absl::Status status = stream.status();
  if (status.ok()) {
    stream_ = *std::move(stream);
    if (!caller.empty()) stream_->Identify(caller, 0);
    status = OpenFile(snapshots, request);
  }
  if (status.ok()) {
    WriteNext();
  } else {
    Finish(ToGrpcStatus(status));
  }
}

absl::Status DownloadReactor::OpenFile(SnapshotTransfers* snapshots,
                                       const grpc::ByteBuffer& bytes) {
  v1::DownloadSnapshotRequest request;
  DISTRO_RETURN_IF_ERROR(ParseMessage(bytes, &request));
  if (snapshots == nullptr) return NoRun();
  DISTRO_ASSIGN_OR_RETURN(SnapshotTransfers::StoredFile stored, snapshots->Find(request.sha256()));
  if (request.offset() > stored.size_bytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "offset: ", request.offset(), " is behind the snapshot's end at ", stored.size_bytes));
  }
  path_ = std::move(stored.path);
  offset_ = request.offset();
  size_ = stored.size_bytes;
  absl::StatusOr<FileHandle> file = OpenToRead(path_);
  if (!file.ok()) return DiskError(file.status());
  file_ = *std::move(file);
  return absl::OkStatus();
}

void DownloadReactor::WriteNext() {
  if (offset_ == size_) return Finish(grpc::Status::OK);
  if (absl::Status status = ReadFrame(); !status.ok()) return Finish(ToGrpcStatus(status));
  observer_->OnSent(TransferKind::kSnapshot, frame_.data().size());
  message_ = SerializeMessage(frame_);
  stream_->ResumeTimeout();
  StartWrite(&message_);
}

absl::Status DownloadReactor::ReadFrame() {
  std::string* data = frame_.mutable_data();
  data->resize(FrameBytes(offset_, size_));
  const ssize_t got = pread(file_.fd(), data->data(), data->size(), static_cast<off_t>(offset_));
  if (got < 0) return DiskError(ErrnoToStatus(errno, "read", path_));
  if (got == 0)
    return DiskError(
        absl::DataLossError(absl::StrCat(path_, ": ends at ", offset_, " of ", size_, " bytes")));
  data->resize(static_cast<size_t>(got));
  frame_.set_offset(offset_);
  offset_ += static_cast<uint64_t>(got);
  return absl::OkStatus();
}

absl::Status DownloadReactor::DiskError(const absl::Status& status) const {
  return WithoutPath(status, "read the snapshot", log_);
}

void DownloadReactor::OnWriteDone(bool ok) {
  if (!ok) return Finish(grpc::Status(grpc::StatusCode::CANCELLED, "the reader is gone"));
  stream_->PauseTimeout();
  stream_->Progress();
  WriteNext();
}

}  // namespace distro::server
