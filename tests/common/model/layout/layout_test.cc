#include "common/model/layout/layout.h"

#include "common/model/layout/tensor_buffer.h"
#include "common/model/layout/tensor_differences.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace distro {
namespace {

Layout MakeLayout(std::vector<TensorSpec> tensors, int segment_blocks) {
  return *Layout::Create(*Manifest::Create(std::move(tensors)), segment_blocks);
}

TEST(ManifestTest, OrdersTensorsByName) {
  const Manifest manifest = *Manifest::Create({{"b", {2}}, {"a", {3}}});
  EXPECT_EQ(manifest.tensors()[0].name, "a");
  EXPECT_EQ(manifest.tensors()[1].name, "b");
}

TEST(ManifestTest, HashDependsOnNamesAndShapes) {
  const Manifest one = *Manifest::Create({{"a", {2, 3}}});
  EXPECT_EQ(one.hash(), Manifest::Create({{"a", {2, 3}}})->hash());
  EXPECT_NE(one.hash(), Manifest::Create({{"a", {3, 2}}})->hash());
  EXPECT_NE(one.hash(), Manifest::Create({{"b", {2, 3}}})->hash());
}

TEST(ManifestTest, NamesTensorsThatDifferBothShapesAndHowManyMore) {
  const Manifest expected = *Manifest::Create({{"a", {2, 3}}, {"b", {4}}, {"c", {5}}, {"d", {6}}});
  const Manifest actual = *Manifest::Create({{"a", {3, 3}}, {"d", {6}}, {"e\x1b", {7}}});
  EXPECT_EQ(CheckSameTensors(expected, expected), absl::OkStatus());
  EXPECT_EQ(CompareTensors(expected, actual).missing.size(), 2u);
  const absl::Status status = CheckSameTensors(expected, actual);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(),
            "tensor b is missing (shape [4], and 1 more); tensor e\\x1b is not part of the model "
            "(shape [7]); tensor a has shape [3, 3], expected [2, 3]");
}

TEST(ManifestTest, RefusesWhatIsNotAListOfTensors) {
  const std::vector<std::vector<TensorSpec>> bad = {{},
                                                    {{"", {1}}},
                                                    {{"a", {}}},
                                                    {{"a", {0}}},
                                                    {{"a", {-1}}},
                                                    {{"a", {1}}, {"a", {2}}},
                                                    {{std::string(513, 'a'), {1}}},
                                                    {{"a", {int64_t{1} << 40, 2}}},
                                                    {{"a", {int64_t{1} << 40}}, {"b", {1}}}};
  for (const auto& tensors : bad) {
    EXPECT_EQ(Manifest::Create(tensors).status().code(), absl::StatusCode::kInvalidArgument);
  }
}

TEST(LayoutTest, CutsTensorsIntoPaddedBlocks) {
  // 100 x 70: 2 x 2 blocks; 130 elements of one dimension: 3 rows of 64, one block; [10, 3, 25]: 10
  // x 75, 1 x 2 blocks.
  const Layout layout = MakeLayout({{"a", {100, 70}}, {"b", {130}}, {"c", {10, 3, 25}}}, 3);
  EXPECT_EQ(layout.blocks(), 7);
  EXPECT_EQ(layout.elements(), 100 * 70 + 130 + 750);
  EXPECT_EQ(layout.segments(), 3u);
  EXPECT_EQ(layout.SegmentBlocks(SegmentId(2)), 1);
  EXPECT_EQ(layout.tensors()[1].matrix, (MatrixShape{.rows = 3, .cols = 64, .elements = 130}));
  EXPECT_TRUE(layout.tensors()[0].decays);
  EXPECT_FALSE(layout.tensors()[1].decays);
}

TEST(LayoutTest, SegmentsAreRunsOfBlocksAcrossTensors) {
  const Layout layout = MakeLayout({{"a", {100, 70}}, {"b", {130}}, {"c", {10, 3, 25}}}, 3);
  const std::vector<BlockRun> runs = layout.SegmentRuns(SegmentId(1));
  ASSERT_EQ(runs.size(), 3u);
  EXPECT_EQ(runs[0].tensor, 0);
  EXPECT_EQ(runs[0].first_block, 3);
  EXPECT_EQ(runs[1].tensor, 1);
  EXPECT_EQ(runs[1].offset, 1);
  EXPECT_EQ(runs[2].tensor, 2);
  EXPECT_EQ(runs[2].first_block, 0);
  EXPECT_EQ(runs[2].blocks, 1);
  EXPECT_EQ(runs[2].offset, 2);
}

TEST(LayoutTest, RefusesSegmentSizesOutsideTheirRange) {
  for (int segment_blocks : {0, -1, (1 << 20) + 1}) {
    EXPECT_EQ(Layout::Create(*Manifest::Create({{"a", {64}}}), segment_blocks).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
}

// The 1.2 B Llama of the report: 294 144 full blocks and the norms.
TEST(LayoutTest, ReportModelHasEighteenSegments) {
  std::vector<TensorSpec> tensors = {
      {"embed", {32000, 2048}}, {"head", {32000, 2048}}, {"norm", {2048}}};
  for (int i = 0; i < 16; ++i) {
    const std::string layer = "layer" + std::to_string(i);
    for (const char* name : {"q", "k", "v", "o"}) tensors.push_back({layer + name, {2048, 2048}});
    for (const char* name : {"gate", "up"}) tensors.push_back({layer + name, {8192, 2048}});
    tensors.push_back({layer + "down", {2048, 8192}});
    for (const char* name : {"norm1", "norm2"}) tensors.push_back({layer + name, {2048}});
  }
  const Layout layout = MakeLayout(std::move(tensors), kDefaultSegmentBlocks);
  EXPECT_EQ(layout.blocks(), 294144 + 33);
  EXPECT_EQ(layout.segments(), 18u);
}

TEST(TensorBufferTest, TensorsAreAlignedAndStartAtZero) {
  const Layout layout = MakeLayout({{"a", {3}}, {"b", {5, 7}}}, 16);
  TensorBuffer buffer(layout);
  for (int i = 0; i < buffer.tensors(); ++i) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.tensor(i).data()) % 64, 0u);
    EXPECT_THAT(buffer.tensor(i), ::testing::Each(0.0f));
  }
  EXPECT_EQ(buffer.tensor(1).size(), 35u);
}

}  // namespace
}  // namespace distro
