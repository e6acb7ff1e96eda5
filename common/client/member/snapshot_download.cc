#include "common/client/member/snapshot_download.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/part_file.h"
#include "common/base/reason_log.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"
#include "common/client/backoff.h"
#include "common/client/follow/snapshot_transfer.h"
#include "common/client/status_action.h"

namespace distro {
namespace {

// One stream; tells the meter its rate.
SnapshotStream Stream(const Background& background, Connection* connection,
                      const v1::SnapshotInfo& snapshot, PartFile* part) {
  SessionCall call(background.session);
  call.context()->set_wait_for_ready(true);
  const uint64_t before = part->size();
  const absl::Duration begin = background.clock->MonotonicNow();
  absl::Duration last = begin;  // silence after the last frame says nothing about the link's rate
  const std::shared_ptr<Connection::Stub> stub = connection->stub();
  SnapshotStream stream = ReceiveSnapshot(stub.get(), call.context(), snapshot, part,
                                          [&] { last = background.clock->MonotonicNow(); });
  background.meter->AddBulk(part->size() - before, last - begin);
  background.meter->AddSnapshot(part->size() - before);
  connection->Heed(stream.status);
  return stream;
}

}  // namespace

absl::Status FetchSnapshot(const Background& background, Connection* connection,
                           const v1::SnapshotInfo& snapshot, const std::string& path) {
  DISTRO_ASSIGN_OR_RETURN(PartFile part, PartFile::Open(path, snapshot.size_bytes()));
  bool resumed = part.size() > 0;  // its first bytes may be of another snapshot
  Session* const session = background.session;
  Backoff backoff(background.options->backoff, session->worker().incarnation() + 2);
  ReasonLog reasons("snapshot download interrupted", background.log, background.clock);
  while (true) {
    const uint64_t before = part.size();
    const uint64_t returns = session->view().returns;
    auto [status, ours] = Stream(background, connection, snapshot, &part);
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
    const StatusAction action = ActionFor(status);
    if (ours || action == StatusAction::kResync || action == StatusAction::kEnd)
      return Annotate(status, "snapshot");
    if (action == StatusAction::kRejoin) session->WantHeartbeat();
    background.meter->AddRetry(RetriedRpc::kSnapshot, status.code());
    reasons.Failed(status.ToString());
    if (part.size() > before) backoff.Reset();
    session->SleepUnlessBack(DelayAfter(status, &backoff), returns);
  }
}

}  // namespace distro
