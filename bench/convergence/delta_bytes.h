// Estimates the bytes of the lab's variants, which have no wire format; runs of the real method
// count its payloads. Positions and signs are encoded like payloads of the signs method, and
// counted. The other numbers (scales, levels) cost what an adaptive arithmetic coder would spend:
// -log2 of the number's frequency so far in the run. With K of at most 8, where positions are
// records, a scale is a byte. A float value is 16 bits; scales of whole tensors are not counted.
// Not thread-safe.
#pragma once

#include <array>
#include <cstdint>

#include "bench/convergence/delta_messages.h"
#include "bench/convergence/deltas_settings.h"
#include "common/method/signs/payload.h"

namespace distro::worker {

// The cost of a sequence of small numbers.
class AdaptiveCost {
 public:
  // Returns the bits of the next number, below 512, and adds it to the statistics.
  double Add(int number);

 private:
  std::array<uint32_t, 512> counts_{};
  uint32_t total_ = 0;
};

class DeltaBytes {
 public:
  explicit DeltaBytes(const DeltasSettings& settings) : settings_(settings) {}

  uint64_t Upload(const PayloadIdentity& identity, const DeltaMessage& message);
  uint64_t Download(const PayloadIdentity& identity, const RoundedMeans& result);

 private:
  const DeltasSettings settings_;
  AdaptiveCost scales_;
  AdaptiveCost codes_;
  AdaptiveCost levels_;
};

}  // namespace distro::worker
