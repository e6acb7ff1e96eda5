#include "tools/archiver/published_folders.h"

#include "common/base/file.h"
#include "common/model/checkpoint/hf_folder.h"
#include "gtest/gtest.h"
#include "tests/testing/scratch_folder.h"
#include "tests/tools/archiver/replica_fixture.h"

namespace distro::tools {
namespace {

using ::distro::testing::ScratchFolder;
using ::distro::testing::SmallReplica;

class PublishedFoldersTest : public ::testing::Test {
 protected:
  void PublishAt(uint64_t round) {
    small_.AdvanceTo(round);
    const absl::Status status = Publish({.dir = scratch_.File("models"), .keep = 3}, small_.replica,
                                        "{\"a\": 1}", {{"tokenizer.json", "of the run"}});
    ASSERT_TRUE(status.ok()) << status;
  }
  ScratchFolder scratch_;
  SmallReplica small_;
};

TEST_F(PublishedFoldersTest, HoldTheModel) {
  PublishAt(2);
  EXPECT_TRUE(IsPublished({.dir = scratch_.File("models"), .keep = 3}, RoundId(2)));
  EXPECT_FALSE(IsPublished({.dir = scratch_.File("models"), .keep = 3}, RoundId(3)));
  EXPECT_EQ(*ReadFile(scratch_.File("models/round-2/tokenizer.json")), "of the run");
  const auto folder = OpenCheckpointFolder(scratch_.File("models/round-2"));
  ASSERT_TRUE(folder.ok()) << folder.status();
  TensorBuffer parameters(small_.layout);
  ASSERT_TRUE(folder->ReadInto(small_.layout, &parameters).ok());
  EXPECT_EQ(StateHash(small_.layout, parameters, small_.backend.get()), small_.replica.StateHash());
}

TEST_F(PublishedFoldersTest, AreOptional) {
  EXPECT_TRUE(Publish({.dir = "", .keep = 3}, small_.replica, "{}", {}).ok());
}

}  // namespace
}  // namespace distro::tools
