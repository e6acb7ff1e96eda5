#include "tools/archiver/archive_folder.h"

#include <cstring>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "common/base/checksum.h"
#include "common/base/file.h"
#include "common/base/reason.h"
#include "common/model/checkpoint/snapshot.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/scratch_folder.h"
#include "tests/tools/archiver/replica_fixture.h"

namespace distro::tools {
namespace {

using ::distro::testing::ScratchFolder;
using ::distro::testing::SmallReplica;
using ::testing::HasSubstr;

class ArchiveFolderTest : public ::testing::Test {
 protected:
  void Open() {
    folder_ = nullptr;
    auto folder = ArchiveFolder::Open(scratch_.File("data"));
    ASSERT_TRUE(folder.ok()) << folder.status();
    folder_ = *std::move(folder);
  }
  ArchiveState Save(uint64_t round) {
    small_.AdvanceTo(round);
    ArchiveState state;
    state.run_id = "run-1";
    state.epoch = 7;
    log_.mutable_run()->set_run_id("run-1");
    log_.set_data_fingerprint(absl::StrCat("before ", round));
    EXPECT_TRUE(folder_->Save(small_.replica, log_, &state).ok());
    return state;
  }
  bool Exists(const std::string& name) const {
    return std::filesystem::exists(scratch_.File("data/" + name));
  }

  ScratchFolder scratch_;
  SmallReplica small_;
  v1::StoredArchive log_;
  std::unique_ptr<ArchiveFolder> folder_;
};

TEST_F(ArchiveFolderTest, IsEmptyAtFirst) {
  Open();
  const auto held = folder_->Load();
  ASSERT_TRUE(held.ok()) << held.status();
  EXPECT_FALSE(held->has_value());
}

TEST_F(ArchiveFolderTest, BelongsToOneProcess) {
  Open();
  EXPECT_EQ(ArchiveFolder::Open(scratch_.File("data")).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST_F(ArchiveFolderTest, HoldsWhatWasSavedLast) {
  Open();
  Save(2);
  const ArchiveState saved = Save(5);
  Open();
  const auto held = folder_->Load();
  ASSERT_TRUE(held.ok()) << held.status();
  ASSERT_TRUE(held->has_value());
  EXPECT_EQ((*held)->epoch, 7);
  EXPECT_EQ((*held)->snapshot.round(), 5);
  EXPECT_EQ((*held)->snapshot.log_hash(), small_.replica.log_hash());
  EXPECT_EQ((*held)->snapshot.state_hash(), small_.replica.StateHash());
  EXPECT_EQ((*held)->snapshot.SerializeAsString(), saved.snapshot.SerializeAsString());
  TensorBuffer parameters(small_.layout);
  ASSERT_TRUE(ReadSnapshot(folder_->SnapshotPath(5), small_.layout, &parameters).ok());
  EXPECT_EQ(StateHash(small_.layout, parameters, small_.backend.get()), small_.replica.StateHash());
  EXPECT_FALSE(Exists("snapshot-2.safetensors"));
  EXPECT_EQ((*folder_->LoadLog(**held))->data_fingerprint(), "before 5");
  EXPECT_FALSE(Exists("log-2.pb"));
}

TEST_F(ArchiveFolderTest, LoadsCopyWithoutLog) {
  Open();
  ArchiveState state = Save(2);
  std::filesystem::remove(scratch_.File("data/log-2.pb"));
  EXPECT_TRUE((*folder_->Load()).has_value()) << "as older versions left it";
  EXPECT_FALSE(folder_->LoadLog(state)->has_value());
  Save(3);
  ASSERT_TRUE(WriteFileAtomically(scratch_.File("data/log-3.pb"), "damaged").ok());
  EXPECT_FALSE(folder_->LoadLog(**folder_->Load())->has_value());
  state = Save(4);
  state.run_id = "run-2";
  EXPECT_FALSE(folder_->LoadLog(state)->has_value()) << "of another run";
}

TEST_F(ArchiveFolderTest, RefusesFilesOfANewerVersion) {
  Open();
  const ArchiveState state = Save(2);
  const std::string path = scratch_.File("data/log-2.pb");
  std::string bytes = *ReadFile(path);
  bytes[8] = 9;  // the version, after the magic
  const size_t checked = bytes.size() - sizeof(uint64_t);
  const uint64_t checksum = Xxh3(absl::string_view(bytes).substr(0, checked));
  std::memcpy(&bytes[checked], &checksum, sizeof(checksum));
  ASSERT_TRUE(WriteFileAtomically(path, bytes).ok());
  const absl::Status status = folder_->LoadLog(state).status();
  EXPECT_EQ(ReasonOf(status), "version") << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(path + ": format version 9 is newer"));
}

TEST_F(ArchiveFolderTest, KeepsSizeOfSnapshots) {
  Open();
  const uint64_t bytes = Save(1).snapshot.size_bytes();
  EXPECT_EQ(Save(12).snapshot.size_bytes(), bytes);
}

// What a crash between the two writes leaves: the old state with its file, and a file that nothing
// names.
TEST_F(ArchiveFolderTest, SurvivesACrashBetweenSnapshotAndState) {
  Open();
  Save(2);
  std::filesystem::copy(folder_->SnapshotPath(2), folder_->SnapshotPath(3));
  Open();
  const auto held = folder_->Load();
  ASSERT_TRUE(held.ok()) << held.status();
  EXPECT_EQ((*held)->snapshot.round(), 2);
  Save(4);
  EXPECT_FALSE(Exists("snapshot-3.safetensors"));
}

// There is room for one more snapshot, not for two.
TEST_F(ArchiveFolderTest, RemovesWhatIsLeftOverBeforeItWrites) {
  Open();
  ArchiveState state = Save(2);
  const std::string left = scratch_.File("data/snapshot-9.safetensors.tmp");
  ASSERT_TRUE(WriteFileAtomically(left, "of a process that was killed").ok());
  ASSERT_TRUE(CreateFolders(scratch_.File("data/log-3.pb/in the way")).ok());
  small_.AdvanceTo(3);
  EXPECT_FALSE(folder_->Save(small_.replica, log_, &state).ok());
  EXPECT_FALSE(Exists("snapshot-9.safetensors.tmp"));
  EXPECT_FALSE(Exists("snapshot-3.safetensors")) << "nothing names it";
  EXPECT_EQ((*folder_->Load())->snapshot.round(), 2);
}

TEST_F(ArchiveFolderTest, NamesADamagedSnapshot) {
  Open();
  Save(2);
  absl::StatusOr<std::string> bytes = ReadFile(folder_->SnapshotPath(2));
  bytes->back() ^= 1;
  ASSERT_TRUE(WriteFileAtomically(folder_->SnapshotPath(2), *bytes).ok());
  EXPECT_EQ(folder_->Load().status().code(), absl::StatusCode::kDataLoss);
  bytes->pop_back();
  ASSERT_TRUE(WriteFileAtomically(folder_->SnapshotPath(2), *bytes).ok());
  EXPECT_EQ(folder_->Load().status().code(), absl::StatusCode::kDataLoss);
  std::filesystem::remove(folder_->SnapshotPath(2));
  EXPECT_EQ(folder_->Load().status().code(), absl::StatusCode::kDataLoss);
}

TEST_F(ArchiveFolderTest, ResetPutsEverythingAside) {
  Open();
  Save(2);
  ASSERT_TRUE(folder_->Reset().ok());
  EXPECT_FALSE((*folder_->Load()).has_value());
  EXPECT_TRUE(Exists("set_aside/state"));
  EXPECT_TRUE(Exists("set_aside/snapshot-2.safetensors"));
  EXPECT_TRUE(Exists("set_aside/log-2.pb"));
  ASSERT_TRUE(WriteFileAtomically(folder_->SnapshotPath(7), "fetched, without a state").ok());
  ASSERT_TRUE(folder_->Reset().ok());
  EXPECT_FALSE(Exists("snapshot-7.safetensors"));
  EXPECT_TRUE(Exists("set_aside/snapshot-2.safetensors")) << "there was no other copy";
  Save(3);
  ASSERT_TRUE(folder_->Reset().ok());
  EXPECT_TRUE(Exists("set_aside/snapshot-3.safetensors"));
  EXPECT_FALSE(Exists("set_aside/snapshot-2.safetensors"));
}

}  // namespace
}  // namespace distro::tools
