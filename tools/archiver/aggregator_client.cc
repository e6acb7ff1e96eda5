#include "tools/archiver/aggregator_client.h"

#include <algorithm>
#include <random>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/part_file.h"
#include "common/base/reason_log.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"
#include "common/client/follow/snapshot_transfer.h"
#include "common/client/status_action.h"
#include "common/rpc/frames.h"
#include "common/rpc/status.h"
#include "tools/archiver/archive_state.h"

namespace distro::tools {
namespace {

constexpr absl::Duration kControlTimeout = absl::Seconds(10);

using SnapshotUpload =
    grpc::ClientReaderWriterInterface<v1::UploadSnapshotRequest, v1::UploadSnapshotResponse>;

void SetDeadline(grpc::ClientContext* context) {
  context->set_deadline(absl::ToChronoTime(absl::Now() + kControlTimeout));
}

// What keeps an answer from being one to begin with.
absl::Status CheckUsable(const v1::GetRunResponse& run, uint64_t epoch) {
  if (run.run_id().empty()) return absl::UnavailableError("there is no run yet");
  if (!IsRunId(run.run_id())) return absl::InvalidArgumentError("run_id: is not a run id");
  if (run.epoch() < epoch) {
    return absl::UnavailableError(absl::StrCat("an aggregator of epoch ", run.epoch(),
                                               " answered; epoch ", epoch, " was seen already"));
  }
  if (run.snapshots().empty()) return absl::UnavailableError("there is no snapshot yet");
  for (const v1::SnapshotInfo& snapshot : run.snapshots()) {
    if (snapshot.sha256().size() != 32 || snapshot.size_bytes() == 0) {
      return absl::InvalidArgumentError("snapshots: one without a SHA-256 or a size");
    }
  }
  return absl::OkStatus();
}

// Sends what is missing after `offset`. A failed write means that the aggregator ended the call: its status says why.
void SendFrames(absl::string_view bytes, uint64_t offset, SnapshotUpload* stream, uint64_t* sent) {
  v1::UploadSnapshotRequest request;
  while (offset < bytes.size()) {
    const uint64_t size = FrameBytes(offset, bytes.size());
    request.mutable_frame()->set_offset(offset);
    request.mutable_frame()->set_data(bytes.data() + offset, size);
    if (!stream->Write(request)) return;
    offset += size;
    *sent += size;
  }
}

}  // namespace

uint64_t RandomSeed() {
  std::random_device device;
  return (uint64_t{device()} << 32) | device();
}

absl::StatusOr<std::unique_ptr<AggregatorClient>> AggregatorClient::Open(
    const ChannelOptions& channel, const BackoffOptions& backoff, Stopper* stopper, Log* log,
    const Clock* clock) {
  auto client = absl::WrapUnique(new AggregatorClient(backoff, stopper, log, clock));
  for (auto* connection : {&client->control_, &client->rounds_, &client->bulk_}) {
    DISTRO_ASSIGN_OR_RETURN(*connection, Connection::Open(channel));
  }
  return client;
}

absl::StatusOr<v1::GetRunResponse> AggregatorClient::GetRun() {
  StoppableCall call(stopper_);
  SetDeadline(call.context());
  v1::GetRunResponse response;
  const absl::Status status =
      FromGrpcStatus(control_->admin()->GetRun(call.context(), v1::GetRunRequest(), &response));
  control_->Heed(status);
  DISTRO_RETURN_IF_ERROR(status);
  return response;
}

absl::StatusOr<v1::GetRunResponse> AggregatorClient::AwaitRun(uint64_t epoch) {
  Backoff backoff(backoff_, RandomSeed());
  ReasonLog reasons("waiting for the aggregator", log_, clock_);
  while (true) {
    absl::StatusOr<v1::GetRunResponse> run = GetRun();
    absl::Status status = run.status();
    if (status.ok()) status = CheckUsable(*run, epoch);
    if (status.ok()) return run;
    if (stopper_->stopped()) return absl::CancelledError("stopped");
    if (ActionFor(status) != StatusAction::kRetry) return status;
    reasons.Failed(status.ToString());
    stopper_->Sleep(DelayAfter(status, &backoff));
  }
}

absl::Status AggregatorClient::FetchSnapshot(const v1::SnapshotInfo& snapshot,
                                             const std::string& path) {
  DISTRO_ASSIGN_OR_RETURN(PartFile part, PartFile::Open(path, snapshot.size_bytes()));
  bool resumed = part.size() > 0;  // its first bytes may be of another snapshot
  Backoff backoff(backoff_, RandomSeed());
  ReasonLog reasons("snapshot download interrupted", log_, clock_);
  while (true) {
    const uint64_t before = part.size();
    StoppableCall call(stopper_);
    const std::shared_ptr<Connection::Stub> stub = bulk_->stub();
    SnapshotStream stream = ReceiveSnapshot(stub.get(), call.context(), snapshot, &part);
    bulk_->Heed(stream.status);
    if (stream.status.ok()) stream = {.status = part.Finish(snapshot.sha256()), .ours = true};
    if (stream.status.ok()) return absl::OkStatus();
    if (resumed && stream.ours && absl::IsInvalidArgument(stream.status)) {
      resumed = false;
      DISTRO_RETURN_IF_ERROR(part.Clear());
      continue;
    }
    if (stopper_->stopped()) return absl::CancelledError("stopped");
    if (stream.ours || ActionFor(stream.status) != StatusAction::kRetry) {
      return Annotate(stream.status, "snapshot");
    }
    reasons.Failed(stream.status.ToString());
    if (part.size() > before) backoff.Reset();
    stopper_->Sleep(DelayAfter(stream.status, &backoff));
  }
}

absl::Status AggregatorClient::SendOnce(const v1::UploadSnapshotHeader& header,
                                        absl::string_view bytes, uint64_t* sent) {
  StoppableCall call(stopper_);
  const std::shared_ptr<Connection::Stub> stub = bulk_->stub();
  const std::unique_ptr<SnapshotUpload> stream = stub->UploadSnapshot(call.context());
  v1::UploadSnapshotRequest request;
  *request.mutable_header() = header;
  stream->Write(request);
  v1::UploadSnapshotResponse response;
  bool stored = false;
  if (stream->Read(&response)) {
    stored = response.has_stored();
    if (response.has_offset()) SendFrames(bytes, response.offset(), stream.get(), sent);
  }
  stream->WritesDone();
  while (stream->Read(&response)) stored |= response.has_stored();
  const absl::Status status = FromGrpcStatus(stream->Finish());
  bulk_->Heed(status);
  DISTRO_RETURN_IF_ERROR(status);
  if (stored) return absl::OkStatus();
  return absl::UnavailableError("the aggregator ended the upload without a verdict");
}

absl::Status AggregatorClient::SendSnapshot(const v1::UploadSnapshotHeader& header,
                                            absl::string_view bytes) {
  Backoff backoff(backoff_, RandomSeed());
  ReasonLog reasons("snapshot upload interrupted", log_, clock_);
  while (true) {
    uint64_t sent = 0;
    const absl::Status status = SendOnce(header, bytes, &sent);
    if (status.ok()) return status;
    if (stopper_->stopped()) return absl::CancelledError("stopped");
    if (ActionFor(status) != StatusAction::kRetry) return status;
    reasons.Failed(status.ToString());
    if (sent > 0) backoff.Reset();
    stopper_->Sleep(DelayAfter(status, &backoff));
  }
}

absl::Status AggregatorClient::ReportState(const v1::ReportStateRequest& request) {
  Backoff backoff(backoff_, RandomSeed());
  ReasonLog reasons("state not reported", log_, clock_);
  while (true) {
    absl::Status status;
    {
      StoppableCall call(stopper_);
      SetDeadline(call.context());
      v1::ReportStateResponse response;
      status = FromGrpcStatus(control_->stub()->ReportState(call.context(), request, &response));
      control_->Heed(status);
    }
    if (status.ok()) return status;
    if (stopper_->stopped()) return absl::CancelledError("stopped");
    if (ActionFor(status) != StatusAction::kRetry) return status;
    reasons.Failed(status.ToString());
    stopper_->Sleep(DelayAfter(status, &backoff));
  }
}

}  // namespace distro::tools
