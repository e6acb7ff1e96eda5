// Divides the parameters of a layout into tiles for threads. A tile's parameters stay in a core's
// cache from the update to the state hash. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "common/model/layout/layout.h"
#include "common/model/layout/matrix.h"

namespace distro {

// Consecutive blocks of one part (rows of a tensor), and the elements that they cover: `pieces`
// runs of `piece_elements` elements, the first at `first_element`, then one every `stride`
// elements.
struct Tile {
  int part = 0;             // index into the parts
  int64_t first_block = 0;  // within the part, as `first_element`
  int64_t blocks = 0;
  int64_t first_element = 0;
  int64_t pieces = 0;
  int64_t piece_elements = 0;
  int64_t stride = 0;
};

// Blocks of a tile, at most: 128 KiB of parameters.
inline constexpr int64_t kTileBlocks = 8;

enum class TileSize {
  kCache,  // small enough to stay in a core's cache from update to hash
  kPart,   // a whole part, for a device that divides the work itself
};

// Tiles that cover every block and every element of the parts once, in their order.
std::vector<Tile> MakeTiles(const Layout& layout, absl::Span<const TensorRows> parts,
                            TileSize size = TileSize::kCache);

}  // namespace distro
