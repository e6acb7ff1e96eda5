#include "kernels/replica/tiles.h"

#include "gtest/gtest.h"

namespace distro {
namespace {

// Widths around the size of a tile, rows and columns that are no multiples of 64, one-dimensional
// tails.
Layout OddLayout() {
  return *Layout::Create(*Manifest::Create({{"a", {1}},
                                            {"b", {130}},
                                            {"c", {64, 64}},
                                            {"d", {100, 70}},
                                            {"e", {300, 512}},
                                            {"f", {300, 513}},
                                            {"g", {65, 1100}},
                                            {"h", {7, 9, 130}},
                                            {"i", {5000}}}),
                         3);
}

TEST(TilesTest, CoverEveryBlockOnceInOrder) {
  const Layout layout = OddLayout();
  int64_t next = 0;
  for (const Tile& tile : MakeTiles(layout, AllRows(layout))) {
    EXPECT_EQ(layout.tensors()[tile.part].first_block + tile.first_block, next);
    EXPECT_GE(tile.blocks, 1);
    EXPECT_LE(tile.blocks, kTileBlocks);
    next += tile.blocks;
  }
  EXPECT_EQ(next, layout.blocks());
}

TEST(TilesTest, CoverEveryElementOnce) {
  const Layout layout = OddLayout();
  std::vector<std::vector<int>> covered;
  for (const TensorLayout& tensor : layout.tensors()) covered.emplace_back(tensor.matrix.elements);
  for (const Tile& tile : MakeTiles(layout, AllRows(layout))) {
    for (int64_t i = 0; i < tile.pieces * tile.piece_elements; ++i) {
      const int64_t element =
          tile.first_element + i / tile.piece_elements * tile.stride + i % tile.piece_elements;
      ++covered[tile.part].at(element);
    }
  }
  for (const std::vector<int>& tensor : covered) {
    EXPECT_EQ(tensor, std::vector<int>(tensor.size(), 1));
  }
}

TEST(TilesTest, WholeTilesAreTheParts) {
  const Layout layout = OddLayout();
  const std::vector<TensorRows> parts = {{.tensor = 3, .first_row = 1, .rows = 1},
                                         {.tensor = 8, .first_row = 0, .rows = 2}};
  const std::vector<Tile> tiles = MakeTiles(layout, parts, TileSize::kPart);
  ASSERT_EQ(tiles.size(), 2);
  EXPECT_EQ(tiles[0].blocks, 2);  // 36 rows of 70 columns
  EXPECT_EQ(tiles[0].piece_elements, 36 * 70);
  EXPECT_EQ(tiles[1].blocks, 2);
  EXPECT_EQ(tiles[1].piece_elements, 5000);
  for (const Tile& tile : tiles) EXPECT_EQ(tile.pieces, 1);
}

// The elements of a tile are those of its blocks: what one thread updates, no other one hashes.
TEST(TilesTest, HoldTheElementsOfTheirBlocks) {
  const Layout layout = OddLayout();
  for (const Tile& tile : MakeTiles(layout, AllRows(layout))) {
    const MatrixShape& matrix = layout.tensors()[tile.part].matrix;
    for (int64_t i = 0; i < tile.pieces * tile.piece_elements; ++i) {
      const int64_t element =
          tile.first_element + i / tile.piece_elements * tile.stride + i % tile.piece_elements;
      const int64_t block = element / matrix.cols / kBlockSide * matrix.BlocksAcross() +
                            element % matrix.cols / kBlockSide;
      ASSERT_GE(block, tile.first_block);
      ASSERT_LT(block, tile.first_block + tile.blocks);
    }
  }
}

// Rows of tensors that share out a layout have, together, its blocks.
TEST(TilesTest, OfRowsCoverThoseRowsOnly) {
  const Layout layout = OddLayout();
  std::vector<TensorRows> top, bottom;
  int64_t blocks = 0;
  for (const TensorRows& rows : AllRows(layout)) {
    if (rows.rows < 2) continue;
    top.push_back({.tensor = rows.tensor, .first_row = 0, .rows = 1});
    bottom.push_back({.tensor = rows.tensor, .first_row = 1, .rows = rows.rows - 1});
    blocks += layout.tensors()[rows.tensor].matrix.Blocks();
  }
  int64_t covered = 0;
  for (const auto* parts : {&top, &bottom}) {
    for (const Tile& tile : MakeTiles(layout, *parts)) {
      const TensorRows& rows = parts->at(tile.part);
      const MatrixShape matrix =
          MatrixOfRows(layout.tensors()[rows.tensor].matrix, rows.first_row, rows.rows);
      ASSERT_LE(tile.first_block + tile.blocks, matrix.Blocks());
      covered += tile.blocks;
    }
  }
  EXPECT_EQ(covered, blocks);
}

}  // namespace
}  // namespace distro
