// One block of Backend::ApplyDeltas, for kThreads threads. The same bits as the CPU's backends on
// every input.
//
//   elements     p <- p - sgn * step for each entry; a thread takes every kThreads-th entry
//   frequencies  h from the counts of the levels; V; then as Apply, one thread per column:
//                u = IDCTint(V);  p <- p - float(u) * w
#pragma once

#include "kernels/cuda/signs_apply_block.h"
#include "kernels/deltas_step.h"

namespace distro::cuda {

struct ApplyDeltasArguments {
  MatrixShape matrix;
  BlockRange blocks;
  DeltaApplyOptions options;
  const uint32_t* offsets;    // [count + 1], need not start at 0
  const uint16_t* positions;  // [E], of the first block on
  const int8_t* signs;        // [E]
  const uint8_t* levels;      // [E]
  const uint8_t* codes;       // [count]
  float* parameters;          // [elements]
  // In, out: the number of a block in the range whose entries are invalid, else kAllBlocksValid.
  uint32_t* invalid;
};

struct ApplyDeltasScratch {
  ApplyScratch apply;        // entries: EntryOf the position and sgn * (level + 1), then V
  uint32_t counts[kLevels];  // entries of each level
  int shift;                 // h, of frequencies
};

constexpr int LevelOfEntry(uint32_t entry) {
  const int32_t value = static_cast<int32_t>(entry) >> 16;
  return (value < 0 ? -value : value) - 1;
}
constexpr int SignOfEntry(uint32_t entry) { return static_cast<int32_t>(entry) < 0 ? -1 : 1; }
constexpr uint32_t EntriesOf(const ApplyDeltasArguments& a, int64_t block) {
  return a.offsets[block + 1] - a.offsets[block];
}

// Positions and levels are masked and counts bounded, so invalid arrays cannot cause an access out
// of bounds.
template <typename Threads>
constexpr void LoadDeltas(const Threads& threads, const ApplyDeltasArguments& a, int64_t block,
                          int thread, ApplyDeltasScratch& s) {
  const uint32_t begin = a.offsets[block] - a.offsets[0];
  const uint32_t count = EntriesOf(a, block);
  const BlockSite site = SiteOfBlock(a.matrix, a.blocks.first + block);
  uint32_t faults = count > kBlockElements;
  for (uint32_t i = thread; i < count && count <= kBlockElements; i += kThreads) {
    const uint32_t position = a.positions[begin + i];
    const int sign = a.signs[begin + i], level = a.levels[begin + i];
    const int row = static_cast<int>(position) / kBlockSide;
    const bool inside = a.options.as_dct || row < RowsOfColumn(site, position % kBlockSide);
    const bool ascends = i == 0 || position > a.positions[begin + i - 1];
    faults += position >= kBlockElements || !ascends || !inside || (sign != 1 && sign != -1) ||
              level >= kLevels;
    s.apply.entries[i] = EntryOf(position, sign * (level % kLevels + 1));
    threads.Add(&s.counts[level % kLevels], 1);
  }
  threads.Add(&s.apply.faults, faults);
}

constexpr void SubtractEntries(const ApplyDeltasArguments& a, int64_t block, int thread,
                               const ApplyDeltasScratch& s) {
  const BlockSite site = SiteOfBlock(a.matrix, a.blocks.first + block);
  for (uint32_t i = thread; i < EntriesOf(a, block); i += kThreads) {
    const uint32_t entry = s.apply.entries[i];
    const float step = ElementStep(a.options.alpha, a.codes[block], LevelOfEntry(entry));
    float& p = a.parameters[site.offset + (entry >> 6 & 63) * site.stride + (entry & 63)];
    p = SignOfEntry(entry) < 0 ? p + step : p - step;
  }
}

// Writes V to the entries, and h for the next phase.
constexpr void FormVotes(const ApplyDeltasArguments& a, int64_t block, int thread,
                         ApplyDeltasScratch& s) {
  const int shift = FrequencyShift(s.counts);
  if (thread == 0) s.shift = shift;
  for (uint32_t i = thread; i < EntriesOf(a, block); i += kThreads) {
    const uint32_t entry = s.apply.entries[i];
    s.apply.entries[i] =
        EntryOf(entry, SignOfEntry(entry) * FrequencyPart(LevelOfEntry(entry), shift));
  }
}

constexpr void SubtractColumn(const ApplyDeltasArguments& a, int64_t block, int column,
                              const ApplyDeltasScratch& s) {
  ColumnSums sums;
  InverseColumn(s.apply, static_cast<int>(EntriesOf(a, block)), 0, column, sums);
  const float step = FrequencyStep(a.options.alpha, a.codes[block], s.shift);
  MoveColumn(a.matrix, a.blocks.first + block, column, sums, a.parameters, [&](float p, int32_t u) {
    const float move = static_cast<float>(u) * step;
    return p - move;
  });
}

// `block` counts from a.blocks.first. s.apply.basis holds the basis.
template <typename Threads>
constexpr void ApplyDeltasBlock(const Threads& threads, const ApplyDeltasArguments& a,
                                int64_t block, ApplyDeltasScratch& s) {
  threads.Each([&](int thread) {
    if (thread < kLevels) s.counts[thread] = 0;
    if (thread == 0) s.apply.faults = 0;
  });
  threads.Each([&](int thread) { LoadDeltas(threads, a, block, thread, s); });
  threads.Each([&](int thread) {
    if (s.apply.faults > 0) {
      if (thread == 0) threads.Store(a.invalid, static_cast<uint32_t>(block));
    } else if (a.options.as_dct) {
      FormVotes(a, block, thread, s);
    } else {
      SubtractEntries(a, block, thread, s);
    }
  });
  threads.Each([&](int thread) {
    if (s.apply.faults == 0 && a.options.as_dct && EntriesOf(a, block) > 0)
      SubtractColumn(a, block, thread, s);
  });
}

}  // namespace distro::cuda
