// How many tokens of a micro-batch have logits at a time, and how many words the products of a head
// have on GPUs, in every architecture (worker/model/token_loss.h).
#pragma once

#include <algorithm>
#include <cstdint>

namespace distro {

// Large enough for a matrix product to fill a GPU: 2097 rows of 32000 words.
inline constexpr int64_t kLogitBytes = int64_t{256} << 20;

// On GPUs the weight of a head is padded to a multiple of so many words: products of bf16 read 16
// bytes of a side at a time, which they cannot where a side is odd, wherever its rows begin.
inline constexpr int64_t kLogitAlignment = 64;

// At least 1.
constexpr int64_t LogitRows(int64_t vocabulary) {
  return std::max<int64_t>(1, kLogitBytes / (vocabulary * static_cast<int64_t>(sizeof(float))));
}

}  // namespace distro
