// Compresses one block under the deltas method, with kThreads threads: FormDelta and AppendLargest
// (kernels/cpu/deltas_compress.h, kernels/cpu/deltas_transform.h) in one pass over the arrays.
//
//   e <- a = beta * e + (begin - x)
//   elements     the K positions of the largest |a|, their signs and scale code
//   frequencies  the same of c = D a D^T
//
// A thread holds a column while it forms the delta. Afterwards it holds a row of elements, or a
// column and then a row of the transform. Threads exchange data through one tile in shared memory.
//
// Where a is finite, e and the record of elements have the CPU's bits; the record of frequencies
// comes from a transform whose last bits differ. Where a is not finite, the record is unspecified
// but valid.
#pragma once

#include <optional>

#include "common/method/deltas/scale.h"
#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/forward_transform.h"
#include "kernels/cuda/select_largest.h"

namespace distro::cuda {

// Rows of three arrays that a thread loads before it uses the first.
inline constexpr int kDeltaRowsInFlight = 8;

struct CompressDeltasArguments {
  MatrixShape matrix;
  BlockRange blocks;
  float beta = 0;
  int k = 0;            // 1..4096
  uint8_t cap = 255;    // of the scale codes
  bool as_dct = false;  // frequencies
  const float* begin;   // [elements]
  const float* x;       // [elements]
  float* error;         // [elements]; only elements of the range change
  uint16_t* positions;  // [count, k]
  int8_t* signs;        // [count, k]
  uint8_t* codes;       // [count]
};

struct CompressDeltasScratch {
  Tile<float> tile;  // candidates: KeyedElement of elements, or frequencies
  SelectScratch select;
  int64_t units[kThreads];  // of what each thread emitted
};

// An element as SelectLargest orders it: the bits of a plus one. A 0 inside the tensor is then
// larger than every position outside, which has kOutside.
inline constexpr float kOutside = 0;
constexpr float KeyedElement(float a) {
  return __builtin_bit_cast(float, __builtin_bit_cast(uint32_t, a) + 1);
}
constexpr float ElementOfKey(float keyed) {
  const auto bits = __builtin_bit_cast(uint32_t, keyed);
  return bits == 0 ? 0.0f : __builtin_bit_cast(float, bits - 1);
}

// Writes a of one column to e and to the tile.
template <bool kAsDct, bool kWhole>
constexpr void FormColumn(const CompressDeltasArguments& a, const BlockSite& site, int column,
                          Tile<float>& tile) {
  const int rows = RowsOfColumnIn<kWhole>(site, column);
  const auto stride = StrideOf<kWhole>(site);
  int64_t at = site.offset + column;
  for (int base = 0; base < 64; base += kDeltaRowsInFlight) {
    float begin[kDeltaRowsInFlight] = {}, x[kDeltaRowsInFlight] = {}, e[kDeltaRowsInFlight] = {};
    for (int i = 0; i < kDeltaRowsInFlight; ++i) {
      if (base + i >= rows) continue;
      begin[i] = a.begin[at + i * stride];
      x[i] = a.x[at + i * stride];
      e[i] = a.error[at + i * stride];
    }
    for (int i = 0; i < kDeltaRowsInFlight; ++i) {
      const float formed = FormedDelta(a.beta, begin[i], x[i], e[i]);
      const bool inside = base + i < rows;
      if (inside) a.error[at + i * stride] = formed;
      tile.at[(base + i) * kTileRow + column] =
          inside ? (kAsDct ? formed : KeyedElement(formed)) : kOutside;
    }
    at += kDeltaRowsInFlight * stride;
  }
}

constexpr uint32_t LargestOfRow(const Tile<float>& tile, int row) {
  uint32_t largest = 0;
  for (int n = 0; n < 64; ++n) {
    const uint32_t magnitude = Magnitude(tile.at[row * kTileRow + n]);
    if (magnitude > largest) largest = magnitude;
  }
  return largest;
}

// Writes position and sign to the record's slot, and adds the magnitude to the thread's units.
template <bool kAsDct>
constexpr void WriteEntry(const CompressDeltasArguments& a, int64_t block, int thread, int slot,
                          int position, CompressDeltasScratch& s) {
  const float held = s.tile.at[IndexOf(position)];
  const float value = kAsDct ? held : ElementOfKey(held);
  a.positions[block * a.k + slot] = static_cast<uint16_t>(position);
  a.signs[block * a.k + slot] = value < 0 ? int8_t{-1} : int8_t{1};
  s.units[thread] += ScaleUnits(value);
}

// Writes the scale code for the sum of all units, of a block with `candidates` values. A record
// without a code becomes empty.
constexpr void FinishRecord(const CompressDeltasArguments& a, int64_t block, int candidates,
                            int thread, const CompressDeltasScratch& s) {
  int64_t sum = 0;
  for (int i = 0; i < kThreads; ++i) sum += s.units[i];
  const std::optional<uint8_t> code = ChooseScale(sum, std::min(a.k, candidates));
  if (thread == 0) a.codes[block] = std::min(code.value_or(0), a.cap);
  if (code.has_value()) return;
  for (int slot = thread; slot < a.k; slot += kThreads) {
    a.positions[block * a.k + slot] = 0;
    a.signs[block * a.k + slot] = 0;
  }
}

// `block` counts from a.blocks.first; a.as_dct is kAsDct. Only of a block that is whole, or is not,
// as kWhole says.
template <bool kAsDct, bool kWhole, typename Threads>
constexpr void CompressDeltasBlock(const Threads& threads, const CompressDeltasArguments& a,
                                   int64_t block, CompressDeltasScratch& s) {
  const BlockSite site = SiteOfBlock(a.matrix, a.blocks.first + block);
  if (IsWhole(site) != kWhole) return;
  threads.Each([&](int thread) {
    FormColumn<kAsDct, kWhole>(a, site, thread, s.tile);
    if constexpr (kAsDct) VerticalColumn(thread, s.tile);
  });
  threads.Each([&](int thread) {
    s.select.row_maxima[thread] =
        kAsDct ? HorizontalRow(thread, s.tile) : LargestOfRow(s.tile, thread);
    s.units[thread] = 0;
    if (thread == 0) ResetSelect(s.select);
  });
  SelectLargest(threads, s.tile, a.k, s.select, [&](int thread, int slot, int position) {
    WriteEntry<kAsDct>(a, block, thread, slot, position, s);
  });
  const int candidates = kAsDct || kWhole ? kBlockElements : ExtentOf(site).Elements();
  threads.Each([&](int thread) { FinishRecord(a, block, candidates, thread, s); });
}

}  // namespace distro::cuda
