#include "common/client/follow/snapshot_fetch.h"

#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "common/base/disk_space.h"
#include "common/base/part_file.h"
#include "common/base/reason.h"
#include "common/base/reason_log.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"
#include "common/client/backoff.h"
#include "common/net/rpc/status.h"
#include "common/net/wire/frames.h"

namespace distro {
namespace {

// The result of one stream.
struct SnapshotStream {
  // OK: all bytes have arrived. FailedPrecondition, reason "pruned": the aggregator has deleted
  // this snapshot.
  absl::Status status;
  // The disk or a bad frame failed: do not retry.
  bool ours = false;
};

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

// Interprets the end of a stream; `taken` is the status of handling its frames.
SnapshotStream Judge(const absl::Status& taken, const absl::Status& finished,
                     const v1::SnapshotInfo& snapshot, const PartFile& part) {
  if (!taken.ok()) return {.status = taken, .ours = true};
  if (absl::IsNotFound(finished)) {
    return {.status = ErrorWithReason(absl::StatusCode::kFailedPrecondition, "pruned",
                                      finished.message())};
  }
  if (!finished.ok() || part.size() == snapshot.size_bytes()) return {.status = finished};
  return {.status = absl::UnavailableError(absl::StrCat("the snapshot ended after ", part.size(),
                                                        " of ", snapshot.size_bytes(), " bytes"))};
}

// One stream: appends the missing bytes to `part`, and reports the rate to the meter.
SnapshotStream Receive(const Follower& follower, Connection* connection,
                       const v1::SnapshotInfo& snapshot, PartFile* part) {
  if (part->size() == snapshot.size_bytes()) return {};
  ClientCall call(follower.state);
  call.context()->set_wait_for_ready(true);
  v1::DownloadSnapshotRequest request;
  request.set_sha256(snapshot.sha256());
  request.set_offset(part->size());
  absl::Duration last = follower.clock->MonotonicNow();
  absl::Duration moving;  // of the frames; excludes the silence after the last
  const std::shared_ptr<Connection::Stub> stub = connection->stub();
  const auto stream = stub->DownloadSnapshot(call.context(), request);
  absl::Status taken;
  v1::DownloadSnapshotResponse frame;
  while (taken.ok() && stream->Read(&frame)) {
    taken = Take(frame, snapshot.size_bytes(), part);
    const absl::Duration now = follower.clock->MonotonicNow();
    moving += std::min(now - last, TransferMeter::kLongestGap);
    last = now;
  }
  if (!taken.ok()) call.context()->TryCancel();
  while (stream->Read(&frame)) {  // Finish() does not return while messages are unread
  }
  const SnapshotStream end = Judge(taken, FromGrpcStatus(stream->Finish()), snapshot, *part);
  follower.meter->AddBulk(part->size() - request.offset(), moving);
  follower.meter->AddSnapshot(part->size() - request.offset());
  connection->Heed(end.status);
  return end;
}

}  // namespace

absl::Status FetchSnapshot(const Follower& follower, Connection* connection,
                           const v1::SnapshotInfo& snapshot, const std::string& path,
                           Mirrors* mirrors) {
  DISTRO_ASSIGN_OR_RETURN(PartFile part, PartFile::Open(path, snapshot.size_bytes()));
  // Before anything is fetched, rather than when the disk is full.
  DISTRO_RETURN_IF_ERROR(CheckRoom(path, snapshot.size_bytes() - part.size()));
  // Its first bytes may belong to another snapshot, or come from a mirror that lies.
  bool doubtful = part.size() > 0;
  bool mirrored = false;
  Backoff backoff(follower.backoff, follower.seed + 2);
  ReasonLog reasons("snapshot download interrupted", follower.log, follower.clock);
  while (true) {
    const uint64_t before = part.size();
    const ClientView start = follower.state->view();
    if (mirrors != nullptr && mirrors->usable() && part.size() < snapshot.size_bytes()) {
      const absl::Status appended = mirrors->Append(snapshot, &part);
      if (!appended.ok() && !absl::IsUnavailable(appended) && !follower.state->ended())
        return Annotate(appended, "snapshot");
      mirrored |= part.size() > before;
      doubtful |= mirrored;
    }
    auto [status, ours] = Receive(follower, connection, snapshot, &part);
    if (follower.state->ended()) return follower.state->end_status();
    if (status.ok()) {
      status = part.Finish(snapshot.sha256());
      ours = true;
    }
    if (status.ok()) return status;
    if (doubtful && status.code() == absl::StatusCode::kInvalidArgument) {
      if (mirrored) {
        follower.log->Warning("mirror gave wrong bytes", {{"error", status}});
        follower.meter->AddMirrorFailure();
      }
      mirrors = nullptr;
      doubtful = false;
      DISTRO_RETURN_IF_ERROR(part.Clear());
      continue;
    }
    if (ours || !MayPass(follower, status)) return Annotate(status, "snapshot");
    follower.meter->AddRetry(RetriedRpc::kSnapshot, status.code());
    reasons.Failed(status.ToString());
    if (part.size() > before) backoff.Reset();
    follower.state->SleepUnlessNews(DelayAfter(status, &backoff), start);
  }
}

absl::Status FetchCompanion(const Follower& follower, Connection* connection,
                            const v1::CompanionFile& file, const std::string& path) {
  v1::SnapshotInfo info;
  info.set_size_bytes(file.size_bytes());
  info.set_sha256(file.sha256());
  return Annotate(FetchSnapshot(follower, connection, info, path), file.name());
}

}  // namespace distro
