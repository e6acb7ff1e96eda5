#include "worker/exchange/snapshot_download.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/reason.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"
#include "common/rpc/frames.h"
#include "common/rpc/status.h"
#include "worker/exchange/part_file.h"
#include "worker/exchange/reason_log.h"
#include "worker/exchange/verdict.h"

namespace distro::worker {
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

// One stream. OK: all bytes are there. `*ours`: a failure is the disk's or of a bad frame, and no reason to try again.
absl::Status Stream(const Background& background, v1::AggregatorService::StubInterface* stub,
                    const v1::SnapshotInfo& snapshot, PartFile* part, bool* ours) {
  if (part->size() == snapshot.size_bytes()) return absl::OkStatus();
  SessionCall call(background.session);
  v1::DownloadSnapshotRequest request;
  request.set_sha256(snapshot.sha256());
  request.set_offset(part->size());
  const absl::Duration begin = background.clock->MonotonicNow();
  absl::Duration last = begin;  // silence after the last frame says nothing about the link's rate
  const auto stream = stub->DownloadSnapshot(call.context(), request);
  absl::Status taken;
  v1::DownloadSnapshotResponse frame;
  while (taken.ok() && stream->Read(&frame)) {
    taken = Take(frame, snapshot.size_bytes(), part);
    last = background.clock->MonotonicNow();
  }
  background.meter->AddBulk(part->size() - request.offset(), last - begin);
  if (!taken.ok()) call.context()->TryCancel();
  while (stream->Read(&frame)) {  // Finish() waits for ever while messages are unread
  }
  const absl::Status finished = FromGrpcStatus(stream->Finish());
  *ours = !taken.ok();
  DISTRO_RETURN_IF_ERROR(taken);
  if (finished.code() == absl::StatusCode::kNotFound) {
    return ErrorWithReason(absl::StatusCode::kFailedPrecondition, "pruned", finished.message());
  }
  DISTRO_RETURN_IF_ERROR(finished);
  if (part->size() == snapshot.size_bytes()) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("the snapshot ended after ", part->size(), " of ",
                                             snapshot.size_bytes(), " bytes"));
}

}  // namespace

absl::Status FetchSnapshot(const Background& background, v1::AggregatorService::StubInterface* stub,
                           const v1::SnapshotInfo& snapshot, const std::string& path) {
  DISTRO_ASSIGN_OR_RETURN(PartFile part, PartFile::Open(path, snapshot.size_bytes()));
  bool resumed = part.size() > 0;  // its first bytes may be of another snapshot
  Session* const session = background.session;
  Backoff backoff(background.options->backoff, session->worker().incarnation() + 2);
  ReasonLog reasons("snapshot download interrupted", background.log, background.clock);
  while (true) {
    const uint64_t before = part.size();
    const uint64_t returns = session->view().returns;
    bool ours = false;
    absl::Status status = Stream(background, stub, snapshot, &part, &ours);
    if (session->ended()) return session->end_status();
    if (status.ok()) {
      status = part.Finish(snapshot.sha256());
      ours = true;
    }
    if (status.ok()) return status;
    if (resumed && status.code() == absl::StatusCode::kInvalidArgument) {
      resumed = false;
      DISTRO_RETURN_IF_ERROR(part.Clear());
      continue;
    }
    const Verdict verdict = VerdictOf(status);
    if (ours || verdict == Verdict::kResync || verdict == Verdict::kEnd)
      return Annotate(status, "snapshot");
    if (verdict == Verdict::kRejoin) session->WantHeartbeat();
    background.meter->AddRetry(RetriedRpc::kSnapshot, status.code());
    reasons.Failed(status.ToString());
    if (part.size() > before) backoff.Reset();
    session->SleepUnlessBack(DelayAfter(status, &backoff), returns);
  }
}

}  // namespace distro::worker
