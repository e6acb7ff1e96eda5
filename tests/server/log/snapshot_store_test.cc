#include "server/log/snapshot_store.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>

#include "common/base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/log/snapshot_fixture.h"

namespace distro::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using SnapshotStoreTest = SnapshotFixture;

TEST_F(SnapshotStoreTest, BeginsWithTheInitialOne) {
  EXPECT_THAT(Rounds(), ElementsAre(0));
  const v1::SnapshotInfo initial = snapshots_->List()[0];
  EXPECT_EQ(initial.SerializeAsString(), store_->run()->initial_snapshot.SerializeAsString());
  EXPECT_EQ(*snapshots_->PathOf(initial.sha256()), Data("snapshots/0.safetensors"));
}

TEST_F(SnapshotStoreTest, KeepsTheNewestTwoAndTheInitialOne) {
  for (const uint64_t round : {10, 20, 30}) Store(round);
  EXPECT_THAT(Rounds(), ElementsAre(30, 20, 0));
  EXPECT_EQ(FilesIn("snapshots"), 3);
  EXPECT_EQ(FilesIn("incoming"), 0);
  ExpectListedFilesAreWhole(*snapshots_);
  EXPECT_EQ(snapshots_->PathOf(Make(10).info.sha256()).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(snapshots_->List()[0].SerializeAsString(), Make(30).info.SerializeAsString());
}

TEST_F(SnapshotStoreTest, AreFoundAgainByAStart) {
  for (const uint64_t round : {10, 20, 30}) Store(round);
  store_.reset();
  store_ = *RunStore::Open(Data(), &disk_, &clock_, &log_);
  snapshots_ = store_->snapshots();
  EXPECT_THAT(Rounds(), ElementsAre(30, 20, 0));
  ExpectListedFilesAreWhole(*snapshots_);
}

TEST_F(SnapshotStoreTest, ContinuesUpload) {
  const Uploaded upload = Make(10);
  ASSERT_TRUE(snapshots_->AppendIncoming(upload.info, 0, upload.bytes.substr(0, 777)).ok());
  EXPECT_EQ(*snapshots_->IncomingBytes(upload.info), 777);
  const auto again = OpenAgain(Data());
  EXPECT_EQ(*again->IncomingBytes(upload.info), 777);
  EXPECT_EQ(snapshots_->AppendIncoming(upload.info, 700, "x").code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(snapshots_->Adopt(upload.info).code(), absl::StatusCode::kInvalidArgument)
      << "not complete";
  EXPECT_EQ(*snapshots_->IncomingBytes(upload.info), 777);
  ASSERT_TRUE(Send(upload).ok());
  EXPECT_TRUE(snapshots_->Adopt(upload.info).ok());
}

TEST_F(SnapshotStoreTest, AdoptsStoredAgain) {
  Store(10);
  const Uploaded upload = Make(10);
  EXPECT_EQ(*snapshots_->IncomingBytes(upload.info), upload.bytes.size());
  EXPECT_TRUE(snapshots_->Adopt(upload.info).ok());
  EXPECT_EQ(snapshots_->AppendIncoming(upload.info, 0, "x").code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(FilesIn("incoming"), 0);
}

TEST_F(SnapshotStoreTest, RefusesBytesPastSize) {
  const Uploaded upload = Make(10);
  ASSERT_TRUE(Send(upload).ok());
  EXPECT_EQ(snapshots_->AppendIncoming(upload.info, upload.bytes.size(), "x").code(),
            absl::StatusCode::kInvalidArgument);
  Uploaded other = Make(20);
  EXPECT_EQ(snapshots_->AppendIncoming(other.info, 0, other.bytes + "x").code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(*snapshots_->IncomingBytes(other.info), 0);
}

TEST_F(SnapshotStoreTest, RefusesAnnouncementsThatCannotBe) {
  const Uploaded good = Make(10);
  const auto expect_refused = [&](const v1::SnapshotInfo& info, absl::StatusCode code) {
    EXPECT_EQ(snapshots_->IncomingBytes(info).status().code(), code);
    EXPECT_EQ(snapshots_->AppendIncoming(info, 0, "x").code(), code);
    EXPECT_EQ(snapshots_->Adopt(info).code(), code);
  };
  v1::SnapshotInfo info = good.info;
  info.set_sha256("../../../etc/passwd");
  expect_refused(info, absl::StatusCode::kInvalidArgument);
  info = good.info;
  info.set_round(0);
  expect_refused(info, absl::StatusCode::kInvalidArgument);
  for (const uint64_t size : {uint64_t{0}, good.info.size_bytes() + 1, ~uint64_t{0}}) {
    info = good.info;
    info.set_size_bytes(size);
    expect_refused(info, absl::StatusCode::kInvalidArgument);
  }
  Store(10);
  Store(20);
  expect_refused(Make(10, 0.5f).info, absl::StatusCode::kAlreadyExists);
  expect_refused(Make(5).info, absl::StatusCode::kFailedPrecondition);
  Store(15);  // between the two: the older one goes
  EXPECT_THAT(Rounds(), ElementsAre(20, 15, 0));
}

TEST_F(SnapshotStoreTest, RefusesParametersThatAreNotWhatWasAnnounced) {
  const auto expect_refused = [&](const Uploaded& upload, const std::string& message) {
    ASSERT_TRUE(Send(upload).ok());
    const absl::Status status = snapshots_->Adopt(upload.info);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(message));
    EXPECT_THAT(Rounds(), ElementsAre(0));
    EXPECT_EQ(*snapshots_->IncomingBytes(upload.info), 0) << "the upload is removed";
  };
  Uploaded upload = Make(10);
  upload.info.set_state_hash(upload.info.state_hash() ^ 1);
  expect_refused(upload, "state hash");
  upload = Make(10);
  upload.bytes.back() ^= 1;
  expect_refused(upload, "SHA-256");
  expect_refused(Make(10, std::numeric_limits<float>::quiet_NaN()), "not finite");
  upload = Make(10);
  upload.bytes = std::string(upload.bytes.size(), 'x');
  upload.info.set_sha256(DigestBytes(Sha256(upload.bytes)));
  expect_refused(upload, "");
}

TEST_F(SnapshotStoreTest, LetsReaderFinishDroppedFile) {
  Store(10);
  std::ifstream file(*snapshots_->PathOf(Make(10).info.sha256()), std::ios::binary);
  Store(20);
  Store(30);
  const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  EXPECT_EQ(bytes, Make(10).bytes);
}

TEST_F(SnapshotStoreTest, KeepsTwoUploads) {
  const Uploaded one = Make(10), two = Make(20), three = Make(30);
  ASSERT_TRUE(snapshots_->AppendIncoming(one.info, 0, "1").ok());
  ASSERT_TRUE(snapshots_->AppendIncoming(two.info, 0, "2").ok());
  const auto past = std::filesystem::file_time_type::clock::now() - std::chrono::hours(1);
  for (const auto& entry : std::filesystem::directory_iterator(Data("incoming"))) {
    if (*ReadFile(entry.path().string()) == "2") std::filesystem::last_write_time(entry, past);
  }
  ASSERT_TRUE(snapshots_->AppendIncoming(three.info, 0, "3").ok());
  EXPECT_EQ(*snapshots_->IncomingBytes(one.info), 1);
  EXPECT_EQ(*snapshots_->IncomingBytes(two.info), 0);
  EXPECT_EQ(*snapshots_->IncomingBytes(three.info), 1);
}

TEST_F(SnapshotStoreTest, LeavesOutDamagedAndMissing) {
  for (const uint64_t round : {10, 20}) Store(round);
  std::string bad = *ReadFile(Data("snapshots/20.safetensors"));
  bad.back() ^= 1;
  ASSERT_TRUE(WriteFileAtomically(Data("snapshots/20.safetensors"), bad).ok());
  EXPECT_THAT(RoundsOf(*OpenAgain(Data())), ElementsAre(10, 0));
  std::filesystem::remove(Data("snapshots/10.safetensors"));
  EXPECT_THAT(RoundsOf(*OpenAgain(Data())), ElementsAre(0));
}

TEST_F(SnapshotStoreTest, RefusesDamagedList) {
  Store(10);
  ASSERT_TRUE(WriteFileAtomically(Data("snapshots.pb"), "x").ok());
  const absl::Status status =
      SnapshotStore::Open(Data(), store_->run(), Disk::Real(), &log_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr("snapshots.pb: "));
  EXPECT_THAT(std::string(status.message()), HasSubstr("without one remove it"));
}

}  // namespace
}  // namespace distro::server
