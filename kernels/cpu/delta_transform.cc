#include "kernels/cpu/delta_transform.h"

#include <algorithm>
#include <array>

#include "common/update/scale.h"
#include "common/update/votes.h"
#include "kernels/block_site.h"
#include "kernels/cpu/delta_records.h"
#include "kernels/cpu/deltas_exact.h"
#include "kernels/cpu/exact.h"

namespace distro {
namespace {

// (T[l] + 2^(h-1)) >> h
int64_t Halved(int level, int shift) {
  return (kLevelParts[level] + (int64_t{1} << (shift - 1))) >> shift;
}

// The least h with which the block's |V| sum to what the integer transform takes.
int LeastShift(absl::Span<const uint8_t> levels) {
  std::array<int64_t, kLevels> counts{};
  for (const uint8_t level : levels) ++counts[level];
  for (int shift = 1;; ++shift) {
    int64_t sum = 0;
    for (int level = 0; level < kLevels; ++level) sum += counts[level] * Halved(level, shift);
    if (sum <= kMaxVotesPerBlock) return shift;
  }
}

}  // namespace

void DeltaTransform::Gather(const BlockSite& site, const float* elements) {
  std::fill_n(block_, kBlockElements, 0.0f);
  for (int r = 0; r < site.rows; ++r) {
    const int cols = r + 1 == site.rows ? site.last_cols : site.cols;
    std::copy_n(elements + site.offset + r * site.stride, cols, block_ + r * kBlockSide);
  }
}

void DeltaTransform::AppendLargest(const MatrixShape& matrix, absl::Span<const float> a,
                                   uint8_t cap, DeltaUpdate* update) {
  CheckBlocks(matrix, {}, a.size());
  CheckShape(update->k >= 1 && update->k <= kBlockElements, "k is outside 1..4096");
  for (int64_t block = 0; block < matrix.Blocks(); ++block) {
    Gather(SiteOf(matrix, block), a.data());
    transform_.forward(block_, scratch_, coefficients_);
    TopK(transform_, coefficients_, update->k, &top_k_, positions_, chosen_);
    const auto k = static_cast<size_t>(update->k);
    AppendRecord(absl::MakeSpan(positions_, k), absl::MakeSpan(chosen_, k), update->k, cap, update);
  }
}

void DeltaTransform::SubtractReturned(const MatrixShape& matrix, BlockRange blocks,
                                      const DeltaUpdate& update, int64_t update_first,
                                      const DeltaResult& result, int64_t result_first,
                                      absl::Span<float> e) {
  CheckBlocks(matrix, blocks, e.size());
  for (int64_t b = 0; b < blocks.count; ++b) {
    int count = 0;
    ForEachReturned(update, update_first + b, result, result_first + b,
                    [&](uint16_t position, float q) {
                      positions_[count] = position;
                      chosen_[count++] = q;
                    });
    if (count == 0) continue;
    transform_.subtract_inverse(SiteOf(matrix, blocks.first + b), count, positions_, chosen_,
                                scratch_, block_, e.data());
  }
}

int DeltaTransform::FormVotes(const DeltaResult& result, uint32_t begin, uint32_t end) {
  const int shift = LeastShift(absl::MakeSpan(result.levels).subspan(begin, end - begin));
  for (uint32_t i = begin; i < end; ++i)
    values_[i - begin] = static_cast<int16_t>(result.signs[i] * Halved(result.levels[i], shift));
  return shift;
}

void DeltaTransform::Apply(const MatrixShape& matrix, BlockRange blocks, const DeltaResult& result,
                           int64_t result_first, float alpha, absl::Span<float> parameters) {
  CheckBlocks(matrix, blocks, parameters.size());
  const DefaultFloatEnvironment environment;
  for (int64_t b = 0; b < blocks.count; ++b) {
    const uint32_t begin = result.offsets[result_first + b];
    const uint32_t end = result.offsets[result_first + b + 1];
    if (begin == end) continue;
    const int shift = FormVotes(result, begin, end);
    const BlockVotes votes = {.positions = result.positions.data() + begin,
                              .values = values_,
                              .count = static_cast<int>(end - begin),
                              .shift = 0};
    exact_.inverse_integer(votes, integer_scratch_, sums_);
    exact_.subtract(SiteOf(matrix, blocks.first + b),
                    exact::FrequencyStep(alpha, result.codes[result_first + b], shift), sums_,
                    parameters.data());
  }
}

}  // namespace distro
