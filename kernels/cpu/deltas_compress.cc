#include "kernels/cpu/deltas_compress.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <numeric>
#include <optional>
#include <vector>

#include "kernels/block_site.h"
#include "kernels/cpu/deltas_records.h"
#include "kernels/cpu/largest.h"
#include "kernels/squares.h"

namespace distro {
namespace {

// A magnitude that at least k elements of the block reach. Parts are pieces of rows, of which a
// block at an edge may have fewer than k: then 0.
float ReachedBy(const BlockSite& site, const float* a, int k) {
  if (k > kMaxParts) return 0;
  const int piece = kBlockElements / PartsOf(k);
  std::array<float, kMaxParts> maxima;
  int count = 0;
  for (int r = 0; r < site.rows; ++r) {
    const float* const row = a + site.offset + r * site.stride;
    const int cols = site.ColsOfRow(r);
    for (int first = 0; first < cols; first += piece) {
      float largest = 0;
      for (int c = first; c < std::min(first + piece, cols); ++c)
        largest = std::max(largest, std::abs(row[c]));
      maxima[count++] = largest;
    }
  }
  if (k > count) return 0;
  const auto kth = maxima.begin() + k - 1;
  std::nth_element(maxima.begin(), kth, maxima.begin() + count, std::greater<>());
  return *kth;
}

// The positions of a block's record.
class Chooser {
 public:
  // Writes k ascending positions. Positions inside the tensor are chosen first; if there are fewer
  // than k, the lowest outside fill the rest.
  void Choose(const BlockSite& site, const float* a, int k, uint16_t* positions) {
    const float least = ReachedBy(site, a, k);
    int count = 0;
    for (int r = 0; r < site.rows; ++r) {
      const float* const row = a + site.offset + r * site.stride;
      for (int c = 0; c < site.ColsOfRow(r); ++c) {
        keys_[count] = KeyOf(row[c], r * kBlockSide + c);
        count += std::abs(row[c]) >= least;
      }
    }
    if (count > k) std::nth_element(keys_, keys_ + k - 1, keys_ + count, std::greater<>());
    const int inside = std::min(count, k);
    for (int i = 0; i < inside; ++i) positions[i] = static_cast<uint16_t>(PositionOf(keys_[i]));
    const BlockExtent extent = ExtentOf(site);
    for (int i = inside, outside = 0; i < k; ++outside) {
      if (!extent.Contains(outside)) positions[i++] = static_cast<uint16_t>(outside);
    }
    // If all elements are chosen and nothing is filled in, they are in order.
    if (count != k) std::sort(positions, positions + k);
  }

 private:
  uint64_t keys_[kBlockElements + 1];  // one is written beyond the last
};

// The element of a position, if the tensor has it.
std::optional<int64_t> ElementAt(const BlockSite& site, int position) {
  const int row = position / kBlockSide, col = position % kBlockSide;
  if (row >= site.rows || col >= site.ColsOfRow(row)) return std::nullopt;
  return site.offset + row * site.stride + col;
}

float Formed(float beta, float e, float begin, float x) { return beta * e + (begin - x); }

// The squares of value(first), ..., value(end - 1), a piece at most.
template <typename Value>
double PieceSquares(size_t first, size_t end, const Value& value) {
  double sums[kPieceSums] = {};
  const auto add = [&](size_t i, int j) {
    const double v = value(i);
    sums[j] += v * v;
  };
  // A constant number of turns, of which the compiler makes vectors.
  for (; first + kPieceSums <= end; first += kPieceSums) {
    for (int j = 0; j < kPieceSums; ++j) add(first + j, j);
  }
  for (int j = 0; first + j < end; ++j) add(first + j, j);
  for (int half = kPieceSums / 2; half > 0; half /= 2) {
    for (int j = 0; j < half; ++j) sums[j] += sums[j + half];
  }
  return sums[0];
}

template <typename Value>
void SumPieces(size_t elements, const Value& value, absl::Span<double> sums) {
  for (size_t i = 0; i < sums.size(); ++i)
    sums[i] = PieceSquares(i * kPiece, std::min<size_t>((i + 1) * kPiece, elements), value);
}

}  // namespace

bool DeltaIsFinite(float beta, absl::Span<const float> begin, absl::Span<const float> x,
                   absl::Span<const float> e) {
  CheckShape(begin.size() == e.size() && x.size() == e.size(), "arrays of one tensor differ");
  float zeros = 0;  // 0 times a number is 0, times anything else it is not
  for (size_t i = 0; i < e.size(); ++i) zeros += 0.0f * Formed(beta, e[i], begin[i], x[i]);
  return zeros == 0;
}

void FormDelta(float beta, absl::Span<const float> begin, absl::Span<const float> x,
               absl::Span<float> e) {
  CheckShape(begin.size() == e.size() && x.size() == e.size(), "arrays of one tensor differ");
  for (size_t i = 0; i < e.size(); ++i) e[i] = Formed(beta, e[i], begin[i], x[i]);
}

void AppendLargest(const MatrixShape& matrix, absl::Span<const float> a, uint8_t cap,
                   DeltaUpdate* update) {
  CheckBlocks(matrix, {}, a.size());
  CheckShape(update->k >= 1 && update->k <= kBlockElements, "k is outside 1..4096");
  std::vector<uint16_t> positions(update->k);
  std::vector<float> values(update->k);
  Chooser chooser;
  for (int64_t block = 0; block < matrix.Blocks(); ++block) {
    const BlockSite site = SiteOf(matrix, block);
    chooser.Choose(site, a.data(), update->k, positions.data());
    int inside = 0;
    for (size_t i = 0; i < positions.size(); ++i) {
      const std::optional<int64_t> element = ElementAt(site, positions[i]);
      values[i] = element.has_value() ? a[*element] : 0.0f;
      inside += static_cast<int>(element.has_value());
    }
    AppendRecord(positions, values, inside, cap, update);
  }
}

int64_t SubtractReturned(const MatrixShape& matrix, BlockRange blocks, const DeltaRecordsView& sent,
                         const DeltasView& result, absl::Span<float> e) {
  CheckBlocks(matrix, blocks, e.size());
  CheckRecords(sent, blocks.count);
  int64_t returned = 0;
  for (int64_t b = 0; b < blocks.count; ++b) {
    const BlockSite site = SiteOf(matrix, blocks.first + b);
    ForEachReturned(sent, result, b, [&](uint16_t position, float q) {
      const auto element = ElementAt(site, position);
      if (!element.has_value()) return;
      e[*element] -= q;
      ++returned;
    });
  }
  return returned;
}

void Squares(absl::Span<const float> a, absl::Span<double> sums) {
  SumPieces(
      a.size(), [a = a.data()](size_t i) { return a[i]; }, sums);
}

void SquaresOfDifference(absl::Span<const float> a, absl::Span<const float> b,
                         absl::Span<double> sums) {
  CheckShape(a.size() == b.size(), "arrays of one tensor differ");
  SumPieces(
      a.size(), [a = a.data(), b = b.data()](size_t i) { return a[i] - b[i]; }, sums);
}

}  // namespace distro
