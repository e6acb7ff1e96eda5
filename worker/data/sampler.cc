#include "worker/data/sampler.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/random.h"

namespace distro::worker {

absl::StatusOr<DataSplit> SplitSamples(int64_t tokens, int sequence_length,
                                       double held_out_fraction) {
  if (sequence_length < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("sequence_length: ", sequence_length, " is below 1"));
  }
  if (!(held_out_fraction >= 0 && held_out_fraction < 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("held_out_fraction: ", held_out_fraction, " is outside 0 <= fraction < 1"));
  }
  const int64_t samples = std::max<int64_t>(tokens - 1, 0) / sequence_length;
  const auto held_out =
      static_cast<int64_t>(std::ceil(held_out_fraction * static_cast<double>(samples)));
  if (samples - held_out < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        tokens, " tokens make ", samples, " samples of ", sequence_length, " + 1, of which ",
        held_out, " are held out: none is left for training; give more data"));
  }
  return DataSplit{.training_samples = samples - held_out, .held_out_samples = held_out};
}

Sampler::Sampler(int64_t training_samples, uint64_t seed)
    : samples_(training_samples),
      seed_(seed),
      half_bits_(std::max(1, (static_cast<int>(std::bit_width(samples_ - 1)) + 1) / 2)) {}

int64_t Sampler::SampleAt(uint64_t global_index) const {
  const uint64_t key = seed_ + global_index / samples_;
  uint64_t value = global_index % samples_;
  do {
    value = Permute(key, value);
  } while (value >= samples_);
  return static_cast<int64_t>(value);
}

uint64_t Sampler::Permute(uint64_t key, uint64_t value) const {
  const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
  uint64_t left = value >> half_bits_, right = value & mask;
  for (uint64_t round = 0; round < kRounds; ++round) {
    const uint64_t next = left ^ (SplitMix64(key, round << 32 | right) & mask);
    left = right;
    right = next;
  }
  return left << half_bits_ | right;
}

}  // namespace distro::worker
