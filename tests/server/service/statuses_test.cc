// The status of a fault in the caller's bytes, or on the aggregator's disk: the same code and
// reason for every method, and no paths of this machine.
#include <errno.h>

#include <filesystem>
#include <functional>
#include <thread>

#include "common/base/checksum.h"
#include "common/base/reason.h"
#include "gmock/gmock.h"
#include "google/protobuf/stubs/logging.h"
#include "server/auth/tokens/roles.h"
#include "tests/server/service/raw_call.h"
#include "tests/server/service/snapshots_fixture.h"

namespace distro::testing {
namespace {

using absl::StatusCode;
using google::protobuf::LogSilencer;
using server::DiskOperation;
using ::testing::HasSubstr;
using ::testing::Not;

class StatusesTest : public SnapshotsTest {
 protected:
  std::shared_ptr<grpc::Channel> Channel() { return TestChannel(server_->grpc_address()); }

  // `method` is "package.Service.Method".
  static absl::Status CallWithBytes(const std::shared_ptr<grpc::Channel>& channel,
                                    absl::string_view method, const std::string& bytes) {
    std::string path = absl::StrCat("/", method);
    path[path.rfind('.')] = '/';
    return CallRaw(channel, path, bytes).status;
  }

  template <typename Request, typename Response>
  absl::Status Ask(grpc::Status (v1::AdminService::Stub::*method)(grpc::ClientContext*,
                                                                  const Request&, Response*),
                   const Request& request) {
    const auto admin = v1::AdminService::NewStub(Channel());
    grpc::ClientContext context;
    Response response;
    return FromGrpcStatus(((*admin).*method)(&context, request, &response));
  }
  absl::Status Pause() { return Ask(&v1::AdminService::Stub::Pause, v1::PauseRequest()); }
  absl::Status Resume() { return Ask(&v1::AdminService::Stub::Resume, v1::ResumeRequest()); }
  absl::Status Evict() {
    v1::EvictRequest request;
    request.set_name("z");
    return Ask(&v1::AdminService::Stub::Evict, request);
  }
  absl::Status Admit() {
    v1::AdmitRequest request;
    request.set_name("z");
    return Ask(&v1::AdminService::Stub::Admit, request);
  }

  void StartWithoutARun() {
    run_.reset();
    worker_ = nullptr;
    server_ = nullptr;
    std::filesystem::remove_all(folder_.File("data"));
    StartEmpty();
  }
  // One attempt to create a run with these bytes as its snapshot.
  absl::Status Create(const std::string& bytes) {
    const Sha256Digest digest = Sha256(bytes);
    v1::CreateRunRequest request;
    *request.mutable_header()->mutable_config() = SmallConfig();
    request.mutable_header()->set_model_config_json("{}");
    request.mutable_header()->set_snapshot_bytes(bytes.size());
    request.mutable_header()->set_snapshot_sha256(digest.data(), digest.size());
    const auto admin = v1::AdminService::NewStub(Channel());
    grpc::ClientContext context;
    const auto stream = admin->CreateRun(&context);
    stream->Write(request);
    v1::CreateRunResponse response;
    if (stream->Read(&response) && !response.has_run_id()) {
      request.mutable_frame()->set_offset(response.offset());
      request.mutable_frame()->set_data(bytes.substr(response.offset()));
      stream->Write(request);
    }
    stream->WritesDone();
    while (stream->Read(&response)) {
    }
    return FromGrpcStatus(stream->Finish());
  }

  void ExpectDisk(const absl::Status& status) {
    EXPECT_EQ(status.code(), StatusCode::kUnavailable) << status;
    EXPECT_EQ(ReasonOf(status), "disk") << status;
    ExpectNoPath(std::string(status.message()));
  }
  void ExpectNoPath(const std::string& text) { EXPECT_THAT(text, Not(HasSubstr("/"))); }
};

TEST_F(StatusesTest, BytesThatDoNotParseAreMalformedForEveryMethod) {
  const LogSilencer silence;
  const std::shared_ptr<grpc::Channel> channel = Channel();
  for (const server::RpcRule& rule : server::kRpcRules) {
    for (const std::string& bytes : {std::string("\xff\xff\xff"), std::string("\x0a\x7f"),
                                     std::string("\x07"), std::string(1000, '\xff')}) {
      const absl::Status status = CallWithBytes(channel, rule.method, bytes);
      EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << rule.method << " " << status;
      EXPECT_EQ(ReasonOf(status), "malformed") << rule.method << " " << status;
    }
  }
}

TEST_F(StatusesTest, MessagesAboveTheLimitAreGrpcsToRefuse) {
  // A connection that is known: a stranger's would end before it has sent so much.
  const std::shared_ptr<grpc::Channel> channel = Channel();
  ASSERT_TRUE(CallWithBytes(channel, "distro.v1.AdminService.GetRun", "").ok());
  for (const server::RpcRule& rule : server::kRpcRules) {
    const absl::Status status =
        CallWithBytes(channel, rule.method, std::string(kMaxMessageBytes + 1, 'x'));
    EXPECT_EQ(status.code(), StatusCode::kResourceExhausted) << rule.method << " " << status;
    EXPECT_EQ(ReasonOf(status), "") << rule.method;
  }
}

TEST_F(StatusesTest, IsUnavailableForUnstoredDecision) {
  ASSERT_TRUE(Evict().ok());  // for Admit
  const std::function<absl::Status()> calls[] = {
      [this] { return Pause(); }, [this] { return Resume(); }, [this] { return Evict(); },
      [this] { return Admit(); }};
  for (const int error : {ENOSPC, EROFS, EIO, ENOENT, EEXIST}) {
    for (const auto operation :
         {DiskOperation::kCreate, DiskOperation::kWrite, DiskOperation::kFsync,
          DiskOperation::kRename, DiskOperation::kFsyncFolder}) {
      disk_.Fail({.operation = operation, .path_part = "", .error_number = error});
      for (const auto& call : calls) ExpectDisk(call());
      disk_.Heal();
    }
  }
  for (const auto& call : calls) EXPECT_TRUE(call().ok());
}

TEST_F(StatusesTest, IsUnavailableForUnstoredUpload) {
  const File file = SnapshotAt(2);
  for (const int error : {ENOSPC, EROFS, ENOENT, EEXIST}) {
    for (const auto operation :
         {DiskOperation::kCreate, DiskOperation::kWrite, DiskOperation::kLink}) {
      disk_.Fail({.operation = operation, .path_part = "", .error_number = error});
      ExpectDisk(Upload(file).status);
      disk_.Heal();
      std::filesystem::remove_all(folder_.File("data/incoming"));
      std::filesystem::create_directory(folder_.File("data/incoming"));
    }
  }
  std::filesystem::remove_all(folder_.File("data/incoming"));
  ExpectDisk(Upload(file).status);
  std::filesystem::create_directory(folder_.File("data/incoming"));
  EXPECT_TRUE(Upload(file).stored);
}

TEST_F(StatusesTest, IsUnavailableForUnstoredRun) {
  AdvanceTo(1);
  const std::string bytes = Snapshot().bytes;
  StartWithoutARun();
  for (const int error : {ENOSPC, EROFS, ENOENT, EEXIST}) {
    for (const auto operation :
         {DiskOperation::kCreate, DiskOperation::kWrite, DiskOperation::kLink,
          DiskOperation::kRename, DiskOperation::kFsyncFolder}) {
      disk_.Fail({.operation = operation, .path_part = "", .error_number = error});
      ExpectDisk(Create(bytes));
      disk_.Heal();
      std::filesystem::remove_all(folder_.File("data/incoming"));
      std::filesystem::create_directory(folder_.File("data/incoming"));
    }
  }
  EXPECT_TRUE(Create(bytes).ok());
}

// The refusal names what is wrong with them, and the upload instead of our file.
TEST_F(StatusesTest, BytesThatAreNoSnapshotAreToldWithoutAPath) {
  StartWithoutARun();
  for (const std::string& bytes : {std::string(1000, 'x'), std::string(1000, '\0')}) {
    const absl::Status status = Create(bytes);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status;
    EXPECT_THAT(status.message(), HasSubstr("snapshot"));
    ExpectNoPath(std::string(status.message()));
  }
}

// Of operators, too: the log has the path.
TEST_F(StatusesTest, NamesDiskOperationWithoutPath) {
  AdvanceTo(1);
  disk_.Fail({.operation = DiskOperation::kFsync, .path_part = "rounds"});
  worker_->Heartbeat(1, replica_->log_hash());
  while (!worker_->Upload(1, Payloads(1, 1)).status.ok()) std::this_thread::yield();  // it opens
  std::string reason;
  while (reason.find("cannot be written") == std::string::npos) {
    reason = GetRun().reason();
    std::this_thread::yield();
  }
  EXPECT_THAT(reason, HasSubstr("fsync: No space left on device"));
  ExpectNoPath(reason);
}

}  // namespace
}  // namespace distro::testing
