// Defines the tokens of a sample and the order of samples (docs/data.md). Pure functions of the
// run's numbers, exact on every machine; thread-safe.
//
// Sample i is the sequence_length + 1 tokens from i * sequence_length on. Neighbours share one
// token, so every token except the first is predicted once. The remainder at the end is dropped.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"

namespace distro::worker {

// Samples 0..training_samples-1 are for training; the held_out_samples after them are never trained
// on.
struct DataSplit {
  int64_t training_samples = 0;
  int64_t held_out_samples = 0;
};

// The last ceil(held_out_fraction * samples) samples are held out, none when the fraction is 0.
// InvalidArgument: sequence_length below 1, a fraction outside 0 <= f < 1, or no sample is left for
// training.
absl::StatusOr<DataSplit> SplitSamples(int64_t tokens, int sequence_length,
                                       double held_out_fraction);

// The order of training samples: every epoch is a permutation of all of them, epoch e that of seed
// + e, modulo 2^64.
//
// The permutation is a Feistel network of kRounds rounds on the smallest even number of bits that
// can hold the number of samples, with round function SplitMix64(seed + e, round * 2^32 + half). A
// value outside the samples is permuted again: fewer than four evaluations on average. It needs
// O(1) memory and gives random access.
class Sampler {
 public:
  static constexpr int kRounds = 6;

  // Requires 1 <= training_samples <= 2^62.
  Sampler(int64_t training_samples, uint64_t seed);

  // The sample at place `global_index` of the run: epoch global_index / training_samples, position
  // the remainder.
  int64_t SampleAt(uint64_t global_index) const;

 private:
  uint64_t Permute(uint64_t key, uint64_t value) const;

  const uint64_t samples_;
  const uint64_t seed_;
  const int half_bits_;
};

}  // namespace distro::worker
