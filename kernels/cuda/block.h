// Building blocks of the GPU kernels. A group of threads works on one 64 x 64 block in phases;
// within a phase a thread does not see what others write, except through Add. The phases are
// constexpr templates over `Threads`. nvcc compiles them for the device (--expt-relaxed-constexpr).
// For tests, any compiler compiles them and the kernels for the CPU (tests/kernels/emulation).
// Contraction is off and fused multiply-adds are explicit, so both give the same bits.
//
//   threads.Each(f)         f(thread) on every thread, then a barrier
//   threads.Add(at, value)  atomic +=; returns what was there before
//   threads.Store(at, value)  atomic =, for a word that threads of several groups may write
#pragma once

#include <cstdint>

#include "kernels/basis_entry.h"
#include "kernels/block_site.h"
#include "kernels/unrolled.h"

namespace distro::cuda {

inline constexpr int kThreads = 64;  // per block: one per column, or one per row

// Rows have 65 words, so that neighbouring threads use different shared-memory banks both along
// rows and along columns.
inline constexpr int kTileRow = 65;
template <typename T>
struct Tile {
  T at[64 * kTileRow];
};

// Rows 0..63 of the basis at samples 0..31; the other half is even or odd about the middle.
template <typename T>
struct alignas(16) HalfBasis {
  T at[64 * 32];
};

// Evaluated at compile time, to initialise tables in device memory.
template <typename T, typename Entry>
constexpr HalfBasis<T> MakeHalfBasis(Entry entry) {
  HalfBasis<T> basis{};
  for (int k = 0; k < 64; ++k) {
    for (int n = 0; n < 32; ++n) basis.at[k * 32 + n] = entry(k, n);
  }
  return basis;
}
constexpr HalfBasis<float> MakeHalfBasisF32() { return MakeHalfBasis<float>(BasisEntry); }
constexpr HalfBasis<int32_t> MakeHalfBasisQ13() { return MakeHalfBasis<int32_t>(BasisEntryQ13); }

// Orders as |x| does, and puts NaN above infinity.
constexpr uint32_t Magnitude(float x) { return __builtin_bit_cast(uint32_t, x) & 0x7FFFFFFF; }

// 32-bit divisions: a matrix has fewer than 2^31 blocks.
constexpr BlockSite SiteOfBlock(const MatrixShape& matrix, int64_t block) {
  const auto across = static_cast<uint32_t>(matrix.BlocksAcross());
  const auto number = static_cast<uint32_t>(block);
  return SiteAt(matrix, number / across, number % across);
}

// How many elements of the column exist; they are its first ones.
constexpr int RowsOfColumn(const BlockSite& site, int column) {
  if (column < site.last_cols) return site.rows;
  return column < site.cols ? site.rows - 1 : 0;
}

// A whole block has no padding, and its rows are less than 2^26 elements apart. Kernels have a
// version for whole blocks, without conditions on rows and columns and with 32-bit offsets, and one
// for all others, the edges. A version skips the other's blocks.
inline constexpr int64_t kMaxWholeStride = int64_t{1} << 26;  // 16 rows fit 31 bits

constexpr bool IsWhole(const BlockSite& site) {
  return site.rows == 64 && site.last_cols == 64 && site.stride < kMaxWholeStride;
}

// False only if the matrix has no block of that version.
constexpr bool MayHaveWholeBlocks(const MatrixShape& matrix) {
  return matrix.rows >= 64 && matrix.cols >= 64 && matrix.cols < kMaxWholeStride;
}
constexpr bool MayHaveEdges(const MatrixShape& matrix) {
  return matrix.rows % 64 != 0 || matrix.cols % 64 != 0 ||
         matrix.elements != matrix.rows * matrix.cols || matrix.cols >= kMaxWholeStride;
}

template <bool kWhole>
constexpr int RowsOfColumnIn(const BlockSite& site, int column) {
  return kWhole ? 64 : RowsOfColumn(site, column);
}
template <bool kWhole>
constexpr auto StrideOf(const BlockSite& site) {
  if constexpr (kWhole) {
    return static_cast<int>(site.stride);
  } else {
    return site.stride;
  }
}

// Every one of kThreads threads copies its part. Needs a barrier afterwards.
template <typename T>
constexpr void CopyHalfBasis(int thread, const HalfBasis<T>& from, HalfBasis<T>& to) {
  for (int i = thread; i < 64 * 32; i += kThreads) to.at[i] = from.at[i];
}

}  // namespace distro::cuda
