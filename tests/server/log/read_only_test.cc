// Readers of a data folder that do not own it: they lock, create, raise and remove nothing.
#include <filesystem>
#include <map>
#include <string>

#include "common/base/file.h"
#include "common/model/checkpoint/hf_folder.h"
#include "common/run/run_config.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/log/read_run.h"
#include "server/log/run_store.h"
#include "tests/server/log/log_fixture.h"

namespace distro::server {
namespace {

using ::testing::HasSubstr;

// Every file below a folder with its bytes.
std::map<std::string, std::string> Contents(const std::string& dir) {
  std::map<std::string, std::string> contents;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(dir)) {
    const std::string path = entry.path().string();
    contents[path] = entry.is_directory() ? "folder" : *ReadFile(path);
  }
  return contents;
}

class ReadOnlyTest : public LogFixture {
 protected:
  absl::StatusOr<std::unique_ptr<RunStore>> OpenStore() {
    return RunStore::Open(Data(), &disk_, &clock_, &log_);
  }
  std::string Data() const { return folder_.File("data"); }

  void CreateRun(RunStore* store) {
    ASSERT_TRUE(
        WriteCheckpointFolder(folder_.File("model"), "{}", layout_, TensorBuffer(layout_)).ok());
    v1::RunConfig config;
    config.set_name("test");
    config.set_rounds(10);
    config.set_method(v1::METHOD_SIGNS);
    config.set_sequence_length(8);
    config.set_samples_per_worker(1);
    config.set_workers(v1::WORKERS_PYTHON);  // their model is nobody else's
    const absl::Status status = store->CreateRunFromFolder(config, folder_.File("model"));
    ASSERT_TRUE(status.ok()) << status;
  }
};

TEST_F(ReadOnlyTest, ReadsTheRunOfAFolderThatAnAggregatorHolds) {
  auto store = OpenStore();
  ASSERT_TRUE(store.ok()) << store.status();
  CreateRun(store->get());
  ASSERT_TRUE(WriteFileAtomically(Data() + "/incoming/a.part", "half").ok());
  const auto before = Contents(Data());
  const auto run = ReadRun(Data(), SnapshotCheck::kSha256);
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ((*run)->run_id, (*store)->run()->run_id);
  EXPECT_EQ((*run)->layout->manifest().hash(), layout_.manifest().hash());
  EXPECT_EQ((*run)->initial_snapshot.state_hash(), (*store)->run()->initial_snapshot.state_hash());
  EXPECT_EQ(Contents(Data()), before);
}

TEST_F(ReadOnlyTest, SaysThatThereIsNoRun) {
  EXPECT_EQ(ReadRun(Data(), SnapshotCheck::kSha256).status().code(), absl::StatusCode::kNotFound);
  EXPECT_FALSE(std::filesystem::exists(Data()));
  ASSERT_TRUE(OpenStore().ok());
  EXPECT_EQ(ReadRun(Data(), SnapshotCheck::kSha256).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(ReadOnlyTest, NamesADamagedInitialSnapshot) {
  {
    auto store = OpenStore();
    CreateRun(store->get());
  }
  const std::string path = Data() + "/snapshots/0.safetensors";
  std::string bytes = *ReadFile(path);
  bytes.back() ^= 1;
  ASSERT_TRUE(WriteFileAtomically(path, bytes).ok());
  const absl::Status status = ReadRun(Data(), SnapshotCheck::kSha256).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr("0.safetensors"));
}

TEST_F(ReadOnlyTest, ReadsTheRoundsAndLeavesTheTemporaryFileOfTheWriter) {
  Fill(3);
  auto log = Open();
  auto writer = (*log)->Begin(RoundId(3));
  ASSERT_TRUE(writer.ok()) << writer.status();
  const auto before = Contents(Dir());
  const auto reader = RoundLog::OpenReadOnly(Dir(), &layout_, 3);
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_EQ((*reader)->next_round(), RoundId(3));
  EXPECT_EQ((*reader)->HashBefore(RoundId(3)), (*log)->HashBefore(RoundId(3)));
  EXPECT_EQ(Contents(Dir()), before);
  EXPECT_EQ(FilesThatEndWith(".tmp"), 1);
}

TEST_F(ReadOnlyTest, DoesNotCreateTheFolderOfALog) {
  EXPECT_EQ(RoundLog::OpenReadOnly(Dir(), &layout_, 0).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_FALSE(std::filesystem::exists(Dir()));
}

TEST_F(ReadOnlyTest, NamesADamagedRecord) {
  Fill(3);
  const std::string path = Path("0000000001.record");
  std::string bytes = *ReadFile(path);
  bytes[bytes.size() - 60] ^= 1;
  ASSERT_TRUE(WriteFileAtomically(path, bytes).ok());
  const absl::Status status = RoundLog::OpenReadOnly(Dir(), &layout_, 0).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr("0000000001.record"));
}

}  // namespace
}  // namespace distro::server
