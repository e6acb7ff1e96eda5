#include "tools/archiver/snapshot_uploader.h"

#include <algorithm>

#include "absl/status/statusor.h"
#include "common/base/mapped_file.h"

namespace distro::tools {

SnapshotUploader::SnapshotUploader(const v1::GetRunResponse* run, Context context)
    : run_(run),
      context_(context),
      stored_round_(run->snapshots(0).round()),
      uploads_(1, [this](const Upload& upload) { Send(upload); }) {}

void SnapshotUploader::Send(const Upload& upload) {
  const uint64_t round = upload.snapshot.round();
  const absl::StatusOr<MappedFile> file = MappedFile::Open(upload.path);
  if (absl::IsNotFound(file.status())) {
    context_.log->Info("snapshot not uploaded: the folder has a newer copy", {{"round", round}});
    return;
  }
  absl::Status status = file.status();
  if (status.ok()) {
    v1::UploadSnapshotHeader header;
    header.set_run_id(run_->run_id());
    *header.mutable_snapshot() = upload.snapshot;
    status = context_.client->SendSnapshot(header, file->bytes());
  }
  if (context_.client->follower().state->ended()) return;
  if (!status.ok()) {
    context_.metrics->failures_upload->Increment();
    context_.log->Error("snapshot not stored by the aggregator: the next interval uploads another",
                        {{"round", round}, {"status", status}});
    return;
  }
  stored_round_ = std::max(stored_round_.load(), round);
  context_.metrics->snapshots_uploaded->Increment();
  context_.log->Info("snapshot stored by the aggregator",
                     {{"round", round}, {"bytes", upload.snapshot.size_bytes()}});
}

}  // namespace distro::tools
