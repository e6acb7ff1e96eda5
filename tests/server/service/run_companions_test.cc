// Companion files of a run over gRPC: uploaded after the snapshot, listed, and downloaded.
#include <utility>
#include <vector>

#include "common/base/checksum.h"
#include "common/base/file.h"
#include "common/base/reason.h"
#include "common/base/version.h"
#include "common/model/checkpoint/companions.h"
#include "common/model/checkpoint/snapshot.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/service/server_fixture.h"

namespace distro::testing {
namespace {

using ::absl::StatusCode;
using ::testing::HasSubstr;

class RunCompanionsTest : public ServerTest {
 protected:
  RunCompanionsTest() {
    const std::string path = folder_.File("snapshot");
    EXPECT_TRUE(WriteSnapshot(path, layout_, TensorBuffer(layout_), {}).ok());
    snapshot_ = *ReadFile(path);
    const Sha256Digest digest = Sha256(snapshot_);
    *header_.mutable_config() = SmallConfig();
    header_.set_model_config_json("{}");
    header_.set_snapshot_bytes(snapshot_.size());
    header_.set_snapshot_sha256(digest.data(), digest.size());
    *header_.mutable_companions() = DescribeCompanions(companions_);
    upload_ = snapshot_ + companions_[0].bytes + companions_[1].bytes;
  }

  // Sends frames that end at these offsets, from the offset that the server requests.
  std::pair<v1::CreateRunResponse, absl::Status> Send(std::vector<uint64_t> ends) {
    auto stub = v1::AdminService::NewStub(TestChannel(server_->grpc_address()));
    grpc::ClientContext context;
    auto stream = stub->CreateRun(&context);
    v1::CreateRunRequest request;
    *request.mutable_header() = header_;
    stream->Write(request);
    v1::CreateRunResponse response;
    if (!stream->Read(&response)) return {response, FromGrpcStatus(stream->Finish())};
    uint64_t offset = response.offset();
    for (const uint64_t end : ends) {
      if (response.has_run_id() || end <= offset) continue;
      request.mutable_frame()->set_offset(offset);
      request.mutable_frame()->set_data(upload_.substr(offset, end - offset));
      stream->Write(request);
      offset = end;
    }
    stream->WritesDone();
    while (stream->Read(&response)) {
    }
    return {response, FromGrpcStatus(stream->Finish())};
  }

  absl::StatusOr<std::string> Download(const std::string& sha256) {
    auto stub = v1::AggregatorService::NewStub(TestChannel(server_->grpc_address()));
    grpc::ClientContext context;
    v1::DownloadSnapshotRequest request;
    request.set_sha256(sha256);
    auto reader = stub->DownloadSnapshot(&context, request);
    std::string bytes;
    v1::DownloadSnapshotResponse frame;
    while (reader->Read(&frame)) bytes += frame.data();
    const absl::Status status = FromGrpcStatus(reader->Finish());
    if (!status.ok()) return status;
    return bytes;
  }

  const Companions companions_ = {{"generation_config.json", "{\"eos\": 1}"},
                                  {"tokenizer.json", std::string(5000, 't')}};
  std::string snapshot_, upload_;
  v1::CreateRunHeader header_;
};

TEST_F(RunCompanionsTest, GoOnAfterACutAndReachEverybody) {
  StartEmpty();
  EXPECT_EQ(Send({100}).second.code(), StatusCode::kCancelled) << "cut off within the snapshot";
  EXPECT_EQ(Send({snapshot_.size(), snapshot_.size() + 4}).second.code(), StatusCode::kCancelled)
      << "cut off within the companions";
  const auto created = Send({snapshot_.size(), upload_.size()});
  ASSERT_TRUE(created.second.ok()) << created.second;
  EXPECT_TRUE(created.first.has_run_id());
  EXPECT_TRUE(Send({}).second.ok()) << "the same again";

  auto worker = NewWorker("a");
  ASSERT_TRUE(worker->Join().ok());
  ASSERT_EQ(worker->joined().companions_size(), 2);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(worker->joined().companions(i).name(), companions_[i].name);
    const auto bytes = Download(worker->joined().companions(i).sha256());
    ASSERT_TRUE(bytes.ok()) << bytes.status();
    EXPECT_EQ(*bytes, companions_[i].bytes);
  }
  EXPECT_EQ(Download(std::string(32, 'x')).status().code(), StatusCode::kNotFound);
}

TEST_F(RunCompanionsTest, AreNotMixedInOneFrame) {
  StartEmpty();
  const absl::Status both = Send({upload_.size()}).second;
  EXPECT_EQ(both.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(both.message()), HasSubstr("snapshot's end"));
  EXPECT_EQ(Send({snapshot_.size(), upload_.size()}).second.code(), StatusCode::kOk);
}

TEST_F(RunCompanionsTest, OtherBytesThanAnnouncedMakeNoRun) {
  StartEmpty();
  upload_.back() = 'x';
  const absl::Status status = Send({snapshot_.size(), upload_.size()}).second;
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("tokenizer.json"));
  upload_.back() = 't';
  EXPECT_TRUE(Send({snapshot_.size(), upload_.size()}).second.ok()) << "sent again";
}

TEST_F(RunCompanionsTest, NamesAndSizesAreCheckedBeforeAByteIsTaken) {
  StartEmpty();
  header_.mutable_companions(0)->set_name("../run.pb");
  EXPECT_EQ(Send({}).second.code(), StatusCode::kInvalidArgument);
  *header_.mutable_companions() = DescribeCompanions(companions_);
  header_.mutable_companions(1)->set_size_bytes(UINT64_MAX);
  EXPECT_EQ(Send({}).second.code(), StatusCode::kInvalidArgument);
  *header_.mutable_companions() = DescribeCompanions(companions_);
  header_.set_snapshot_bytes(UINT64_MAX);
  EXPECT_EQ(Send({}).second.code(), StatusCode::kInvalidArgument);
}

TEST_F(RunCompanionsTest, RefuseOtherTokenizerAtJoin) {
  v1::RunConfig config = SmallConfig();
  config.set_tokenizer_sha256(std::string(64, 'a'));
  Start(config);
  auto stub = v1::AggregatorService::NewStub(TestChannel(server_->grpc_address()));
  const auto join = [&](const std::string& tokenizer) {
    v1::JoinRequest request;
    request.mutable_worker()->set_name("w");
    request.mutable_worker()->set_incarnation(1);
    request.set_data_fingerprint("data");
    request.set_version(std::string(Version()));
    request.set_tokenizer(tokenizer);
    grpc::ClientContext context;
    v1::JoinResponse response;
    return FromGrpcStatus(stub->Join(&context, request, &response));
  };
  const absl::Status bytes = join("bytes");
  EXPECT_EQ(bytes.code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(ReasonOf(bytes), "other_data");
  EXPECT_EQ(join(std::string(64, 'b')).code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(join("words").code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(join(std::string(64, 'a')).ok());
  EXPECT_TRUE(join("").ok());
}

}  // namespace
}  // namespace distro::testing
