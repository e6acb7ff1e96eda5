#include "tools/archiver/aggregator_client.h"

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/time/time.h"
#include "common/base/reason_log.h"
#include "common/base/status_macros.h"
#include "common/client/await_call.h"
#include "common/client/backoff.h"
#include "common/net/rpc/status.h"
#include "common/net/wire/frames.h"

namespace distro::tools {
namespace {

constexpr absl::Duration kControlTimeout = absl::Seconds(10);

using SnapshotUpload =
    grpc::ClientReaderWriterInterface<v1::UploadSnapshotRequest, v1::UploadSnapshotResponse>;

// Sends the bytes after `offset`. A failed write means that the aggregator ended the call: its
// status says why.
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

// `waits`: for a connection, since the attempt before failed. `progressed` is false at the call.
using Attempt = std::function<absl::Status(bool waits, bool* progressed)>;

// Repeats `attempt` until it succeeds or is refused for good.
absl::Status Persist(const Follower& follower, const std::string& failing, uint64_t salt,
                     const Attempt& attempt) {
  Backoff backoff(follower.backoff, follower.seed + salt);
  ReasonLog reasons(failing, follower.log, follower.clock);
  for (bool waits = false;; waits = true) {
    bool progressed = false;
    const absl::Status status = attempt(waits, &progressed);
    if (status.ok()) return status;
    if (follower.state->ended()) return follower.state->end_status();
    if (!MayPass(follower, status)) return status;
    reasons.Failed(status.ToString());
    if (progressed) backoff.Reset();
    follower.state->Sleep(DelayAfter(status, &backoff));
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<AggregatorClient>> AggregatorClient::Open(
    const ChannelOptions& channel, const Follower& follower) {
  auto client = absl::WrapUnique(new AggregatorClient(follower));
  for (auto* connection : {&client->control_, &client->rounds_, &client->snapshots_}) {
    DISTRO_ASSIGN_OR_RETURN(*connection, Connection::Open(channel));
  }
  return client;
}

absl::Status AggregatorClient::SendOnce(const v1::UploadSnapshotHeader& header,
                                        absl::string_view bytes, bool waits, uint64_t* sent) {
  ClientCall call(follower_.state);
  call.context()->set_wait_for_ready(waits);
  const std::shared_ptr<Connection::Stub> stub = snapshots_->stub();
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
  snapshots_->Heed(status);
  DISTRO_RETURN_IF_ERROR(status);
  if (stored) return absl::OkStatus();
  return absl::UnavailableError(
      "the aggregator ended the upload without saying that it stored the snapshot");
}

absl::Status AggregatorClient::SendSnapshot(const v1::UploadSnapshotHeader& header,
                                            absl::string_view bytes) {
  return Persist(follower_, "snapshot upload interrupted", 3, [&](bool waits, bool* progressed) {
    uint64_t sent = 0;
    const absl::Status status = SendOnce(header, bytes, waits, &sent);
    *progressed = sent > 0;
    return status;
  });
}

absl::Status AggregatorClient::ReportOnce(const v1::ReportStateRequest& request, bool waits) {
  ClientCall call(follower_.state);
  call.context()->set_wait_for_ready(waits);
  v1::ReportStateResponse response;
  const std::shared_ptr<Connection::Stub> stub = control_->stub();
  const absl::Status status = AwaitCall(call.context(), kControlTimeout, [&](AnswerTaker done) {
    stub->async()->ReportState(call.context(), &request, &response, std::move(done));
  });
  control_->Heed(status);
  return status;
}

absl::Status AggregatorClient::ReportState(const v1::ReportStateRequest& request) {
  return Persist(follower_, "state hash not reported", 4,
                 [&](bool waits, bool*) { return ReportOnce(request, waits); });
}

}  // namespace distro::tools
