// Shards the tensors of a model over the ranks of a node (docs/fsdp.md, "Shards"). Pure, immutable,
// thread-safe, without Torch.
//
// A unit's tensors are stored consecutively, in manifest order, in the unit's *flat*: f32 or bf16
// elements, each tensor at a multiple of kFlatAlignment elements, with zeros in the gaps. The block
// rows (64 rows of a tensor's matrix) of a unit are divided into R contiguous parts, balanced by
// elements. So a rank has one contiguous range of the flat, which may be empty, and of each tensor
// at most one run of whole block rows. A rank's *shard* is the concatenation of its ranges of all
// units. With R = 1 the shard is everything, in flats: the layout of data that a strategy does not
// shard.
//
// A run of block rows is itself a matrix of fewer rows, contiguous and 64-byte aligned in the
// shard: the operations of kernels/backend.h work on it unchanged; block b of the run is block
// first_block + b of the tensor.
//
// A tensor that several units use (tied embeddings) belongs to the first.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/model/layout/layout.h"

namespace distro::worker {

inline constexpr int64_t kFlatAlignment = 32;  // elements: 64 bytes of bf16, 128 of f32

// Whole block rows of one tensor.
struct ShardRun {
  int tensor = 0;               // index into the manifest
  int64_t first_block_row = 0;  // of the tensor's matrix
  int64_t block_rows = 0;       // 1 or more
  int64_t first_block = 0;      // of the tensor: first_block_row * BlocksAcross()
  MatrixShape matrix = {};      // of the run alone; matrix.elements elements
  int64_t first_element = 0;    // of the tensor
  // The offset in the shard of R = 1, for a rank that has everything.
  int64_t whole_offset = 0;
  // Elements from the start of the rank's shard; a multiple of kFlatAlignment.
  int64_t shard_offset = 0;
};

// The f32 elements of a run in the bytes of its tensor.
inline absl::string_view BytesOf(const ShardRun& run, absl::string_view tensor) {
  return tensor.substr(run.first_element * sizeof(float), run.matrix.elements * sizeof(float));
}

// Every tensor whole, in manifest order, without offsets into shards.
std::vector<ShardRun> WholeRuns(const Layout& layout);

struct FlatTensor {
  int tensor = 0;
  int64_t offset = 0;    // elements from the start of the unit's flat
  int64_t elements = 0;  // without the gap behind it
};

struct UnitFlat {
  std::vector<FlatTensor> tensors;  // owned by the unit, in manifest order; may be empty
  int64_t elements = 0;             // gaps included
  std::vector<int64_t> cuts;        // [R + 1]: rank r has [cuts[r], cuts[r+1]) of the flat
};

// Elements of the longest range of `cuts`.
int64_t LongestRange(absl::Span<const int64_t> cuts);

struct RankShard {
  std::vector<ShardRun> runs;         // in manifest order
  std::vector<int64_t> unit_offsets;  // [units + 1]: a unit's range begins there in the shard
  int64_t elements() const { return unit_offsets.back(); }  // gaps included
};

class ShardPlan {
 public:
  // `units`: the tensors of each unit (Unit::tensors()), indices into the manifest.
  // InvalidArgument: ranks outside 1..1024, an index outside the manifest, a tensor that no unit
  // uses.
  static absl::StatusOr<ShardPlan> Create(const Layout& layout,
                                          const std::vector<std::vector<int>>& units, int ranks);

  int ranks() const { return static_cast<int>(shards_.size()); }
  absl::Span<const UnitFlat> units() const { return units_; }
  const RankShard& shard(int rank) const { return shards_[rank]; }

  // The unit that owns a tensor, and the tensor's index in that unit.
  struct Place {
    int unit = 0;
    int index = 0;
  };
  Place place(int tensor) const { return places_[tensor]; }

 private:
  ShardPlan() = default;
  std::vector<UnitFlat> units_;
  std::vector<RankShard> shards_;
  std::vector<Place> places_;
};

}  // namespace distro::worker
