#include "common/model/layout/layout.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace distro {
namespace {

constexpr int kMaxSegmentBlocks = 1 << 20;
constexpr int64_t kMaxBlocks = int64_t{1} << 26;
constexpr int64_t kMaxSegments = int64_t{1} << 16;

MatrixShape MatrixOf(const TensorSpec& tensor) {
  int64_t elements = 1;
  for (int64_t dimension : tensor.shape) elements *= dimension;
  if (tensor.shape.size() == 1) {
    return {
        .rows = (elements + kBlockSide - 1) / kBlockSide, .cols = kBlockSide, .elements = elements};
  }
  return {.rows = tensor.shape[0], .cols = elements / tensor.shape[0], .elements = elements};
}

}  // namespace

absl::StatusOr<Layout> Layout::Create(Manifest manifest, int segment_blocks) {
  if (segment_blocks < 1 || segment_blocks > kMaxSegmentBlocks) {
    return absl::InvalidArgumentError(
        absl::StrCat("segment_blocks: ", segment_blocks, " is outside 1..", kMaxSegmentBlocks));
  }
  Layout layout(std::move(manifest));
  layout.segment_blocks_ = segment_blocks;
  for (const TensorSpec& tensor : layout.manifest_.tensors()) {
    const MatrixShape matrix = MatrixOf(tensor);
    layout.tensors_.push_back(
        {.matrix = matrix, .first_block = layout.blocks_, .decays = tensor.shape.size() > 1});
    layout.blocks_ += matrix.Blocks();
    layout.elements_ += matrix.elements;
    if (layout.blocks_ > kMaxBlocks) {
      return absl::InvalidArgumentError(
          absl::StrCat("layout: more than 2^26 blocks at tensor ", tensor.name));
    }
  }
  if (layout.blocks_ > kMaxSegments * segment_blocks) {
    return absl::InvalidArgumentError(
        absl::StrCat("segment_blocks: ", segment_blocks, " cuts ", layout.blocks_,
                     " blocks into more than 65536 segments; raise it"));
  }
  return layout;
}

int64_t Layout::SegmentBlocks(SegmentId segment) const {
  return std::min<int64_t>(segment_blocks_, blocks_ - SegmentFirstBlock(segment));
}

std::vector<BlockRun> Layout::Runs(int64_t first, int64_t count) const {
  std::vector<BlockRun> runs;
  const int64_t begin = first;
  const int64_t end = first + count;
  auto tensor =
      std::upper_bound(tensors_.begin(), tensors_.end(), first,
                       [](int64_t block, const TensorLayout& t) { return block < t.first_block; });
  for (--tensor; first < end; ++tensor) {
    const int64_t within = first - tensor->first_block;
    const int64_t blocks = std::min(end - first, tensor->matrix.Blocks() - within);
    runs.push_back({.tensor = static_cast<int>(tensor - tensors_.begin()),
                    .first_block = within,
                    .blocks = blocks,
                    .offset = first - begin});
    first += blocks;
  }
  return runs;
}

std::vector<BlockExtent> SegmentExtents(const Layout& layout, SegmentId segment) {
  std::vector<BlockExtent> extents;
  for (const BlockRun& run : layout.SegmentRuns(segment)) {
    const MatrixShape& matrix = layout.tensors()[run.tensor].matrix;
    for (int64_t b = 0; b < run.blocks; ++b)
      extents.push_back(ExtentOf(matrix, run.first_block + b));
  }
  return extents;
}

std::vector<TensorRows> AllRows(const Layout& layout) {
  std::vector<TensorRows> rows;
  for (size_t i = 0; i < layout.tensors().size(); ++i) {
    rows.push_back({.tensor = static_cast<int>(i),
                    .first_row = 0,
                    .rows = layout.tensors()[i].matrix.BlocksDown()});
  }
  return rows;
}

}  // namespace distro
