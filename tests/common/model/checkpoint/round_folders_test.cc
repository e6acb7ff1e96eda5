#include "common/model/checkpoint/round_folders.h"

#include <filesystem>
#include <set>

#include "common/base/file.h"
#include "gtest/gtest.h"
#include "tests/testing/scratch_folder.h"

namespace distro {
namespace {

using Names = std::set<std::string>;

class RoundFoldersTest : public ::testing::Test {
 protected:
  absl::Status Write(uint64_t round, int keep, std::optional<RoundId> in_use = std::nullopt) {
    const TensorPieces pieces = PiecesOf(tensors_);
    const absl::Status status =
        WriteRoundFolder(scratch_.File("models"), {.round = RoundId(round),
                                                   .config_json = &config_,
                                                   .layout = &layout_,
                                                   .tensors = &pieces,
                                                   .companions = &companions_});
    if (!status.ok()) return status;
    return RemoveOldRoundFolders(scratch_.File("models"), RoundId(round), keep, in_use);
  }
  void WriteEach(std::initializer_list<uint64_t> rounds, int keep) {
    for (const uint64_t round : rounds) {
      const absl::Status status = Write(round, keep);
      ASSERT_TRUE(status.ok()) << status;
    }
  }
  void Make(const std::string& name) {
    ASSERT_TRUE(CreateFolders(scratch_.File("models/" + name)).ok());
  }
  Names InFolder() const {
    Names names;
    for (const auto& entry : std::filesystem::directory_iterator(scratch_.File("models")))
      names.insert(entry.path().filename().string());
    return names;
  }

  testing::ScratchFolder scratch_;
  const std::string config_ = "{}";
  const Companions companions_ = {{"tokenizer.json", "of the run"}};
  const Layout layout_ = *Layout::Create(*Manifest::Create({{"a", {2, 3}}}), kDefaultSegmentBlocks);
  const TensorBuffer tensors_{layout_};
};

// By number, not by name: round-10 is newer than round-9.
TEST_F(RoundFoldersTest, KeepTheNewest) {
  WriteEach({8, 9, 10}, 2);
  EXPECT_EQ(InFolder(), (Names{"round-10", "round-9"}));
}

TEST_F(RoundFoldersTest, KeepAllWithZero) {
  WriteEach({1, 2, 3}, 0);
  EXPECT_EQ(InFolder().size(), 3);
}

TEST_F(RoundFoldersTest, KeepTheOneInUse) {
  WriteEach({1, 2}, 0);
  EXPECT_TRUE(Write(3, 1, RoundId(1)).ok());
  EXPECT_EQ(InFolder(), (Names{"round-1", "round-3"}));
}

TEST_F(RoundFoldersTest, TouchNothingElse) {
  for (const char* name : {"round-x", "round-01", "mine", "round-", "round-x.tmp"}) Make(name);
  WriteEach({1, 2}, 1);
  EXPECT_EQ(InFolder(), (Names{"mine", "round-", "round-01", "round-2", "round-x", "round-x.tmp"}));
}

// After its aggregator went back to a backup a run reaches smaller rounds again: they must not be
// the ones that go.
TEST_F(RoundFoldersTest, OfALostHistoryDoNotCount) {
  Make("round-300");
  WriteEach({1, 2, 3}, 2);
  EXPECT_EQ(InFolder(), (Names{"round-2", "round-3", "round-300"}));
}

// Else every kill leaves one, until the disk is full.
TEST_F(RoundFoldersTest, HalvesOfEarlierProcessesGo) {
  for (const char* name : {"round-1.tmp", "round-2.removed"}) Make(name);
  WriteEach({3}, 3);
  EXPECT_EQ(InFolder(), (Names{"round-3"}));
}

// Else they would take the room that the new one needs.
TEST_F(RoundFoldersTest, HalvesGoBeforeTheNewOneIsWritten) {
  Make("round-1.tmp");
  ASSERT_TRUE(WriteFileAtomically(scratch_.File("models/round-2"), "in the way").ok());
  EXPECT_FALSE(Write(2, 1).ok());
  EXPECT_EQ(InFolder(), (Names{"round-2"}));
}

TEST_F(RoundFoldersTest, FailureLeavesNothingHalf) {
  WriteEach({1}, 1);
  ASSERT_TRUE(WriteFileAtomically(scratch_.File("models/round-2"), "in the way").ok());
  EXPECT_FALSE(Write(2, 1).ok());
  EXPECT_EQ(InFolder(), (Names{"round-1", "round-2"}));
}

}  // namespace
}  // namespace distro
