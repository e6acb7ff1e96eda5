#include "worker/data/text_entropy.h"

#include <cmath>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"

namespace distro::worker {
namespace {

constexpr size_t kBytes = 256;

uint8_t ByteAt(absl::string_view text, size_t i) { return static_cast<uint8_t>(text[i]); }

}  // namespace

absl::StatusOr<TextFloor> ComputeTextFloor(absl::string_view training, absl::string_view held_out) {
  if (held_out.size() < 2) return absl::InvalidArgumentError("held-out text: fewer than two bytes");
  std::vector<int64_t> single(kBytes), first(kBytes), pair(kBytes * kBytes);
  for (size_t i = 0; i < training.size(); ++i) {
    ++single[ByteAt(training, i)];
    if (i == 0) continue;
    ++first[ByteAt(training, i - 1)];
    ++pair[ByteAt(training, i - 1) * kBytes + ByteAt(training, i)];
  }
  const auto surprise = [](int64_t count, int64_t total) {
    return std::log(static_cast<double>(total + kBytes) / static_cast<double>(count + 1));
  };
  TextFloor floor;
  for (size_t i = 1; i < held_out.size(); ++i) {
    const uint8_t before = ByteAt(held_out, i - 1), byte = ByteAt(held_out, i);
    floor.byte_entropy += surprise(single[byte], static_cast<int64_t>(training.size()));
    floor.bigram_cross_entropy += surprise(pair[before * kBytes + byte], first[before]);
  }
  const auto predicted = static_cast<double>(held_out.size() - 1);
  floor.byte_entropy /= predicted;
  floor.bigram_cross_entropy /= predicted;
  return floor;
}

}  // namespace distro::worker
