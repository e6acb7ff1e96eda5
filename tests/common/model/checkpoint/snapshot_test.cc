#include "common/model/checkpoint/snapshot.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/model/checkpoint/safetensors.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/scratch_folder.h"

namespace distro {
namespace {

using ::testing::HasSubstr;

Layout LayoutOf(std::vector<TensorSpec> tensors) {
  return *Layout::Create(*Manifest::Create(std::move(tensors)), kDefaultSegmentBlocks);
}

class SnapshotTest : public ::testing::Test {
 protected:
  SnapshotTest() : layout_(LayoutOf({{"w", {3, 5}}, {"b", {7}}})), tensors_(layout_) {
    for (int i = 0; i < 2; ++i)
      std::iota(tensors_.tensor(i).begin(), tensors_.tensor(i).end(), 0.5f + 100 * i);
    const absl::Status status = WriteSnapshot(path_, layout_, tensors_, {{"round", "7"}});
    EXPECT_TRUE(status.ok()) << status;
  }

  testing::ScratchFolder folder_;
  const std::string path_ = folder_.File("snapshot");
  Layout layout_;
  TensorBuffer tensors_;
};

TEST_F(SnapshotTest, RefusesSizeOfNoModel) {
  EXPECT_TRUE(CheckSnapshotSize(ReadFile(path_)->size(), layout_.elements()).ok());
  for (const uint64_t size : {uint64_t{0}, uint64_t{4 * 22 - 1}, uint64_t{1} << 62, UINT64_MAX}) {
    EXPECT_THAT(CheckSnapshotSize(size, layout_.elements()).message(),
                HasSubstr(absl::StrCat("a snapshot of ", size,
                                       " bytes is not one of the run's model, whose 22 "
                                       "parameters need 88 to ")));
  }
}

TEST_F(SnapshotTest, ReadsBackTheSameParameters) {
  TensorBuffer read(layout_);
  const absl::Status status = ReadSnapshot(path_, layout_, &read);
  ASSERT_TRUE(status.ok()) << status;
  for (int i = 0; i < 2; ++i) EXPECT_EQ(read.tensor(i), tensors_.tensor(i));
  EXPECT_EQ(SnapshotManifest(path_)->hash(), layout_.manifest().hash());
  EXPECT_EQ(SafetensorsFile::Open(path_)->metadata().at("round"), "7");
  const std::string again = folder_.File("again");
  ASSERT_TRUE(WriteSnapshot(again, layout_, read, {{"round", "7"}}).ok());
  EXPECT_EQ(*ReadFile(again), *ReadFile(path_));
}

// As the ranks of a node hold them: the file does not show it.
TEST_F(SnapshotTest, OfPiecesIsTheSameFile) {
  const absl::Span<const float> first = tensors_.tensor(0), second = tensors_.tensor(1);
  const TensorPieces pieces = {{first.subspan(0, 4), first.subspan(4, 0), first.subspan(4)},
                               {second}};
  const std::string other = folder_.File("pieces");
  ASSERT_TRUE(WriteSnapshot(other, layout_, pieces, {{"round", "7"}}).ok());
  EXPECT_EQ(*ReadFile(other), *ReadFile(path_));
}

TEST_F(SnapshotTest, RefusesAnotherManifestByTensor) {
  const std::vector<std::pair<std::vector<TensorSpec>, std::string>> cases = {
      {{{"w", {3, 5}}}, "tensor b is not part of the model"},
      {{{"w", {3, 5}}, {"b", {7}}, {"x", {1}}}, "tensor x is missing"},
      {{{"w", {3, 5}}, {"a", {1}}, {"b", {7}}}, "tensor a is missing"},
      {{{"w", {5, 3}}, {"b", {7}}}, "tensor w has shape [3, 5], expected [5, 3]"}};
  for (const auto& [tensors, message] : cases) {
    const Layout other = LayoutOf(tensors);
    TensorBuffer read(other);
    const absl::Status status = ReadSnapshot(path_, other, &read);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr(path_ + ": " + message));
    for (int i = 0; i < read.tensors(); ++i) EXPECT_THAT(read.tensor(i), ::testing::Each(0.0f));
  }
}

TEST_F(SnapshotTest, RefusesDamageAndOtherTypes) {
  std::string bytes = *ReadFile(path_);
  ASSERT_TRUE(
      WriteFileAtomically(path_, absl::string_view(bytes).substr(0, bytes.size() - 1)).ok());
  EXPECT_EQ(SnapshotManifest(path_).status().code(), absl::StatusCode::kInvalidArgument);
  bytes.replace(bytes.find("F32"), 3, "I32");
  ASSERT_TRUE(WriteFileAtomically(path_, bytes).ok());
  const absl::Status status = SnapshotManifest(path_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("tensor b: dtype I32"));
  EXPECT_EQ(SnapshotManifest(folder_.File("absent")).status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace distro
