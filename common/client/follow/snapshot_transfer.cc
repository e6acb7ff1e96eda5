#include "common/client/follow/snapshot_transfer.h"

#include "absl/strings/str_cat.h"
#include "common/base/reason.h"
#include "common/rpc/frames.h"
#include "common/rpc/status.h"

namespace distro {
namespace {

absl::Status Take(const v1::DownloadSnapshotResponse& frame, uint64_t size_bytes, PartFile* part) {
  const uint64_t bytes = frame.data().size();
  if (frame.offset() != part->size() || bytes == 0 || bytes > kMaxFrameBytes ||
      bytes > size_bytes - part->size()) {
    return absl::InvalidArgumentError(absl::StrCat("snapshot frame of ", bytes, " bytes at ",
                                                   frame.offset(), " where byte ", part->size(),
                                                   " of ", size_bytes, " comes next"));
  }
  return part->Append(frame.data());
}

}  // namespace

SnapshotStream ReceiveSnapshot(v1::AggregatorService::StubInterface* stub,
                               grpc::ClientContext* context, const v1::SnapshotInfo& snapshot,
                               PartFile* part, const std::function<void()>& on_frame) {
  if (part->size() == snapshot.size_bytes()) return {};
  v1::DownloadSnapshotRequest request;
  request.set_sha256(snapshot.sha256());
  request.set_offset(part->size());
  const auto stream = stub->DownloadSnapshot(context, request);
  absl::Status taken;
  v1::DownloadSnapshotResponse frame;
  while (taken.ok() && stream->Read(&frame)) {
    taken = Take(frame, snapshot.size_bytes(), part);
    if (on_frame) on_frame();
  }
  if (!taken.ok()) context->TryCancel();
  while (stream->Read(&frame)) {  // Finish() waits for ever while messages are unread
  }
  const absl::Status finished = FromGrpcStatus(stream->Finish());
  if (!taken.ok()) return {.status = taken, .ours = true};
  if (absl::IsNotFound(finished)) {
    return {.status = ErrorWithReason(absl::StatusCode::kFailedPrecondition, "pruned",
                                      finished.message())};
  }
  if (!finished.ok() || part->size() == snapshot.size_bytes()) return {.status = finished};
  return {.status = absl::UnavailableError(absl::StrCat("the snapshot ended after ", part->size(),
                                                        " of ", snapshot.size_bytes(), " bytes"))};
}

}  // namespace distro
