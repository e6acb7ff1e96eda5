// Error feedback of one block under the deltas method, for kThreads threads: SubtractReturned of
// kernels/cpu/deltas_compress.h and kernels/cpu/deltas_transform.h.
//
//   q[p]         sgn * M(c) * 2^-44 at the record's positions p that the result has too, else 0
//   elements     e <- e - q, inside the tensor
//   frequencies  e <- e - D^T q D, inside the tensor, if there is such a position
//
// On elements this gives the CPU's bits. The inverse transform is that of Feedback, with the same
// order of additions; it differs from the CPU's in the last bits.
#pragma once

#include "common/method/deltas/scale.h"
#include "kernels/cuda/signs_compress_block.h"

namespace distro::cuda {

// The part of a sent update that covers a range of blocks: the arrays of a DeltaUpdate, on the
// device.
struct SentDeltas {
  int k = 0;
  const uint16_t* positions = nullptr;  // [count, k]
  const int8_t* signs = nullptr;        // [count, k]
  const uint8_t* codes = nullptr;       // [count]
};

struct FeedbackDeltasArguments {
  MatrixShape matrix;
  BlockRange blocks;
  bool as_dct = false;
  SentDeltas sent;
  const uint32_t* offsets;    // [count + 1] of the result, need not start at 0
  const uint16_t* positions;  // [E] of the result, from the first block on
  float* error;               // [elements]
  // In, out: the number of positions returned; of elements, only those inside the tensor count.
  uint64_t* returned;
};

struct FeedbackDeltasScratch {
  uint32_t came_back[kBlockElements / 32];  // a bit for each position in the result's block
  uint32_t returned;                        // positions returned in this block
  uint64_t all_returned;                    // in all blocks of this group; starts at 0
};

// For tensors sent as DCT.
struct FeedbackFrequenciesScratch {
  HalfBasis<float> basis;
  float values[kBlockElements];  // q of each entry of the record
  FeedbackDeltasScratch common;
};

// Each position occurs once, so adding sets its bit. Positions are compared and counts bounded, so
// invalid arrays cannot cause an access out of bounds.
template <typename Threads>
constexpr void MarkReturned(const Threads& threads, const FeedbackDeltasArguments& a, int64_t block,
                            int thread, FeedbackDeltasScratch& s) {
  const uint32_t begin = a.offsets[block] - a.offsets[0];
  const uint32_t count = a.offsets[block + 1] - a.offsets[block];
  for (uint32_t i = thread; i < count && count <= kBlockElements; i += kThreads) {
    const uint32_t position = a.positions[begin + i];
    if (position < kBlockElements)
      threads.Add(&s.came_back[position / 32], uint32_t{1} << position % 32);
  }
}

constexpr bool CameBack(uint32_t position, const FeedbackDeltasScratch& s) {
  return position < kBlockElements && (s.came_back[position / 32] >> position % 32 & 1) != 0;
}

// The magnitude of every entry of the record, exact.
constexpr float MagnitudeSent(const FeedbackDeltasArguments& a, int64_t block) {
  return static_cast<float>(ScaleOf(a.sent.codes[block])) * 0x1p-44f;
}

// e <- e - q for every kThreads-th entry.
template <typename Threads>
constexpr void SubtractElements(const Threads& threads, const FeedbackDeltasArguments& a,
                                int64_t block, int thread, FeedbackDeltasScratch& s) {
  const BlockSite site = SiteOfBlock(a.matrix, a.blocks.first + block);
  const float magnitude = MagnitudeSent(a, block);
  uint32_t returned = 0;
  for (int64_t i = block * a.sent.k + thread; i < (block + 1) * a.sent.k; i += kThreads) {
    const uint32_t position = a.sent.positions[i];
    const int row = static_cast<int>(position) / kBlockSide, column = position % kBlockSide;
    if (!CameBack(position, s) || row >= RowsOfColumn(site, column)) continue;
    float& e = a.error[site.offset + row * site.stride + column];
    e = e - static_cast<float>(a.sent.signs[i]) * magnitude;
    ++returned;
  }
  threads.Add(&s.returned, returned);
}

// values <- q for every kThreads-th entry.
template <typename Threads>
constexpr void CollectReturned(const Threads& threads, const FeedbackDeltasArguments& a,
                               int64_t block, int thread, FeedbackFrequenciesScratch& s) {
  const float magnitude = MagnitudeSent(a, block);
  uint32_t returned = 0;
  for (int i = thread; i < a.sent.k; i += kThreads) {
    const bool came_back = CameBack(a.sent.positions[block * a.sent.k + i], s.common);
    const float q = static_cast<float>(a.sent.signs[block * a.sent.k + i]) * magnitude;
    s.values[i] = came_back ? q : 0.0f;
    returned += came_back;
  }
  threads.Add(&s.common.returned, returned);
}

constexpr void SubtractInverse(const FeedbackDeltasArguments& a, int64_t block, int column,
                               const FeedbackFrequenciesScratch& s) {
  FeedbackColumn({.matrix = a.matrix,
                  .blocks = {.first = a.blocks.first + block, .count = 1},
                  .pending = {.k = a.sent.k,
                              .positions = a.sent.positions + block * a.sent.k,
                              .values = s.values},
                  .momentum = a.error},
                 /*block=*/0, column, s.basis);
}

// Marks the positions in the result's block. Returns false if the record is empty.
template <typename Threads>
constexpr bool BeginFeedback(const Threads& threads, const FeedbackDeltasArguments& a,
                             int64_t block, FeedbackDeltasScratch& s) {
  if (a.sent.signs[block * a.sent.k] == 0) return false;
  threads.Each([&](int thread) {
    for (int i = thread; i < kBlockElements / 32; i += kThreads) s.came_back[i] = 0;
    if (thread == 0) s.returned = 0;
  });
  threads.Each([&](int thread) { MarkReturned(threads, a, block, thread, s); });
  return true;
}

constexpr void CountBlock(int thread, FeedbackDeltasScratch& s) {
  if (thread == 0) s.all_returned += s.returned;
}

// `block` counts from a.blocks.first.
template <typename Threads>
constexpr void FeedbackElements(const Threads& threads, const FeedbackDeltasArguments& a,
                                int64_t block, FeedbackDeltasScratch& s) {
  if (!BeginFeedback(threads, a, block, s)) return;
  threads.Each([&](int thread) { SubtractElements(threads, a, block, thread, s); });
  threads.Each([&](int thread) { CountBlock(thread, s); });
}

// s.basis holds the basis.
template <typename Threads>
constexpr void FeedbackFrequencies(const Threads& threads, const FeedbackDeltasArguments& a,
                                   int64_t block, FeedbackFrequenciesScratch& s) {
  if (!BeginFeedback(threads, a, block, s.common)) return;
  threads.Each([&](int thread) { CollectReturned(threads, a, block, thread, s); });
  threads.Each([&](int thread) {
    if (s.common.returned > 0) SubtractInverse(a, block, thread, s);
    CountBlock(thread, s.common);
  });
}

}  // namespace distro::cuda
