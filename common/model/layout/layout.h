// Numbers the blocks of a manifest's tensors and divides them into segments (docs/algorithm.md,
// "Layout"). Immutable; thread-safe.
//
// The blocks of all tensors are numbered consecutively in manifest order. A segment is
// `segment_blocks` consecutive blocks (the last may be shorter): the unit of streaming, logging and
// inclusion. A segment may begin or end inside a tensor, even inside a row of blocks.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/ids.h"
#include "common/model/layout/manifest.h"
#include "common/model/layout/matrix.h"

namespace distro {

inline constexpr int kDefaultSegmentBlocks = 16384;

struct TensorLayout {
  MatrixShape matrix;
  int64_t first_block = 0;  // among the blocks of the run
  bool decays = false;      // weight decay applies: tensors of two or more dimensions
};

// Consecutive blocks of one tensor.
struct BlockRun {
  int tensor = 0;           // index into the manifest
  int64_t first_block = 0;  // within the tensor
  int64_t blocks = 0;
  int64_t offset = 0;  // of the run's first block within the requested range
};

class Layout {
 public:
  // InvalidArgument: segment_blocks outside 1..2^20, more than 2^26 blocks or 2^16 segments.
  static absl::StatusOr<Layout> Create(Manifest manifest, int segment_blocks);

  const Manifest& manifest() const { return manifest_; }
  absl::Span<const TensorLayout> tensors() const { return tensors_; }
  int64_t blocks() const { return blocks_; }      // B
  int64_t elements() const { return elements_; }  // N, padding excluded
  int segment_blocks() const { return segment_blocks_; }
  uint32_t segments() const {
    return static_cast<uint32_t>((blocks_ + segment_blocks_ - 1) / segment_blocks_);
  }

  // Requires segment < segments().
  int64_t SegmentFirstBlock(SegmentId segment) const {
    return int64_t{segment.value()} * segment_blocks_;
  }
  int64_t SegmentBlocks(SegmentId segment) const;
  std::vector<BlockRun> SegmentRuns(SegmentId segment) const {
    return Runs(SegmentFirstBlock(segment), SegmentBlocks(segment));
  }

  // Blocks [first, first + count) as runs within tensors, in order. Requires them to lie in
  // 0..blocks().
  std::vector<BlockRun> Runs(int64_t first, int64_t count) const;

 private:
  explicit Layout(Manifest manifest) : manifest_(std::move(manifest)) {}

  Manifest manifest_;
  std::vector<TensorLayout> tensors_;
  int64_t blocks_ = 0;
  int64_t elements_ = 0;
  int segment_blocks_ = 0;
};

// The extents of a segment's blocks inside their tensors. Requires segment < layout.segments().
std::vector<BlockExtent> SegmentExtents(const Layout& layout, SegmentId segment);

// Every tensor whole, in manifest order.
std::vector<TensorRows> AllRows(const Layout& layout);

}  // namespace distro
