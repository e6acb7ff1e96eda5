// A scripted archiver over real gRPC: a run of one worker, and a replica that follows it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/base/checksum.h"
#include "common/model/checkpoint/snapshot.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/replica/replica.h"
#include "tests/server/service/following_worker.h"
#include "tests/server/service/server_fixture.h"

namespace distro::testing {

struct UploadResult {
  absl::Status status;
  std::optional<uint64_t> offset;
  bool stored = false;
};

class SnapshotsTest : public ServerTest {
 protected:
  struct File {
    v1::SnapshotInfo info;
    std::string bytes;
  };

  // A run of one worker, and a replica that follows it.
  void SetUp() override {
    config_.set_start_workers(1);
    config_.set_probation_rounds(0);
    config_.set_rounds(80);
    Start(config_);
    worker_ = NewActive("a");
    v1::GetRunResponse run = GetRun();
    run_id_ = run.run_id();
    parameters_.emplace(layout_);
    ReadInto(Download(run.snapshots(0)));
    replica_.emplace(&layout_, backend_.get(), std::move(*parameters_), RoundId(0), 0);
    run_.emplace(worker_.get(), &*replica_);
  }

  v1::GetRunResponse GetRun() {
    const auto admin = v1::AdminService::NewStub(TestChannel(server_->grpc_address()));
    grpc::ClientContext context;
    v1::GetRunResponse response;
    EXPECT_TRUE(admin->GetRun(&context, v1::GetRunRequest(), &response).ok());
    return response;
  }

  std::string Download(const v1::SnapshotInfo& info) {
    v1::DownloadSnapshotRequest request;
    request.set_sha256(info.sha256());
    grpc::ClientContext context;
    const auto reader = worker_->stub()->DownloadSnapshot(&context, request);
    std::string bytes;
    v1::DownloadSnapshotResponse frame;
    while (reader->Read(&frame)) bytes += frame.data();
    EXPECT_TRUE(reader->Finish().ok());
    return bytes;
  }

  void ReadInto(const std::string& bytes) {
    ASSERT_TRUE(WriteFileAtomically(folder_.File("down"), bytes).ok());
    const absl::Status status = ReadSnapshot(folder_.File("down"), layout_, &*parameters_);
    ASSERT_TRUE(status.ok()) << status;
  }

  void AdvanceTo(uint64_t round) {
    const absl::Status status = run_->AdvanceTo(round);
    ASSERT_TRUE(status.ok()) << status;
  }

  // A snapshot of the current parameters. The log confirms it after the next round is committed.
  File Snapshot() { return FileOf(*replica_); }
  File FileOf(const Replica& replica) {
    const std::string path = folder_.File("up");
    EXPECT_TRUE(WriteSnapshot(path, layout_, replica.parameters(), {}).ok());
    File file;
    file.bytes = *ReadFile(path);
    file.info.set_round(replica.next_round().value());
    file.info.set_log_hash(replica.log_hash());
    file.info.set_state_hash(replica.StateHash());
    Announce(&file);
    return file;
  }
  // A snapshot of the parameters before `round`, which is then committed.
  File SnapshotAt(uint64_t round) {
    AdvanceTo(round);
    const File file = Snapshot();
    AdvanceTo(round + 1);
    return file;
  }
  static void Announce(File* file) {
    const Sha256Digest digest = Sha256(file->bytes);
    file->info.set_size_bytes(file->bytes.size());
    file->info.set_sha256(digest.data(), digest.size());
  }

  absl::Status Report(uint64_t round, uint64_t log_hash, std::vector<uint64_t> hashes) {
    v1::ReportStateRequest request;
    request.set_run_id(run_id_);
    request.set_round(round);
    request.set_log_hash(log_hash);
    request.mutable_tensor_hashes()->Add(hashes.begin(), hashes.end());
    grpc::ClientContext context;
    v1::ReportStateResponse response;
    return FromGrpcStatus(worker_->stub()->ReportState(&context, request, &response));
  }
  absl::Status Report() {
    const auto hashes = replica_->tensor_hashes();
    return Report(replica_->next_round().value(), replica_->log_hash(),
                  {hashes.begin(), hashes.end()});
  }

  // One attempt; at most `bytes` of the file are sent, in small frames.
  UploadResult Upload(const File& file, size_t bytes = SIZE_MAX, std::string run_id = "") {
    v1::UploadSnapshotHeader header;
    header.set_run_id(run_id.empty() ? run_id_ : run_id);
    *header.mutable_snapshot() = file.info;
    v1::UploadSnapshotRequest request;
    *request.mutable_header() = header;
    grpc::ClientContext context;
    const auto stream = worker_->stub()->UploadSnapshot(&context);
    stream->Write(request);
    UploadResult result;
    v1::UploadSnapshotResponse response;
    if (stream->Read(&response)) {
      result.stored = response.has_stored();
      if (response.has_offset()) result.offset = response.offset();
      const size_t end = std::min(bytes, file.bytes.size());
      for (size_t at = response.offset(); response.has_offset() && at < end;) {
        request.mutable_frame()->set_offset(at);
        request.mutable_frame()->set_data(file.bytes.substr(at, std::min<size_t>(10000, end - at)));
        if (!stream->Write(request)) break;
        at += request.frame().data().size();
      }
    }
    stream->WritesDone();
    while (stream->Read(&response)) result.stored |= response.has_stored();
    result.status = FromGrpcStatus(stream->Finish());
    return result;
  }

  absl::Status Refusal(const File& file) {
    UploadResult result = Upload(file);
    EXPECT_FALSE(result.stored);
    EXPECT_EQ(GetRun().snapshots_size(), 1);
    return result.status;
  }

  v1::RunConfig config_ = SmallConfig();
  const std::unique_ptr<Backend> backend_ = MakeCpuBackend();
  std::string run_id_;
  std::unique_ptr<TestWorker> worker_;
  std::optional<TensorBuffer> parameters_;
  std::optional<Replica> replica_;
  std::optional<FollowingWorker> run_;
};

}  // namespace distro::testing
