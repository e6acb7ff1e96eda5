#include "kernels/replica/tiles.h"

#include <algorithm>

namespace distro {
namespace {

// Whole rows of blocks: their elements are consecutive.
Tile WholeRows(int part, const MatrixShape& matrix, int64_t first_row, int64_t rows) {
  const int64_t begin = first_row * kBlockSide * matrix.cols;
  const int64_t end = std::min((first_row + rows) * kBlockSide * matrix.cols, matrix.elements);
  return {.part = part,
          .first_block = first_row * matrix.BlocksAcross(),
          .blocks = rows * matrix.BlocksAcross(),
          .first_element = begin,
          .pieces = 1,
          .piece_elements = end - begin,
          .stride = 0};
}

// A part of one row of blocks; only matrices of two or more dimensions are so wide.
Tile PartOfRow(int part, const MatrixShape& matrix, int64_t row, int64_t first, int64_t blocks) {
  const int64_t top = row * kBlockSide, left = first * kBlockSide;
  return {.part = part,
          .first_block = row * matrix.BlocksAcross() + first,
          .blocks = blocks,
          .first_element = top * matrix.cols + left,
          .pieces = std::min<int64_t>(kBlockSide, matrix.rows - top),
          .piece_elements = std::min(blocks * kBlockSide, matrix.cols - left),
          .stride = matrix.cols};
}

void AddTiles(int part, const MatrixShape& matrix, std::vector<Tile>* tiles) {
  const int64_t across = matrix.BlocksAcross(), down = matrix.BlocksDown();
  if (across <= kTileBlocks) {
    const int64_t rows = kTileBlocks / across;
    for (int64_t row = 0; row < down; row += rows) {
      tiles->push_back(WholeRows(part, matrix, row, std::min(rows, down - row)));
    }
    return;
  }
  for (int64_t row = 0; row < down; ++row) {
    for (int64_t first = 0; first < across; first += kTileBlocks) {
      tiles->push_back(PartOfRow(part, matrix, row, first, std::min(kTileBlocks, across - first)));
    }
  }
}

}  // namespace

std::vector<Tile> MakeTiles(const Layout& layout, absl::Span<const TensorRows> parts,
                            TileSize size) {
  std::vector<Tile> tiles;
  for (size_t i = 0; i < parts.size(); ++i) {
    const int part = static_cast<int>(i);
    const MatrixShape& tensor = layout.tensors()[parts[i].tensor].matrix;
    const MatrixShape matrix = MatrixOfRows(tensor, parts[i].first_row, parts[i].rows);
    if (size == TileSize::kCache) {
      AddTiles(part, matrix, &tiles);
    } else {
      tiles.push_back(WholeRows(part, matrix, 0, matrix.BlocksDown()));
    }
  }
  return tiles;
}

}  // namespace distro
