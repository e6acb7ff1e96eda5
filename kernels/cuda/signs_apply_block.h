// One block of Backend::ApplyVotes, for kThreads threads, one a column. The same bits as
// reference::InverseInteger and reference::Update on every input.
//
//   V <- V * 2^s
//   t[a][c] = (sum over votes of row a of V * Q[b][c] + 32) >> 6     for rows a with votes only
//   u[r][c] = sum over a of Q[a][r] * t[a][c];  d = sign(u);  p <- (p - p*eta_lambda) - eta*d
//
// A thread holds its column of u as the sums of odd frequencies (32), of those that are 2 mod 4
// (16) and of the multiples of 4 (16): integer sums that cannot overflow are the same in any order.
#pragma once

#include "common/method/signs/votes.h"
#include "kernels/cuda/block.h"

namespace distro::cuda {

inline constexpr int kPairsInFlight =
    8;  // loads per thread before the first use; more would spill registers

struct ApplyVotesArguments {
  MatrixShape matrix;
  BlockRange blocks;
  SignApplyOptions options;
  const uint32_t* offsets;    // [count + 1], need not start at 0
  const uint16_t* positions;  // [E], of the first block on
  const int16_t* values;      // [E]
  float* parameters;          // [elements]
  // In, out: the number of a block in the range whose votes are invalid, else kAllBlocksValid.
  uint32_t* invalid;
};

struct ApplyScratch {
  HalfBasis<int32_t> basis;
  uint32_t entries[kBlockElements];  // EntryOf
  uint32_t total;                    // sum of |V|
  uint32_t faults;                   // entries that break the order
};

constexpr uint32_t EntryOf(uint32_t position, int vote) {
  return (position & 0xFFFF) | static_cast<uint32_t>(vote) << 16;
}

// Reads every kThreads-th entry. Positions are masked and counts bounded, so invalid arrays cannot
// cause an access out of bounds.
template <typename Threads>
constexpr void LoadVotes(const Threads& threads, const ApplyVotesArguments& a, int64_t block,
                         int thread, ApplyScratch& s) {
  const uint32_t begin = a.offsets[block] - a.offsets[0];
  const uint32_t count = a.offsets[block + 1] - a.offsets[block];
  uint32_t total = 0, faults = count > kBlockElements;
  for (uint32_t i = thread; i < count && count <= kBlockElements; i += kThreads) {
    const uint32_t position = a.positions[begin + i];
    const int vote = a.values[begin + i];
    faults += position >= kBlockElements || (i > 0 && position <= a.positions[begin + i - 1]);
    total += static_cast<uint32_t>(vote < 0 ? -vote : vote);
    s.entries[i] = EntryOf(position, vote);
  }
  threads.Add(&s.total, total);
  threads.Add(&s.faults, faults);
}

// The largest s with total * 2^s <= 32767; 0 when there are no votes.
constexpr int ShiftOf(uint32_t total) {
  int shift = 0;
  while (total > 0 && (total << (shift + 1)) <= kMaxVotesPerBlock) ++shift;
  return shift;
}

struct ColumnSums {
  int32_t odd[32] = {};
  int32_t two[16] = {};
  int32_t four[16] = {};
};

constexpr void AddRow(const HalfBasis<int32_t>& basis, int row, int32_t t, ColumnSums& sums) {
  const int32_t* factors = basis.at + row * 32;
  if (row % 2 == 1) {
    Unrolled<32>([&](auto r) { sums.odd[r] += factors[r] * t; });
  } else if (row % 4 == 2) {
    Unrolled<16>([&](auto r) { sums.two[r] += factors[r] * t; });
  } else {
    Unrolled<16>([&](auto r) { sums.four[r] += factors[r] * t; });
  }
}

// The column of u of V * 2^shift.
constexpr void InverseColumn(const ApplyScratch& s, int count, int shift, int column,
                             ColumnSums& sums) {
  const int sample = column < 32 ? column : 63 - column;
  const int right = column >= 32;
  int32_t t = 32;
  for (int i = 0; i < count; ++i) {
    const uint32_t entry = s.entries[i];
    const int row = entry >> 6 & 63;
    const int frequency = entry & 63;
    const int32_t vote = (static_cast<int32_t>(entry) >> 16) * (1 << shift);
    t += (right & frequency ? -vote : vote) * s.basis.at[frequency * 32 + sample];
    if (i + 1 < count && (s.entries[i + 1] >> 6 & 63) == static_cast<uint32_t>(row)) continue;
    AddRow(s.basis, row, t >> 6, sums);
    t = 32;
  }
}

// Three operations, each rounded.
constexpr float Updated(float p, const SignApplyOptions& options, int32_t u) {
  const float direction = static_cast<float>((u > 0) - (u < 0));
  const float decay = p * options.eta_lambda;
  const float decayed = p - decay;
  const float step = options.eta * direction;
  return decayed - step;
}

// Row r of the column's upper half, without the odd frequencies.
constexpr int32_t EvenSum(const ColumnSums& sums, int r) {
  return r < 16 ? sums.four[r] + sums.two[r] : sums.four[31 - r] - sums.two[31 - r];
}

// p <- move(p, u) down the column of a block of the matrix: rows r and 63 - r together,
// kPairsInFlight pairs at a time.
template <typename Move>
constexpr void MoveColumn(const MatrixShape& matrix, int64_t block, int column,
                          const ColumnSums& sums, float* parameters, const Move& move) {
  const BlockSite site = SiteOfBlock(matrix, block);
  const int rows = RowsOfColumn(site, column);
  float* upper = parameters + site.offset + column;
  float* lower = upper + 63 * site.stride;
  Unrolled<32 / kPairsInFlight>([&](auto batch) {
    constexpr int kBase = batch * kPairsInFlight;
    float p[kPairsInFlight] = {}, q[kPairsInFlight] = {};
    Unrolled<kPairsInFlight>([&](auto i) {
      if (kBase + i < rows) p[i] = upper[i * site.stride];
      if (63 - kBase - i < rows) q[i] = lower[-i * site.stride];
    });
    Unrolled<kPairsInFlight>([&](auto i) {
      const int32_t even = EvenSum(sums, kBase + i), odd = sums.odd[kBase + i];
      if (kBase + i < rows) upper[i * site.stride] = move(p[i], even + odd);
      if (63 - kBase - i < rows) lower[-i * site.stride] = move(q[i], even - odd);
    });
    upper += kPairsInFlight * site.stride;
    lower -= kPairsInFlight * site.stride;
  });
}

constexpr void ApplyColumn(const ApplyVotesArguments& a, int64_t block, int column,
                           const ApplyScratch& s) {
  ColumnSums sums;
  const uint32_t count = a.offsets[block + 1] - a.offsets[block];
  InverseColumn(s, static_cast<int>(count), ShiftOf(s.total), column, sums);
  MoveColumn(a.matrix, a.blocks.first + block, column, sums, a.parameters,
             [&](float p, int32_t u) { return Updated(p, a.options, u); });
}

// `block` counts from a.blocks.first. s.basis holds the basis. The parameters of a block with
// invalid votes do not change.
template <typename Threads>
constexpr void ApplyBlock(const Threads& threads, const ApplyVotesArguments& a, int64_t block,
                          ApplyScratch& s) {
  threads.Each([&](int thread) {
    if (thread == 0) s.total = s.faults = 0;
  });
  threads.Each([&](int thread) { LoadVotes(threads, a, block, thread, s); });
  threads.Each([&](int thread) {
    if (s.faults == 0 && s.total <= kMaxVotesPerBlock) {
      ApplyColumn(a, block, thread, s);
    } else if (thread == 0) {
      threads.Store(a.invalid, static_cast<uint32_t>(block));
    }
  });
}

}  // namespace distro::cuda
