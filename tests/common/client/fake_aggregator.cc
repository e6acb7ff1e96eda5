#include "tests/common/client/fake_aggregator.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/reason.h"
#include "common/net/rpc/status.h"
#include "grpcpp/health_check_service_interface.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server_builder.h"

namespace distro {
namespace {

template <typename T>
T TakeFront(std::deque<T>* queue, T otherwise) {
  if (queue->empty()) return otherwise;
  T front = std::move(queue->front());
  queue->pop_front();
  return front;
}

}  // namespace

grpc::Status Refusal(absl::StatusCode code, absl::string_view reason, absl::string_view message,
                     absl::Duration retry_after) {
  absl::Status status = ErrorWithReason(code, reason, message);
  if (retry_after > absl::ZeroDuration()) status = WithRetryAfter(std::move(status), retry_after);
  return ToGrpcStatus(status);
}

FakeAggregator::FakeAggregator(int port, AggregatorState state) : state_(std::move(state)) {
  grpc::EnableDefaultHealthCheckService(true);  // as the real one
  grpc::ServerBuilder builder;
  builder.AddListeningPort(absl::StrCat("127.0.0.1:", port), grpc::InsecureServerCredentials(),
                           &port_);
  builder.RegisterService(this);
  builder.RegisterService(&admin_);
  server_ = builder.BuildAndStart();
}

FakeAggregator::~FakeAggregator() {
  {
    absl::MutexLock lock(&mu_);
    stopping_ = true;
    changed_.SignalAll();
  }
  server_->Shutdown(std::chrono::system_clock::now());
  server_->Wait();
}

std::string FakeAggregator::address() const { return absl::StrCat("127.0.0.1:", port_); }

void FakeAggregator::Change(const std::function<void(AggregatorState&)>& change) {
  absl::MutexLock lock(&mu_);
  change(state_);
  changed_.SignalAll();
}

bool FakeAggregator::Await(const std::function<bool(const AggregatorState&)>& until) {
  const absl::Time deadline = absl::Now() + absl::Seconds(20);
  absl::MutexLock lock(&mu_);
  while (!until(state_)) {
    if (changed_.WaitWithDeadline(&mu_, deadline)) return until(state_);
  }
  return true;
}

AggregatorState FakeAggregator::state() {
  absl::MutexLock lock(&mu_);
  return state_;
}

grpc::Status FakeAggregator::Join(grpc::ServerContext* context, const v1::JoinRequest* request,
                                  v1::JoinResponse* response) {
  absl::MutexLock lock(&mu_);
  state_.joins.push_back(*request);
  state_.peers["Join"].push_back(context->peer());
  changed_.SignalAll();
  *response = state_.join_response;
  return TakeFront(&state_.join_failures, grpc::Status::OK);
}

grpc::Status FakeAggregator::Heartbeat(grpc::ServerContext* context,
                                       const v1::HeartbeatRequest* request,
                                       v1::HeartbeatResponse* response) {
  absl::MutexLock lock(&mu_);
  state_.heartbeats.push_back(*request);
  state_.peers["Heartbeat"].push_back(context->peer());
  changed_.SignalAll();
  *response = state_.heartbeat_response;
  return TakeFront(&state_.heartbeat_failures, grpc::Status::OK);
}

grpc::Status FakeAggregator::UploadUpdate(
    grpc::ServerContext* context,
    grpc::ServerReaderWriter<v1::UploadUpdateResponse, v1::UploadUpdateRequest>* stream) {
  v1::UploadUpdateRequest request;
  if (!stream->Read(&request)) return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "no header");
  UploadScript script;
  size_t index = 0;
  Change([&](AggregatorState& state) {
    script = TakeFront(&state.uploads, UploadScript());
    index = state.seen_uploads.size();
    state.seen_uploads.push_back({request.header(), {}, false});
    state.peers["UploadUpdate"].push_back(context->peer());
  });
  if (!script.refuse.ok()) return script.refuse;
  v1::UploadUpdateResponse response;
  response.mutable_held()->mutable_segments()->Add(script.held.begin(), script.held.end());
  stream->Write(response);
  for (int frames = 0; script.cut_after_frames != frames; ++frames) {
    if (!stream->Read(&request)) {
      Change([&](AggregatorState& state) { state.seen_uploads[index].complete = true; });
      return grpc::Status::OK;
    }
    Change([&](AggregatorState& state) {
      state.seen_uploads[index].frames.push_back(request.frame());
    });
    const v1::UploadFrame& frame = request.frame();
    if (frame.offset() + frame.data().size() < frame.payload_bytes()) continue;
    response.mutable_ack()->set_segment(frame.segment());
    response.mutable_ack()->set_late(script.late);
    stream->Write(response);
  }
  return grpc::Status(grpc::StatusCode::UNAVAILABLE, "cut by the script");
}

grpc::Status FakeAggregator::SubscribeRounds(
    grpc::ServerContext* context, const v1::SubscribeRoundsRequest* request,
    grpc::ServerWriter<v1::SubscribeRoundsResponse>* writer) {
  StreamScript script;
  Change([&](AggregatorState& state) {
    state.subscriptions.push_back(*request);
    state.peers["SubscribeRounds"].push_back(context->peer());
    script = TakeFront(
        &state.streams,
        StreamScript{{}, true, grpc::Status(grpc::StatusCode::UNAVAILABLE, "the script is over")});
  });
  for (const v1::SubscribeRoundsResponse& frame : script.frames) writer->Write(frame);
  absl::MutexLock lock(&mu_);
  while (!script.ends && !stopping_ && !context->IsCancelled()) {
    changed_.WaitWithTimeout(&mu_, absl::Milliseconds(5));  // nothing signals a cancellation
  }
  return script.status;
}

grpc::Status FakeAggregator::DownloadSnapshot(
    grpc::ServerContext* context, const v1::DownloadSnapshotRequest* request,
    grpc::ServerWriter<v1::DownloadSnapshotResponse>* writer) {
  uint64_t end = 0;
  std::string snapshot;
  grpc::Status failure;
  Change([&](AggregatorState& state) {
    state.downloads.push_back(*request);
    state.peers["DownloadSnapshot"].push_back(context->peer());
    snapshot = state.snapshot;
    failure = TakeFront(&state.snapshot_failures, grpc::Status::OK);
    end = std::min<uint64_t>(TakeFront(&state.snapshot_cuts, uint64_t{snapshot.size()}),
                             snapshot.size());
  });
  if (!failure.ok()) return failure;
  const uint64_t frame_bytes = snapshot.size() / 10 + 1;
  for (uint64_t offset = request->offset(); offset < end;) {
    v1::DownloadSnapshotResponse frame;
    frame.set_offset(offset);
    frame.set_data(snapshot.substr(offset, std::min(frame_bytes, end - offset)));
    offset += frame.data().size();
    writer->Write(frame);
  }
  return end == snapshot.size() ? grpc::Status::OK
                                : grpc::Status(grpc::StatusCode::UNAVAILABLE, "cut by the script");
}

grpc::Status FakeAggregator::UploadSnapshot(
    grpc::ServerContext* context,
    grpc::ServerReaderWriter<v1::UploadSnapshotResponse, v1::UploadSnapshotRequest>* stream) {
  grpc::Status failure;
  Change([&](AggregatorState& state) {
    state.peers["UploadSnapshot"].push_back(context->peer());
    failure = TakeFront(&state.snapshot_upload_failures, grpc::Status::OK);
  });
  if (!failure.ok()) return failure;
  v1::UploadSnapshotResponse response;
  response.set_offset(0);
  stream->Write(response);
  v1::UploadSnapshotRequest request;
  while (stream->Read(&request)) {
  }
  response.mutable_stored();
  stream->Write(response);
  return grpc::Status::OK;
}

grpc::Status FakeAggregator::ReportState(grpc::ServerContext* context,
                                         const v1::ReportStateRequest* request,
                                         v1::ReportStateResponse*) {
  absl::MutexLock lock(&mu_);
  state_.reports.push_back(*request);
  state_.peers["ReportState"].push_back(context->peer());
  return TakeFront(&state_.report_failures, grpc::Status::OK);
}

grpc::Status FakeAggregator::Admin::GetRun(grpc::ServerContext* context, const v1::GetRunRequest*,
                                           v1::GetRunResponse* response) {
  grpc::Status status;
  aggregator_->Change([&](AggregatorState& state) {
    state.peers["GetRun"].push_back(context->peer());
    *response = state.run;
    status = TakeFront(&state.run_failures, grpc::Status::OK);
  });
  return status;
}

grpc::Status FakeAggregator::Leave(grpc::ServerContext*, const v1::LeaveRequest* request,
                                   v1::LeaveResponse*) {
  Change([&](AggregatorState& state) { state.leaves.push_back(*request); });
  return grpc::Status::OK;
}

}  // namespace distro
