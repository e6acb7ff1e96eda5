// The SplitMix64 finaliser and the stream built on it: the only pseudo-random numbers whose values
// the design fixes (docs/algorithm.md: ties, state hash; data permutation; initial weights). Pure,
// the same bits on every machine. RandomWord, in contrast, is different in every process.
#pragma once

#include <cstdint>

namespace distro {

inline constexpr uint64_t kGoldenGamma = 0x9E3779B97F4A7C15;

// The SplitMix64 finaliser, a bijection of 64-bit words.
constexpr uint64_t Mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

// Element `i` of SplitMix64's sequence from `seed`, with random access.
constexpr uint64_t SplitMix64(uint64_t seed, uint64_t i) {
  return Mix(seed + kGoldenGamma * (i + 1));
}

// 64 bits of the machine's entropy: different in every call and every process.
uint64_t RandomWord();

}  // namespace distro
