// The steps of applying a committed round to whole parameters (Replica) or to the rows of tensors
// that a rank of a node holds: "parameter update" and "state hash" of docs/algorithm.md.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/base/ids.h"
#include "common/method/signs/votes.h"
#include "common/model/layout/layout.h"
#include "common/model/layout/matrix.h"
#include "distro/v1/round.pb.h"
#include "kernels/backend.h"
#include "kernels/deltas_view.h"
#include "kernels/replica/tiles.h"

namespace distro {

// A segment's votes in the backend's memory.
struct SegmentVotes {
  absl::Span<const uint32_t> offsets;  // [B + 1], on the host
  VotesView view;                      // of all its blocks, in the backend's memory
};
template <typename At>
SegmentVotes ViewAt(const Votes& votes, At at) {  // as for deltas
  return {.offsets = votes.offsets,
          .view = {.offsets = at(votes.offsets),
                   .positions = at(votes.positions),
                   .values = at(votes.values)}};
}

// DataLoss: Backend::ApplyVotes or ApplyDeltas found an invalid block in a result that was decoded.
// The cause is a bug, or faulty memory.
absl::Status InvalidResult();

// Updates and hashes rows of tensors, tile by tile. Immutable; thread-safe with disjoint tiles and
// one backend per thread.
class TileUpdater {
 public:
  // `layout` is borrowed.
  TileUpdater(const Layout* layout, std::vector<TensorRows> parts,
              TileSize size = TileSize::kCache);

  absl::Span<const TensorRows> parts() const { return parts_; }
  // In the order of the parts.
  absl::Span<const Tile> tiles() const { return tiles_; }
  // The segments in the order in which updates of all tiles, in their order, ask for results;
  // a segment that is asked for several times in a row is there once.
  std::vector<SegmentId> SegmentOrder() const;

  // Enqueued, as the backend's operations (kernels/backend.h). `part`: the elements of
  // parts()[tile.part]. Calls `votes_of` for each segment, ascending within a tile. `invalid`: as
  // Backend::ApplyVotes; decoded votes are valid.
  using VotesOf = absl::FunctionRef<SegmentVotes(SegmentId segment)>;
  void Update(const Tile& tile, const v1::StepParameters& step, VotesOf votes_of, Backend* backend,
              absl::Span<float> part, uint32_t* invalid) const;
  // The same with deltas.
  using DeltasOf = absl::FunctionRef<SegmentDeltas(SegmentId segment)>;
  void Update(const Tile& tile, const v1::StepParameters& step, DeltasOf deltas_of,
              Backend* backend, absl::Span<float> part, uint32_t* invalid) const;
  // Adds the tile's part of its tensor's hash to *sum.
  void Hash(const Tile& tile, Backend* backend, absl::Span<const float> part, uint64_t* sum) const;

 private:
  // A segment's blocks inside a tile.
  struct Range {
    SegmentId segment;
    int64_t first = 0;  // of the segment's blocks
    BlockRange blocks;  // of the part
  };
  std::vector<Range> RangesOf(const Tile& tile) const;
  MatrixShape MatrixOf(const Tile& tile) const;
  int64_t FirstElementOf(const Tile& tile) const;
  SignApplyOptions OptionsOf(const Tile& tile, const v1::StepParameters& step) const;

  const Layout* const layout_;
  const std::vector<TensorRows> parts_;
  const std::vector<Tile> tiles_;
};

}  // namespace distro
