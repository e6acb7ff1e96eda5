#include "server/log/snapshot_store.h"

#include <errno.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>

#include "absl/strings/str_cat.h"
#include "common/base/reason.h"
#include "common/checkpoint/hf_folder.h"
#include "common/checkpoint/snapshot.h"
#include "common/replica/initial_snapshot.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/log/run_store.h"
#include "server/log/snapshot_check.h"
#include "tests/server/log/log_fixture.h"

namespace distro::server {
namespace {

using testing::DiskCall;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A snapshot as an archiver has it.
struct Uploaded {
  std::string bytes;
  v1::SnapshotInfo info;
};

class SnapshotStoreTest : public LogFixture {
 protected:
  void SetUp() override {
    ASSERT_TRUE(
        WriteCheckpointFolder(folder_.File("model"), "{}", layout_, TensorBuffer(layout_)).ok());
    store_ = *RunStore::Open(Data(), &disk_, &clock_, &log_);
    v1::RunConfig config;
    config.set_name("test");
    config.set_rounds(1000);
    config.set_sequence_length(8);
    config.set_samples_per_worker(1);
    ASSERT_TRUE(store_->CreateRunFromFolder(config, folder_.File("model")).ok());
    snapshots_ = store_->snapshots();
  }

  std::string Data(const std::string& name = "") const {
    return name.empty() ? folder_.File("data") : folder_.File("data/" + name);
  }

  // The parameters before a round: all of them are `value`.
  Uploaded Make(uint64_t round, float value) {
    TensorBuffer parameters(layout_);
    for (int t = 0; t < parameters.tensors(); ++t) {
      for (float& p : parameters.tensor(t)) p = value;
    }
    const std::string path = folder_.File("made");
    EXPECT_TRUE(WriteSnapshot(path, layout_, parameters, {}).ok());
    Uploaded made{*ReadFile(path), {}};
    made.info.set_round(round);
    made.info.set_size_bytes(made.bytes.size());
    made.info.set_sha256(DigestBytes(*Sha256OfFile(path)));
    made.info.set_log_hash(round * 3);
    const auto hash = CheckedStateHash(path, layout_);
    made.info.set_state_hash(hash.ok() ? *hash : 0);
    return made;
  }
  Uploaded Make(uint64_t round) { return Make(round, static_cast<float>(round)); }

  absl::Status Send(const Uploaded& upload, size_t piece = 5000) {
    auto at = snapshots_->IncomingBytes(upload.info);
    while (at.ok() && *at < upload.bytes.size()) {
      const absl::Status status = snapshots_->AppendIncoming(
          upload.info, *at, absl::string_view(upload.bytes).substr(*at, piece));
      if (!status.ok()) return status;
      at = snapshots_->IncomingBytes(upload.info);
    }
    return at.status();
  }

  void Store(uint64_t round) {
    const Uploaded upload = Make(round);
    ASSERT_TRUE(Send(upload).ok());
    const absl::Status status = snapshots_->Adopt(upload.info);
    ASSERT_TRUE(status.ok()) << status;
  }

  static std::vector<uint64_t> RoundsOf(const SnapshotStore& store) {
    std::vector<uint64_t> rounds;
    for (const v1::SnapshotInfo& info : store.List()) rounds.push_back(info.round());
    return rounds;
  }
  std::vector<uint64_t> Rounds() const { return RoundsOf(*snapshots_); }

  // As a start finds it.
  std::unique_ptr<SnapshotStore> OpenAgain(const std::string& data_dir) {
    return *SnapshotStore::Open(data_dir, store_->run(), Disk::Real(), &log_);
  }

  void ExpectListedFilesAreWhole(const SnapshotStore& store) {
    for (const v1::SnapshotInfo& info : store.List()) {
      const auto path = store.PathOf(info.sha256());
      ASSERT_TRUE(path.ok()) << path.status();
      ASSERT_TRUE(std::filesystem::exists(*path)) << *path;
      EXPECT_EQ(DigestBytes(*Sha256OfFile(*path)), info.sha256());
    }
  }

  int FilesIn(const std::string& name) const {
    int count = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(Data(name)))
      ++count;
    return count;
  }

  std::unique_ptr<RunStore> store_;
  SnapshotStore* snapshots_ = nullptr;
};

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

TEST_F(SnapshotStoreTest, AnUploadGoesOnWhereItWas) {
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

TEST_F(SnapshotStoreTest, AStoredOneAgainIsFine) {
  Store(10);
  const Uploaded upload = Make(10);
  EXPECT_EQ(*snapshots_->IncomingBytes(upload.info), upload.bytes.size());
  EXPECT_TRUE(snapshots_->Adopt(upload.info).ok());
  EXPECT_EQ(snapshots_->AppendIncoming(upload.info, 0, "x").code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(FilesIn("incoming"), 0);
}

TEST_F(SnapshotStoreTest, NothingGoesBeyondTheAnnouncedSize) {
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

TEST_F(SnapshotStoreTest, AReaderThatHasOpenedADroppedFileReadsItToItsEnd) {
  Store(10);
  std::ifstream file(*snapshots_->PathOf(Make(10).info.sha256()), std::ios::binary);
  Store(20);
  Store(30);
  const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  EXPECT_EQ(bytes, Make(10).bytes);
}

TEST_F(SnapshotStoreTest, TwoUnfinishedUploadsAreKept) {
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

TEST_F(SnapshotStoreTest, ADamagedOrMissingOneIsLeftOutAndTheRestServes) {
  for (const uint64_t round : {10, 20}) Store(round);
  std::string bad = *ReadFile(Data("snapshots/20.safetensors"));
  bad.back() ^= 1;
  ASSERT_TRUE(WriteFileAtomically(Data("snapshots/20.safetensors"), bad).ok());
  EXPECT_THAT(RoundsOf(*OpenAgain(Data())), ElementsAre(10, 0));
  std::filesystem::remove(Data("snapshots/10.safetensors"));
  EXPECT_THAT(RoundsOf(*OpenAgain(Data())), ElementsAre(0));
}

TEST_F(SnapshotStoreTest, ADamagedListIsRefused) {
  Store(10);
  ASSERT_TRUE(WriteFileAtomically(Data("snapshots.pb"), "x").ok());
  const absl::Status status =
      SnapshotStore::Open(Data(), store_->run(), Disk::Real(), &log_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr("snapshots.pb: "));
  EXPECT_THAT(std::string(status.message()), HasSubstr("without one remove it"));
}

TEST_F(SnapshotStoreTest, AKillAtEachOperationOfAdoptLeavesWholeSnapshots) {
  Store(10);
  Store(20);
  const Uploaded upload = Make(30);
  ASSERT_TRUE(Send(upload).ok());
  std::vector<std::string> copies;
  disk_.SetHook([&](const DiskCall&, uint64_t n) {
    copies.push_back(folder_.File(absl::StrCat("killed", n)));
    std::filesystem::copy(Data(), copies.back(), std::filesystem::copy_options::recursive);
  });
  ASSERT_TRUE(snapshots_->Adopt(upload.info).ok());
  disk_.SetHook(nullptr);
  ASSERT_GE(copies.size(), 12);
  bool stored = false;
  for (const std::string& copy : copies) {
    SCOPED_TRACE(copy);
    auto again = OpenAgain(copy);
    const std::vector<uint64_t> rounds = RoundsOf(*again);
    EXPECT_TRUE(rounds == (std::vector<uint64_t>{30, 20, 0}) ||
                (!stored && rounds == (std::vector<uint64_t>{20, 10, 0})));
    stored = stored || rounds.front() == 30;
    ExpectListedFilesAreWhole(*again);
    EXPECT_TRUE(again->Adopt(upload.info).ok());
    EXPECT_THAT(RoundsOf(*again), ElementsAre(30, 20, 0));
  }
  EXPECT_TRUE(stored);
}

TEST_F(SnapshotStoreTest, EachOperationOfAdoptFailsOnce) {
  Store(10);
  Store(20);
  const Uploaded upload = Make(30);
  for (const bool half_done : {false, true}) {
    for (int n = 0;; ++n) {
      SCOPED_TRACE(n);
      ASSERT_TRUE(Send(upload).ok());
      disk_.Fail({.error_number = EIO, .after = n, .times = 1, .half_done = half_done});
      const absl::Status status = snapshots_->Adopt(upload.info);
      disk_.Heal();
      if (!status.ok()) {
        EXPECT_EQ(ReasonOf(status), "disk") << status;
        EXPECT_THAT(Rounds(), ElementsAre(20, 10, 0));
        ExpectListedFilesAreWhole(*snapshots_);
        continue;
      }
      EXPECT_THAT(Rounds(), ElementsAre(30, 20, 0));
      ExpectListedFilesAreWhole(*snapshots_);
      ExpectListedFilesAreWhole(*OpenAgain(Data()));
      break;
    }
    store_.reset();
    std::filesystem::remove_all(Data());
    SetUp();
    Store(10);
    Store(20);
  }
}

// A page cache that took the bytes and lost them makes the next fsync succeed.
TEST_F(SnapshotStoreTest, AnUploadWhoseFsyncFailedIsSentAgain) {
  const Uploaded upload = Make(10);
  ASSERT_TRUE(Send(upload).ok());
  disk_.Fail({.operation = DiskOperation::kFsync, .error_number = EIO, .times = 1});
  EXPECT_EQ(FailedDiskOperation(snapshots_->Adopt(upload.info)), DiskOperation::kFsync);
  EXPECT_EQ(*snapshots_->IncomingBytes(upload.info), 0);
}

TEST_F(SnapshotStoreTest, AFullDiskRefusesTheFrameAndTheUploadGoesOnLater) {
  const Uploaded upload = Make(10);
  ASSERT_TRUE(snapshots_->AppendIncoming(upload.info, 0, upload.bytes.substr(0, 100)).ok());
  disk_.Fail({.operation = DiskOperation::kWrite, .error_number = ENOSPC, .half_done = true});
  const absl::Status status =
      snapshots_->AppendIncoming(upload.info, 100, upload.bytes.substr(100, 100));
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ReasonOf(status), "disk");
  EXPECT_EQ(*snapshots_->IncomingBytes(upload.info), 150) << "a part of the frame";
  disk_.Heal();
  ASSERT_TRUE(Send(upload).ok());
  EXPECT_TRUE(snapshots_->Adopt(upload.info).ok());
}

}  // namespace
}  // namespace distro::server
