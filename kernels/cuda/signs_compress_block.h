// One block of Backend::CompressSigns and Backend::FeedbackSigns, for kThreads threads.
//
//   m <- beta*m + eta*(g*gradient_scale)
//   c <- D m D^T; the k largest |c|
//
//   m <- m - IDCT2(pending)
//
// A thread holds a column while it reads gradient and momentum, writes the momentum and transforms
// vertically, then a row for the horizontal transform. The two meet in one tile of shared memory,
// which afterwards holds the coefficients.
#pragma once

#include "kernels/cuda/forward_transform.h"
#include "kernels/cuda/select_largest.h"

namespace distro::cuda {

// Rows that a thread loads before it uses the first. More would spill registers.
inline constexpr int kRowsInFlight = 16;

// Blocks of one tensor, and its arrays.
struct CompressSignsTensor {
  MatrixShape matrix;
  BlockRange blocks;
  const float* gradient;  // [elements]
  float* momentum;        // [elements]
  uint16_t* positions;    // [count, k]
  float* values;          // [count, k]
};

struct CompressScratch {
  Tile<float> tile;
  SelectScratch select;
};

constexpr float NewMomentum(const SignCompressOptions& options, float gradient, float momentum) {
  const float scaled = options.eta * (gradient * options.gradient_scale);
  return Fma(options.beta, momentum, scaled);
}

// The new momentum of a whole block's column.
constexpr void MomentumColumn(const SignCompressOptions& options, const CompressSignsTensor& a,
                              const BlockSite& site, int column, float (&x)[64]) {
  const auto stride = static_cast<int>(site.stride);
  const float* gradient = a.gradient + site.offset + column;
  float* momentum = a.momentum + site.offset + column;
  Unrolled<64 / kRowsInFlight>([&](auto batch) {
    float g[kRowsInFlight] = {}, m[kRowsInFlight] = {};
    for (int i = 0; i < kRowsInFlight; ++i) {
      g[i] = gradient[i * stride];
      m[i] = momentum[i * stride];
    }
    for (int i = 0; i < kRowsInFlight; ++i)
      momentum[i * stride] = x[batch * kRowsInFlight + i] = NewMomentum(options, g[i], m[i]);
    gradient += kRowsInFlight * stride;
    momentum += kRowsInFlight * stride;
  });
}

constexpr void TransformWhole(const SignCompressOptions& options, const CompressSignsTensor& a,
                              const BlockSite& site, int column, Tile<float>& tile) {
  float x[64] = {};
  MomentumColumn(options, a, site, column, x);
  ForwardTransform(x, [&](int f, float value) { tile.at[f * kTileRow + column] = value; });
}

// The same of an edge, with zeros outside the tensor; short instead of fast.
constexpr void TransformEdge(const SignCompressOptions& options, const CompressSignsTensor& a,
                             const BlockSite& site, int column, Tile<float>& tile) {
  const int rows = RowsOfColumn(site, column);
  int64_t at = site.offset + column;
  for (int row = 0; row < 64; ++row, at += site.stride) {
    float& x = tile.at[row * kTileRow + column];
    x = row < rows ? NewMomentum(options, a.gradient[at], a.momentum[at]) : 0.0f;
    if (row < rows) a.momentum[at] = x;
  }
  VerticalColumn(column, tile);
}

// `block` counts from a.blocks.first. Only of a block that is whole, or is not, as kWhole says.
template <bool kWhole, typename Threads>
constexpr void CompressBlock(const Threads& threads, const SignCompressOptions& options,
                             const CompressSignsTensor& a, int64_t block, CompressScratch& s) {
  const BlockSite site = SiteOfBlock(a.matrix, a.blocks.first + block);
  if (IsWhole(site) != kWhole) return;
  threads.Each([&](int thread) {
    kWhole ? TransformWhole(options, a, site, thread, s.tile)
           : TransformEdge(options, a, site, thread, s.tile);
  });
  threads.Each([&](int thread) {
    s.select.row_maxima[thread] = HorizontalRow(thread, s.tile);
    if (thread == 0) ResetSelect(s.select);
  });
  const int k = options.k;
  SelectLargest(threads, s.tile, k, s.select, [&](int, int slot, int position) {
    a.positions[block * k + slot] = static_cast<uint16_t>(position);
    a.values[block * k + slot] = s.tile.at[IndexOf(position)];
  });
}

// Entries of a range of blocks on the device, as written by Compress.
struct PendingEntries {
  int k = 0;
  const uint16_t* positions = nullptr;  // [count, k], ascending within a block
  const float* values = nullptr;        // [count, k]
};

// The inverse transform of a block's pending coefficients along one column, in registers.
//
//   x[r] = sum over h of D[h][r] * (sum over entries of row h of value * D[w][column])
//
// Even frequencies are equal and odd ones opposite in the two halves of the column, so a row takes
// 32 multiply-adds. All threads of a block read the same entries.
constexpr void PendingColumn(const PendingEntries& pending, int64_t block, int column,
                             const HalfBasis<float>& basis, float (&x)[64]) {
  float even[32] = {}, odd[32] = {};
  const uint16_t* positions = pending.positions + block * pending.k;
  const float* values = pending.values + block * pending.k;
  const int sample = column < 32 ? column : 63 - column;
  float sum = 0;
  for (int i = 0; i < pending.k; ++i) {
    const int row = positions[i] >> 6 & 63;
    const int frequency = positions[i] & 63;
    const float value = values[i];
    const bool opposite = column >= 32 && frequency % 2 == 1;
    sum = Fma(opposite ? -value : value, basis.at[frequency * 32 + sample], sum);
    if (i + 1 < pending.k && (positions[i + 1] >> 6 & 63) == row) continue;
    const float* factors = basis.at + row * 32;
    if (row % 2 == 0) {
      for (int r = 0; r < 32; ++r) even[r] = Fma(factors[r], sum, even[r]);
    } else {
      for (int r = 0; r < 32; ++r) odd[r] = Fma(factors[r], sum, odd[r]);
    }
    sum = 0;
  }
  for (int r = 0; r < 32; ++r) {
    x[r] = even[r] + odd[r];
    x[63 - r] = even[r] - odd[r];
  }
}

struct FeedbackSignsArguments {
  MatrixShape matrix;
  BlockRange blocks;
  PendingEntries pending;
  float* momentum;  // [elements]
};

constexpr void FeedbackColumn(const FeedbackSignsArguments& a, int64_t block, int column,
                              const HalfBasis<float>& basis) {
  const BlockSite site = SiteOfBlock(a.matrix, a.blocks.first + block);
  const int rows = RowsOfColumn(site, column);
  float* momentum = a.momentum + site.offset + column;
  float x[64] = {};
  PendingColumn(a.pending, block, column, basis, x);
  for (int base = 0; base < 64; base += kRowsInFlight) {
    float m[kRowsInFlight] = {};
    for (int i = 0; i < kRowsInFlight; ++i) {
      if (base + i < rows) m[i] = momentum[i * site.stride];
    }
    for (int i = 0; i < kRowsInFlight; ++i) {
      if (base + i < rows) momentum[i * site.stride] = m[i] - x[base + i];
    }
    momentum += kRowsInFlight * site.stride;
  }
}

}  // namespace distro::cuda
