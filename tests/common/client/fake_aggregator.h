// An aggregator that plays a script, over real gRPC on a free port, so that a test can provoke
// faults that a real one does not make on demand. Records all requests. Thread-safe.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "distro/v1/admin.grpc.pb.h"
#include "distro/v1/aggregator.grpc.pb.h"
#include "grpcpp/server.h"

namespace distro {

// A refusal with its reason, as the aggregator sends it; `retry_after` 0: without one.
grpc::Status Refusal(absl::StatusCode code, absl::string_view reason,
                     absl::string_view message = "",
                     absl::Duration retry_after = absl::ZeroDuration());

// One subscription: frames, then a status; without one the stream stays open.
struct StreamScript {
  std::vector<v1::SubscribeRoundsResponse> frames;
  bool ends = false;
  grpc::Status status;
};

// One upload.
struct UploadScript {
  grpc::Status refuse;         // not OK: the answer to the header
  std::vector<uint32_t> held;  // otherwise this is
  bool late = false;           // every acknowledgement says so
  int cut_after_frames = -1;   // then the stream ends with Unavailable
};

// The content of one upload.
struct SeenUpload {
  v1::UploadHeader header;
  std::vector<v1::UploadFrame> frames;
  bool complete = false;  // the worker finished sending
};

// The script and the record. `change` and `until` run under the lock.
struct AggregatorState {
  std::deque<grpc::Status> join_failures;  // of the next Joins
  std::deque<grpc::Status> heartbeat_failures;
  v1::JoinResponse join_response;
  v1::HeartbeatResponse heartbeat_response;
  std::deque<StreamScript> streams;  // of the next subscriptions; Unavailable when there is none
  std::deque<UploadScript> uploads;  // of the next uploads; accepted when there is none
  std::string snapshot;
  std::deque<uint64_t> snapshot_cuts;  // the next downloads end Unavailable after so many bytes
  std::deque<grpc::Status> snapshot_failures;  // of the next downloads
  v1::GetRunResponse run;
  std::deque<grpc::Status> run_failures;  // of the next GetRuns
  std::deque<grpc::Status> report_failures;
  std::deque<grpc::Status> snapshot_upload_failures;

  std::vector<v1::JoinRequest> joins;
  std::vector<v1::HeartbeatRequest> heartbeats;
  std::vector<v1::SubscribeRoundsRequest> subscriptions;
  std::vector<SeenUpload> seen_uploads;
  std::vector<v1::DownloadSnapshotRequest> downloads;
  std::vector<v1::LeaveRequest> leaves;
  std::vector<v1::ReportStateRequest> reports;
  // Address and port of the caller of each call, by rpc: they identify the connection.
  std::map<std::string, std::vector<std::string>> peers;
};

class FakeAggregator final : public v1::AggregatorService::Service {
 public:
  // `port` 0: a free one. `state`: of an earlier aggregator that this one replaces.
  explicit FakeAggregator(int port = 0, AggregatorState state = {});
  ~FakeAggregator() override;

  std::string address() const;

  void Change(const std::function<void(AggregatorState&)>& change);
  // Waits until `until` returns true; returns false after 20 s.
  bool Await(const std::function<bool(const AggregatorState&)>& until);
  AggregatorState state();

  grpc::Status Join(grpc::ServerContext*, const v1::JoinRequest*, v1::JoinResponse*) override;
  grpc::Status Heartbeat(grpc::ServerContext*, const v1::HeartbeatRequest*,
                         v1::HeartbeatResponse*) override;
  grpc::Status UploadUpdate(
      grpc::ServerContext*,
      grpc::ServerReaderWriter<v1::UploadUpdateResponse, v1::UploadUpdateRequest>*) override;
  grpc::Status SubscribeRounds(grpc::ServerContext*, const v1::SubscribeRoundsRequest*,
                               grpc::ServerWriter<v1::SubscribeRoundsResponse>*) override;
  grpc::Status DownloadSnapshot(grpc::ServerContext*, const v1::DownloadSnapshotRequest*,
                                grpc::ServerWriter<v1::DownloadSnapshotResponse>*) override;
  grpc::Status UploadSnapshot(
      grpc::ServerContext*,
      grpc::ServerReaderWriter<v1::UploadSnapshotResponse, v1::UploadSnapshotRequest>*) override;
  grpc::Status ReportState(grpc::ServerContext*, const v1::ReportStateRequest*,
                           v1::ReportStateResponse*) override;
  grpc::Status Leave(grpc::ServerContext*, const v1::LeaveRequest*, v1::LeaveResponse*) override;

 private:
  class Admin final : public v1::AdminService::Service {
   public:
    explicit Admin(FakeAggregator* aggregator) : aggregator_(aggregator) {}
    grpc::Status GetRun(grpc::ServerContext*, const v1::GetRunRequest*,
                        v1::GetRunResponse*) override;

   private:
    FakeAggregator* const aggregator_;
  };

  Admin admin_{this};
  absl::Mutex mu_;
  absl::CondVar changed_;
  AggregatorState state_ ABSL_GUARDED_BY(mu_);
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace distro
