// Results and snapshots by HTTP, of a whole aggregator.
#include "absl/strings/match.h"
#include "common/net/http/http_client.h"
#include "common/net/http/http_get.h"
#include "common/net/http/object_path.h"
#include "gmock/gmock.h"
#include "tests/server/service/snapshots_fixture.h"

namespace distro::testing {
namespace {

using absl::StatusCode;
using ::testing::HasSubstr;

class ObjectsTest : public SnapshotsTest {
 protected:
  ObjectsTest() {
    objects_ = "127.0.0.1:0";
    mirrors_ = {"http://mirror.example/", "https://[::1]:8443/a"};
  }

  struct Object {
    absl::Status status;
    std::string bytes;
  };
  Object Get(const std::string& path, uint64_t offset = 0) {
    HttpClient client(*ParseHttpUrl("http://" + server_->objects_address()), {});
    Object object;
    object.status = client.Get(path, offset, [&](uint64_t at, absl::string_view piece) {
      EXPECT_EQ(at, offset + object.bytes.size());
      object.bytes.append(piece.data(), piece.size());
      return absl::OkStatus();
    });
    return object;
  }
  std::string PathOf(uint64_t round, uint32_t segment, const std::string& sha256) const {
    return ObjectPath({.run_id = run_id_,
                       .result = ObjectName::Result{RoundId(round), SegmentId(segment)},
                       .sha256 = sha256});
  }
  std::string PathOf(const v1::SnapshotInfo& info) const {
    return ObjectPath({.run_id = run_id_, .sha256 = info.sha256()});
  }
  // SHA-256 of the first segment's result of round 0.
  std::string FirstSha256() {
    for (const auto& frame : Frames(0, /*objects=*/true)) {
      if (frame.has_object() && frame.object().segment() == 0) return frame.object().sha256();
    }
    ADD_FAILURE() << "no object";
    return "";
  }
  // The frames of the log from its beginning to the commit of `round`.
  std::vector<v1::SubscribeRoundsResponse> Frames(uint64_t round, bool objects) {
    v1::SubscribeRoundsRequest request;
    request.set_run_id(run_id_);
    request.set_objects(objects);
    grpc::ClientContext context;
    const auto stream = worker_->stub()->SubscribeRounds(&context, request);
    std::vector<v1::SubscribeRoundsResponse> frames(1);
    while (stream->Read(&frames.back())) {
      if (frames.back().has_commit() && frames.back().round() == round) break;
      frames.emplace_back();
    }
    context.TryCancel();
    return frames;
  }
};

TEST_F(ObjectsTest, AreTheResultsOfTheStream) {
  AdvanceTo(3);
  std::map<std::pair<uint64_t, uint32_t>, std::string> payloads;
  for (const auto& frame : Frames(2, /*objects=*/false)) {
    EXPECT_FALSE(frame.has_object());
    if (frame.has_segment())
      payloads[{frame.round(), frame.segment().segment()}] += frame.segment().data();
  }
  int objects = 0;
  for (const auto& frame : Frames(2, /*objects=*/true)) {
    EXPECT_FALSE(frame.has_segment());
    if (!frame.has_object()) continue;
    const v1::SegmentObject& named = frame.object();
    const Object object = Get(PathOf(frame.round(), named.segment(), named.sha256()));
    EXPECT_TRUE(object.status.ok()) << object.status;
    EXPECT_EQ(object.bytes, (payloads[{frame.round(), named.segment()}]));
    EXPECT_EQ(AsBytes(Sha256(object.bytes)), named.sha256());
    ++objects;
  }
  EXPECT_EQ(objects, 3 * static_cast<int>(layout_.segments()));
}

// Before its round is in the log: one segment is closed, another is missing.
TEST_F(ObjectsTest, IncludeThoseOfTheOpenRound) {
  AdvanceTo(1);
  worker_->Heartbeat(1, replica_->log_hash());
  const auto rounds = worker_->Subscribe(&layout_, 1, replica_->log_hash());
  ASSERT_TRUE(rounds->NextOpen().ok());
  v1::UploadHeader header = worker_->Header(1);
  header.set_state_hash(replica_->StateHash());
  const std::vector<SharedBytes> payloads = Payloads(1, 7);
  v1::UploadFrame frame;
  frame.set_segment(0);
  frame.set_payload_bytes(payloads[0]->size());
  frame.set_data(*payloads[0]);
  v1::SubscribeRoundsRequest request;
  request.set_run_id(run_id_);
  request.set_from_round(1);
  request.set_last_hash(replica_->log_hash());
  request.set_objects(true);
  grpc::ClientContext context;
  const auto stream = worker_->stub()->SubscribeRounds(&context, request);
  worker_->Send(header, {frame});
  v1::SubscribeRoundsResponse next;
  while (stream->Read(&next) && !next.has_object()) {
  }
  ASSERT_TRUE(next.has_object());
  const Object object = Get(PathOf(1, 0, next.object().sha256()));
  EXPECT_TRUE(object.status.ok()) << object.status;
  EXPECT_EQ(object.bytes.size(), next.object().payload_bytes());
  context.TryCancel();
}

TEST_F(ObjectsTest, AreTheSnapshots) {
  const v1::SnapshotInfo info = GetRun().snapshots(0);
  const std::string bytes = Download(info);
  EXPECT_EQ(Get(PathOf(info)).bytes, bytes);
  const Object rest = Get(PathOf(info), 100);
  EXPECT_TRUE(rest.status.ok()) << rest.status;
  EXPECT_EQ(rest.bytes, bytes.substr(100));
}

TEST_F(ObjectsTest, ServesNoOthers) {
  AdvanceTo(1);
  const std::string sha256 = FirstSha256();
  ASSERT_TRUE(Get(PathOf(0, 0, sha256)).status.ok());
  std::string other = sha256;
  other[0] ^= 1;
  v1::SnapshotInfo snapshot;
  snapshot.set_sha256(sha256);
  for (const std::string& path :
       {PathOf(0, 0, other), PathOf(0, 1, sha256), PathOf(1, 0, sha256), PathOf(7, 0, sha256),
        PathOf(0, 99, sha256), PathOf(snapshot), std::string("/"), std::string("/metrics"),
        std::string("/v1/objects/"), std::string("/v1/objects/other-1/0/0-")}) {
    EXPECT_EQ(Get(path).status.code(), StatusCode::kNotFound) << path;
  }
  EXPECT_EQ(
      HttpGet(server_->http_address(), PathOf(0, 0, sha256), absl::Seconds(20), 1 << 20)->status,
      404)
      << "on the port of the status page";
}

TEST_F(ObjectsTest, AreNotServedDamaged) {
  AdvanceTo(2);
  const std::string sha256 = FirstSha256();
  const std::string path = folder_.File("data/rounds/0000000000.record");
  std::string bytes = *ReadFile(path);
  bytes.at(20) ^= 1;
  ASSERT_TRUE(WriteFileAtomically(path, bytes).ok());
  const absl::Status status = Get(PathOf(0, 0, sha256)).status;
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("status 503"));
  EXPECT_THAT(HttpGet(server_->http_address(), "/metrics", absl::Seconds(20), 1 << 22)->body,
              HasSubstr("distro_aggregator_log_damaged_records 1"));
}

TEST_F(ObjectsTest, MirrorsAreTold) {
  const auto b = NewWorker("b");
  ASSERT_TRUE(b->Join().ok());
  EXPECT_THAT(b->joined().mirrors(), ::testing::ElementsAreArray(mirrors_));
  EXPECT_THAT(GetRun().mirrors(), ::testing::ElementsAreArray(mirrors_));
}

// An aggregator that serves none sends segment frames, whoever asks.
class NoObjectsTest : public ObjectsTest {
 protected:
  NoObjectsTest() {
    objects_.clear();
    mirrors_.clear();
  }
};

TEST_F(NoObjectsTest, SendsSegmentFramesToWhoAsksForObjects) {
  AdvanceTo(1);
  for (const auto& frame : Frames(0, /*objects=*/true)) EXPECT_FALSE(frame.has_object());
}

}  // namespace
}  // namespace distro::testing
