#include "kernels/cpu/deltas_transform.h"

#include <algorithm>

#include "kernels/block_site.h"
#include "kernels/cpu/deltas_records.h"

namespace distro {

void DeltaTransform::Gather(const BlockSite& site, const float* elements) {
  std::fill_n(block_, kBlockElements, 0.0f);
  for (int r = 0; r < site.rows; ++r) {
    const int cols = site.ColsOfRow(r);
    std::copy_n(elements + site.offset + r * site.stride, cols, block_ + r * kBlockSide);
  }
}

void DeltaTransform::AppendLargest(const MatrixShape& matrix, absl::Span<const float> a,
                                   uint8_t cap, DeltaUpdate* update) {
  CheckBlocks(matrix, {}, a.size());
  CheckShape(update->k >= 1 && update->k <= kBlockElements, "k is outside 1..4096");
  for (int64_t block = 0; block < matrix.Blocks(); ++block) {
    Gather(SiteOf(matrix, block), a.data());
    transform_.forward(block_, scratch_);
    TopK(transform_, block_, update->k, &top_k_, positions_, chosen_);
    const auto k = static_cast<size_t>(update->k);
    AppendRecord(absl::MakeSpan(positions_, k), absl::MakeSpan(chosen_, k), update->k, cap, update);
  }
}

int64_t DeltaTransform::SubtractReturned(const MatrixShape& matrix, BlockRange blocks,
                                         const DeltaRecordsView& sent, const DeltasView& result,
                                         absl::Span<float> e) {
  CheckBlocks(matrix, blocks, e.size());
  CheckRecords(sent, blocks.count);
  int64_t returned = 0;
  for (int64_t b = 0; b < blocks.count; ++b) {
    int count = 0;
    ForEachReturned(sent, result, b, [&](uint16_t position, float q) {
      positions_[count] = position;
      chosen_[count++] = q;
    });
    returned += count;
    if (count == 0) continue;
    transform_.subtract_inverse(SiteOf(matrix, blocks.first + b), count, positions_, chosen_,
                                scratch_, block_, e.data());
  }
  return returned;
}

}  // namespace distro
