// Selects the k largest coefficients, by magnitude, of a block in shared memory. Exact; ties go to
// the lower position.
//
// k <= 64: the rows are ranked by their largest coefficient. The first k rows contain all of the k
// largest coefficients, and only coefficients that reach the largest of the k-th row are
// candidates: about k of them. They are ranked by counting. For larger k, or too many candidates
// (ties, zeros), the k-th magnitude is found bit by bit over the whole block.
#pragma once

#include "kernels/cuda/block.h"

namespace distro::cuda {

inline constexpr int kMaxCandidates = 256;
inline constexpr int kMagnitudeBits = 31;

struct SelectScratch {
  uint64_t keys[kMaxCandidates];
  bool chosen[kMaxCandidates];
  uint32_t row_maxima[64];            // in: bits of each row's largest magnitude
  int rows[64];                       // the first rows in the order of their maxima
  uint32_t threshold;                 // least magnitude that can be among the k largest
  uint32_t candidates;                // in: 0
  uint32_t reaching[kMagnitudeBits];  // in: 0. How many magnitudes reach the trial of each bit
  uint32_t above[64], equal[64];      // of each row: magnitudes above, and at, the k-th
};

// Call from one thread, before the barrier that precedes SelectLargest.
constexpr void ResetSelect(SelectScratch& s) {
  s.candidates = 0;
  for (uint32_t& count : s.reaching) count = 0;
}

constexpr int IndexOf(int position) { return position / 64 * kTileRow + position % 64; }

// Greater keys are chosen first.
constexpr uint64_t KeyOf(uint32_t magnitude, int position) {
  return uint64_t{magnitude} << 12 | static_cast<uint64_t>(kBlockElements - 1 - position);
}
constexpr int PositionOf(uint64_t key) {
  return kBlockElements - 1 - static_cast<int>(key % kBlockElements);
}

constexpr void RankRow(int row, int k, SelectScratch& s) {
  const uint32_t own = s.row_maxima[row];
  int rank = 0;
  for (int i = 0; i < 64; ++i) rank += s.row_maxima[i] > own || (s.row_maxima[i] == own && i < row);
  if (rank < k) s.rows[rank] = row;
  if (rank == k - 1) s.threshold = own;
}

template <typename Threads>
constexpr void CollectColumn(const Threads& threads, const Tile<float>& c, int column, int k,
                             SelectScratch& s) {
  for (int i = 0; i < k; ++i) {
    const int row = s.rows[i];
    const uint32_t magnitude = Magnitude(c.at[row * kTileRow + column]);
    if (magnitude < s.threshold) continue;
    const uint32_t slot = threads.Add(&s.candidates, uint32_t{1});
    if (slot < kMaxCandidates) s.keys[slot] = KeyOf(magnitude, row * 64 + column);
  }
}

constexpr void RankCandidates(int thread, int k, SelectScratch& s) {
  const int count = static_cast<int>(s.candidates);
  for (int i = thread; i < count; i += kThreads) {
    int rank = 0;
    for (int j = 0; j < count; ++j) rank += s.keys[j] > s.keys[i];
    s.chosen[i] = rank < k;
  }
}

template <typename Emit>
constexpr void EmitCandidates(int thread, const SelectScratch& s, const Emit& emit) {
  const int count = static_cast<int>(s.candidates);
  for (int i = thread; i < count; i += kThreads) {
    if (!s.chosen[i]) continue;
    const int position = PositionOf(s.keys[i]);
    int slot = 0;
    for (int j = 0; j < count; ++j) slot += s.chosen[j] && PositionOf(s.keys[j]) < position;
    emit(thread, slot, position);
  }
}

// Bits `bit` + 1 and above of the k-th largest magnitude are known; the trial also sets `bit`.
constexpr uint32_t Trial(int bit, int k, const SelectScratch& s) {
  uint32_t trial = 0;
  for (int b = kMagnitudeBits - 1; b > bit; --b) {
    if (s.reaching[b] >= static_cast<uint32_t>(k)) trial |= uint32_t{1} << b;
  }
  return bit < 0 ? trial : trial | uint32_t{1} << bit;
}

constexpr void CountRow(const Tile<float>& c, int row, uint32_t kth, SelectScratch& s) {
  uint32_t above = 0, equal = 0;
  for (int i = 0; i < 64; ++i) {
    const uint32_t magnitude = Magnitude(c.at[row * kTileRow + i]);
    above += magnitude > kth;
    equal += magnitude == kth;
  }
  s.above[row] = above;
  s.equal[row] = equal;
}

// The coefficients that equal the k-th fill the remaining places in ascending position.
template <typename Emit>
constexpr void EmitRow(const Tile<float>& c, int row, int k, uint32_t kth, const SelectScratch& s,
                       const Emit& emit) {
  int above = 0, equal = 0, all_above = 0;
  for (int i = 0; i < 64; ++i) {
    if (i == row) above = all_above;
    all_above += static_cast<int>(s.above[i]);
    if (i < row) equal += static_cast<int>(s.equal[i]);
  }
  const int places = k - all_above;
  for (int i = 0; i < 64; ++i) {
    const uint32_t magnitude = Magnitude(c.at[row * kTileRow + i]);
    if (magnitude > kth || (magnitude == kth && equal < places))
      emit(row, above + (equal < places ? equal : places), row * 64 + i);
    above += magnitude > kth;
    equal += magnitude == kth;
  }
}

template <typename Threads, typename Emit>
constexpr void SelectBitByBit(const Threads& threads, const Tile<float>& c, int k, SelectScratch& s,
                              const Emit& emit) {
  for (int bit = kMagnitudeBits - 1; bit >= 0; --bit) {
    threads.Each([&](int thread) {
      const uint32_t trial = Trial(bit, k, s);
      uint32_t count = 0;
      for (int i = 0; i < 64; ++i) count += Magnitude(c.at[thread * kTileRow + i]) >= trial;
      threads.Add(&s.reaching[bit], count);
    });
  }
  threads.Each([&](int thread) { CountRow(c, thread, Trial(-1, k, s), s); });
  threads.Each([&](int thread) { EmitRow(c, thread, k, Trial(-1, k, s), s, emit); });
}

// Calls emit(thread, slot, position) once for each of the k positions, on any thread. `slot` is the
// position's index among the k in ascending order. Its coefficient is c.at[IndexOf(position)].
template <typename Threads, typename Emit>
constexpr void SelectLargest(const Threads& threads, const Tile<float>& c, int k, SelectScratch& s,
                             const Emit& emit) {
  if (k <= 64) {
    threads.Each([&](int thread) { RankRow(thread, k, s); });
    threads.Each([&](int thread) { CollectColumn(threads, c, thread, k, s); });
  }
  if (k > 64 || s.candidates > kMaxCandidates) {
    SelectBitByBit(threads, c, k, s, emit);
    return;
  }
  threads.Each([&](int thread) { RankCandidates(thread, k, s); });
  threads.Each([&](int thread) { EmitCandidates(thread, s, emit); });
}

}  // namespace distro::cuda
