// How the parameters of a layout are cut into pieces of work that threads share: a tile's parameters stay in a core's
// cache from the update to the state hash. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "common/layout/layout.h"

namespace distro {

// Consecutive blocks of one tensor, and the elements that they cover: `pieces` runs of `piece_elements` elements, the
// first at `first_element`, each `stride` after the one before.
struct Tile {
  int tensor = 0;           // index into the manifest
  int64_t first_block = 0;  // within the tensor
  int64_t blocks = 0;
  int64_t first_element = 0;
  int64_t pieces = 0;
  int64_t piece_elements = 0;
  int64_t stride = 0;
};

// Blocks of a tile, at most: 128 KiB of parameters.
inline constexpr int64_t kTileBlocks = 8;

// Tiles that cover every block and every element once, in the order of the layout's blocks.
std::vector<Tile> MakeTiles(const Layout& layout);

}  // namespace distro
