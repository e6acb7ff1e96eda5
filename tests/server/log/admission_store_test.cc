#include "server/log/admission_store.h"

#include <errno.h>

#include "absl/strings/str_cat.h"
#include "common/base/checksum.h"
#include "common/base/file.h"
#include "common/base/reason.h"
#include "common/net/wire/framed_message.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/log/snapshot_store.h"
#include "tests/testing/scratch_folder.h"
#include "tests/testing/server/faulty_disk.h"

namespace distro::server {
namespace {

using ::testing::HasSubstr;

v1::StoredAdmission SomeAdmission() {
  v1::StoredAdmission value;
  value.set_paused(true);
  value.set_pause_reason("moving house");
  for (const char* name : {"a", "b", "c"}) {
    v1::QuarantinedWorker* worker = value.add_quarantined();
    worker->set_name(name);
    worker->set_reason("by an operator");
    worker->set_round(7);
  }
  return value;
}

class AdmissionStoreTest : public ::testing::Test {
 protected:
  std::unique_ptr<AdmissionStore> Open() { return *AdmissionStore::Open(path_, &disk_); }
  static std::string Text(const v1::StoredAdmission& value) { return value.SerializeAsString(); }

  testing::ScratchFolder folder_;
  testing::FaultyDisk disk_;
  const std::string path_ = folder_.File("admission.pb");
};

TEST_F(AdmissionStoreTest, StartsWithNothingDecided) { EXPECT_EQ(Text(Open()->value()), Text({})); }

TEST_F(AdmissionStoreTest, KeepsWhatWasWritten) {
  auto store = Open();
  ASSERT_TRUE(store->Write(SomeAdmission()).ok());
  EXPECT_EQ(Text(store->value()), Text(SomeAdmission()));
  EXPECT_EQ(Text(Open()->value()), Text(SomeAdmission()));
  ASSERT_TRUE(store->Write({}).ok());
  EXPECT_EQ(Text(Open()->value()), Text({}));
}

TEST_F(AdmissionStoreTest, IsDurableBeforeItReturns) {
  ASSERT_TRUE(Open()->Write(SomeAdmission()).ok());
  std::vector<DiskOperation> operations;
  for (const auto& call : disk_.calls()) operations.push_back(call.operation);
  EXPECT_EQ(operations,
            (std::vector<DiskOperation>{DiskOperation::kUnlink, DiskOperation::kCreate,
                                        DiskOperation::kWrite, DiskOperation::kFsync,
                                        DiskOperation::kRename, DiskOperation::kFsyncFolder}));
}

TEST_F(AdmissionStoreTest, RetriesFailedWrite) {
  auto store = Open();
  for (int n = 0; n < 6; ++n) {
    disk_.FailNth(n, EROFS);
    const absl::Status status = store->Write(SomeAdmission());
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << n;
    EXPECT_EQ(ReasonOf(status), "disk");
    EXPECT_EQ(Text(store->value()), Text({}));
    const std::string found = Text(Open()->value());
    EXPECT_TRUE(found == Text({}) || n == 5) << "only the folder's fsync comes after the rename";
  }
  ASSERT_TRUE(store->Write(SomeAdmission()).ok());
  EXPECT_EQ(Text(Open()->value()), Text(SomeAdmission()));
}

TEST_F(AdmissionStoreTest, DamageIsRefusedAndSaysWhatToDo) {
  ASSERT_TRUE(WriteFileAtomically(path_, "x").ok());
  const absl::Status status = AdmissionStore::Open(path_, &disk_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr(path_ + ": "));
  EXPECT_THAT(std::string(status.message()), HasSubstr("without one remove it"));
}

template <typename Parse>
void ExpectAllDamageIsFound(const std::string& good, const Parse& parse) {
  ASSERT_TRUE(parse(good).ok());
  for (size_t i = 0; i < good.size(); ++i) {
    EXPECT_EQ(parse(good.substr(0, i)).code(), absl::StatusCode::kDataLoss) << i;
    std::string flipped = good;
    flipped[i] ^= 1 << (i % 8);
    EXPECT_EQ(parse(flipped).code(), absl::StatusCode::kDataLoss) << i;
  }
  EXPECT_EQ(parse(good + "x").code(), absl::StatusCode::kDataLoss);
}

// With the checksum of the version that it claims.
std::string OfVersion(std::string bytes, char version) {
  bytes[8] = version;
  bytes.resize(bytes.size() - 8);
  const uint64_t checksum = Xxh3(bytes);
  return bytes + std::string(reinterpret_cast<const char*>(&checksum), sizeof(checksum));
}

TEST(AdmissionFileTest, TruncatedOrFlippedAnywhere) {
  ExpectAllDamageIsFound(EncodeAdmission(SomeAdmission()),
                         [](absl::string_view bytes) { return ParseAdmission(bytes).status(); });
}

TEST(AdmissionFileTest, RefusesANewerVersionByName) {
  const std::string good = EncodeAdmission(SomeAdmission());
  const absl::Status status = ParseAdmission(OfVersion(good, 3)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ReasonOf(status), "version");
  EXPECT_EQ(status.message(),
            "format version 3 is newer than this program knows (1): use a newer version of it");
  EXPECT_EQ(ParseAdmission(OfVersion(good, 0)).status().code(), absl::StatusCode::kDataLoss);
}

TEST(AdmissionFileTest, RefusesNamesThatAreNotAscending) {
  v1::StoredAdmission value = SomeAdmission();
  value.mutable_quarantined(1)->set_name("a");
  EXPECT_EQ(ParseAdmission(EncodeAdmission(value)).status().code(), absl::StatusCode::kDataLoss);
}

TEST(AdmissionFileTest, RefusesAFileOfAnotherKind) {
  EXPECT_EQ(ParseAdmission(EncodeSnapshotsFile({})).status().code(), absl::StatusCode::kDataLoss);
}

v1::StoredSnapshots SomeSnapshots() {
  v1::StoredSnapshots stored;
  for (const uint64_t round : {10, 20}) {
    v1::SnapshotInfo* info = stored.add_snapshots();
    info->set_round(round);
    info->set_size_bytes(1234);
    info->set_sha256(std::string(32, static_cast<char>(round)));
  }
  return stored;
}

TEST(SnapshotsFileTest, TruncatedOrFlippedAnywhere) {
  ExpectAllDamageIsFound(EncodeSnapshotsFile(SomeSnapshots()), [](absl::string_view bytes) {
    return ParseSnapshotsFile(bytes).status();
  });
}

TEST(SnapshotsFileTest, RefusesListsThatCannotBe) {
  const auto refused = [](const v1::StoredSnapshots& stored) {
    return ParseSnapshotsFile(EncodeSnapshotsFile(stored)).status().code() ==
           absl::StatusCode::kDataLoss;
  };
  v1::StoredSnapshots stored = SomeSnapshots();
  EXPECT_FALSE(refused(stored));
  stored.mutable_snapshots(0)->set_round(20);
  EXPECT_TRUE(refused(stored)) << "twice the same round";
  stored = SomeSnapshots();
  stored.mutable_snapshots(0)->set_round(0);
  EXPECT_TRUE(refused(stored)) << "round 0 is in run.pb";
  stored = SomeSnapshots();
  stored.mutable_snapshots(1)->set_sha256("short");
  EXPECT_TRUE(refused(stored));
  stored = SomeSnapshots();
  *stored.add_snapshots() = stored.snapshots(1);
  stored.mutable_snapshots(2)->set_round(30);
  EXPECT_TRUE(refused(stored)) << "three";
}

}  // namespace
}  // namespace distro::server
